"""What other brokers have accepted, given to the receivers of this one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

from tieline.core.account import Event
from tieline.core.broker import Broker
from tieline.core.message import Message, Origin
from tieline.core.outbound.named import PLAIN, Naming
from tieline.overlay.addressing import Addressing, Handing
from tieline.overlay.counts import Counts
from tieline.overlay.destination import Destination
from tieline.overlay.fields import BadFrame
from tieline.overlay.naming import MOST_MESSAGES, Address, opened
from tieline.overlay.parcel import Run, count_packets, read_parcel

#: Publishers of other brokers that are remembered.
_ORIGINS: Final = 10_000


class Incoming:
    """Parcels that are next in a stream, as messages of publishers that belong to another broker."""

    def __init__(
        self,
        core: Broker,
        names: Mapping[int, str],
        counts: Counts,
        destinations: Mapping[int, Destination],
        addressing: Addressing,
    ) -> None:
        self._core = core
        self._own_name = core.settings.name
        #: Who may have been picked before, and where it is said that this broker was.
        self._destinations = destinations
        self._addressing = addressing
        self._names = names
        self._counts = counts
        self._origins: dict[tuple[int, str], Origin] = {}

    def deliver(self, broker: int, parcels: Sequence[bytes], now: float) -> int:
        """Route what a broker has sent; how many of the parcels were taken."""
        for parcel in parcels:
            if not parcel:
                self._counts.missing += 1
                continue
            try:
                for address, inner in opened(parcel, self._own_name):
                    item = read_parcel(inner, partial(self._origin, broker), now)
                    naming = PLAIN if address is None else self._naming(address, item)
                    if not self._pass_on(item, naming, now):
                        self._refuse(broker, "a message that no client could have sent")
            except BadFrame as error:
                self._refuse(broker, str(error))
            self._addressing.handing = Handing()
        return len(parcels)

    def _pass_on(self, item: list[Message] | Run, naming: Naming, now: float) -> bool:
        """Route what a parcel holds; False if one of the messages could be none."""
        inlet = self._core.from_brokers
        if isinstance(item, Run):
            return inlet.run(item.packets, item.version, item.origin, item.level, now, naming)
        is_good = True
        for message in item:
            is_good &= inlet.message(message, now, naming)
        return is_good

    def _naming(self, address: Address, item: list[Message] | Run) -> Naming:
        """For whom the messages of a parcel have come; raises BadFrame if they are too many for that."""
        messages = item.packets if isinstance(item, Run) else item
        count = count_packets(messages) if isinstance(messages, bytes) else len(messages)
        if count > MOST_MESSAGES:
            raise BadFrame(f"{count} messages for {len(address.shares)} groups")
        tried = frozenset([each for each in self._destinations.values() if each.name in address.tried])
        self._addressing.handing = Handing((*address.tried, self._own_name), address.is_asked)
        return Naming(address.is_plain, address.shares, tried, address.is_asked)

    def _refuse(self, broker: int, text: str) -> None:
        self._counts.bad_parcels += 1
        name = self._names[broker]
        self._core.account.tell(Event("parcel_refused", f"broker {name}", "", text, is_trouble=True))

    def _origin(self, broker: int, client: str) -> Origin:
        origin = self._origins.get((broker, client))
        if origin is None:
            if len(self._origins) >= _ORIGINS:
                self._origins.clear()
            owner = self._core.holdings.owner(None)
            name = self._names[broker]
            origin = self._origins[broker, client] = Origin(client, 0, owner, name)
        return origin
