"""What other brokers have accepted, given to the receivers of this one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

from tieline.core.account import Event
from tieline.core.broker import Broker
from tieline.core.message import Origin
from tieline.overlay.counts import Counts
from tieline.overlay.fields import BadFrame
from tieline.overlay.parcel import Run, read_parcel

#: Publishers of other brokers that are remembered.
_ORIGINS: Final = 10_000


class Incoming:
    """Parcels that are next in a stream, as messages of publishers that belong to another broker."""

    def __init__(self, core: Broker, names: Mapping[int, str], counts: Counts) -> None:
        self._core = core
        self._names = names
        self._counts = counts
        self._origins: dict[tuple[int, str], Origin] = {}

    def deliver(self, broker: int, parcels: Sequence[bytes], now: float) -> int:
        """Route what a broker has sent; how many of the parcels were taken."""
        inlet = self._core.from_brokers
        for parcel in parcels:
            if not parcel:
                self._counts.missing += 1
                continue
            try:
                item = read_parcel(parcel, partial(self._origin, broker), now)
            except BadFrame as error:
                self._refuse(broker, str(error))
                continue
            if isinstance(item, Run):
                refused = not inlet.run(item.packets, item.version, item.origin, item.level, now)
            else:
                refused = False
                for message in item:
                    refused |= not inlet.message(message, now)
            if refused:
                self._refuse(broker, "a message that no client could have sent")
        return len(parcels)

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
