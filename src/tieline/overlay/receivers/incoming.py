"""What other brokers have accepted, given to the receivers of this one: as much in a turn as others can wait for.

What has no promise (QoS 0) is taken at once, and waits here when the share of a turn is spent; until nothing waits any
more, no link is read.  A stream of assured messages stops between two parcels instead, because how far it has come is
committed with what became of them, and goes on in the next turn.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final

from tieline.core.account import Event
from tieline.core.broker import Broker
from tieline.core.message import Message, Origin
from tieline.core.outbound.named import PLAIN, Naming
from tieline.overlay.frames.fields import BadFrame
from tieline.overlay.frames.frame import is_assured
from tieline.overlay.frames.naming import MOST_MESSAGES, Address, opened
from tieline.overlay.frames.parcel import Run, Stamp, count_packets, read_parcel
from tieline.overlay.node import Node
from tieline.overlay.receivers.addressing import Addressing, Handing
from tieline.overlay.receivers.destination import Destination
from tieline.overlay.receivers.origins import Origins
from tieline.overlay.receivers.turns import region_of
from tieline.overlay.retained.retaining import Retaining

#: What a parcel counts towards the work of a turn; each byte of one that cannot be understood, and how many of them
#: are read at most.
_WORK_PER_PARCEL: Final = 20
_WORK_PER_BYTE: Final = 3
_ENOUGH: Final = 8_192


class _Begun:
    """A parcel that is looked at: what it holds still, and how far a run of packets of it has come."""

    __slots__ = ("at", "broker", "parcel", "parts", "run")

    def __init__(self, broker: int, parcel: bytes, name: str) -> None:
        self.broker = broker
        self.parcel = parcel
        self.parts: Iterator[tuple[Address | None, bytes]] = opened(parcel, name)
        self.run: Run | None = None
        self.at = 0


class Incoming:
    """Parcels that are next in a stream, as messages of publishers that belong to another broker."""

    def __init__(
        self,
        core: Broker,
        names: Mapping[int, str],
        node: Node,
        destinations: Mapping[int, Destination],
        addressing: Addressing,
        retaining: Retaining | None,
    ) -> None:
        """``retaining`` is None where other regions are: what is retained there is not retained here."""
        self._core = core
        self._retaining = retaining
        self._own_name = core.settings.name
        #: Who may have been picked before, and where it is said that this broker was.
        self._destinations = destinations
        self._addressing = addressing
        self._names = names
        self._node = node
        #: Parcels of QoS 0 that wait; the first may have begun.
        self._late: deque[_Begun] = deque()
        #: Streams that stopped between two parcels are asked again in the next turn.
        self._is_room_due = False
        #: Told of the place of each assured parcel before it is routed, where somebody has to know it.
        self.watch: Callable[[int], None] | None = None
        #: Whether an assured message would have to wait for room; set at gateways, which may not drop one.
        self.lacks_room: Callable[[Message], bool] | None = None
        self._origins = Origins(self._make_origin)

    @property
    def is_behind(self) -> bool:
        """Whether something waits, so that nothing more should be read."""
        return bool(self._late)

    def deliver(self, broker: int, lane: int, parcels: Sequence[bytes], now: float) -> int:
        """Route what a broker has sent; how many parcels were taken: of QoS 0 all, else while there is time."""
        if is_assured(lane):
            return self._deliver_assured(broker, parcels, now)
        was_behind = self.is_behind
        self._late.extend([_Begun(broker, parcel, self._own_name) for parcel in parcels])
        if not was_behind:
            self._take_late(now)
            if self._late:
                self._core.work.later(self._go_on)
        return len(parcels)

    def _deliver_assured(self, broker: int, parcels: Sequence[bytes], now: float) -> int:
        work = self._core.work
        for place, parcel in enumerate(parcels):
            if self.watch is not None:
                self.watch(place)
            if place and work.is_spent():
                self.offer_again_soon()
                return place
            if self.lacks_room is not None and self._must_wait(broker, parcel, now):
                return place  # and it is offered again
            begun = _Begun(broker, parcel, self._own_name)
            while not self._take(begun, now):
                pass
        return len(parcels)

    def offer_again_soon(self) -> None:
        """A stream has stopped because a share is spent: it goes on when others have had their turn."""
        if not self._is_room_due:
            self._is_room_due = True
            self._core.work.later(self._offer_again)

    def _must_wait(self, broker: int, parcel: bytes, now: float) -> bool:
        """Whether somebody has no room for a message of a parcel: its stream stands still until there is some."""
        assert self.lacks_room is not None
        try:
            for _address, inner in opened(parcel, self._own_name) if parcel else ():
                item = read_parcel(inner, partial(self.origin, broker), now)
                if not isinstance(item, Run) and any(self.lacks_room(message) for message in item):
                    return True
        except BadFrame:
            pass  # whoever takes it refuses it
        return False

    def _offer_again(self, now: float) -> None:
        self._is_room_due = False
        self._core.work.enough()
        self._node.room(now)

    def _go_on(self, now: float) -> None:
        """Others have had their turn."""
        self._core.work.enough()
        self._take_late(now)
        if self._late:
            self._core.work.later(self._go_on)

    def _take_late(self, now: float) -> None:
        work, late = self._core.work, self._late
        while late and not work.is_spent():
            if self._take(late[0], now):
                late.popleft()

    def _take(self, begun: _Begun, now: float) -> bool:
        """Route what a parcel holds; False if others should have their turn before the rest."""
        work, broker = self._core.work, begun.broker
        work.did(_WORK_PER_PARCEL)
        is_over = True
        if not begun.parcel:
            self._node.counts.missing += 1
            return True
        try:
            is_over = begun.run is None or self._run(begun, now)
            while is_over and (found := next(begun.parts, None)) is not None:
                address, inner = found
                stamps: dict[Message, Stamp] = {}
                item = read_parcel(inner, partial(self.origin, broker), now, stamps)
                if address is None and isinstance(item, Run):
                    begun.run, begun.at = item, 0
                    is_over = self._run(begun, now)
                    continue
                naming = PLAIN if address is None else self._naming(address, item)
                if self._has_left(item):
                    continue
                if self._retaining is None:
                    self._forget_retain(item)
                elif stamps and naming.is_plain and not isinstance(item, Run):
                    # what came for a group alone is retained when neighbours tell of it
                    fresh = self._retaining.take_in(item, stamps, broker, now)
                    if naming.shares and len(fresh) < len(item):
                        # those outside groups have had it by another way; groups get nothing by that
                        had = [message for message in item if message not in fresh]
                        self._pass_on(had, naming._replace(is_plain=False), now)
                    if not self._core.from_brokers.is_gateway:
                        item = fresh  # for other regions everything is news
                if not self._pass_on(item, naming, now):
                    self._refuse(broker, "a message that no client could have sent")
        except BadFrame as error:
            work.did(_WORK_PER_BYTE * min(len(begun.parcel), _ENOUGH))
            self._refuse(broker, str(error))
            is_over = True
        self._addressing.handing = Handing()
        return is_over

    def _has_left(self, item: list[Message] | Run) -> bool:
        """Whether another gateway has brought this into the region: by this one it does not leave it again."""
        origin = item.origin if isinstance(item, Run) else item[0].origin if item else None
        if origin is None or not origin.region or origin.is_entering or not self._core.from_brokers.is_gateway:
            return False
        self._node.counts.returned += count_packets(item.packets) if isinstance(item, Run) else len(item)
        return True

    def _forget_retain(self, item: list[Message] | Run) -> None:
        """What other regions retain is theirs: here it is a message like any other."""
        if not isinstance(item, Run):
            for message in item:
                self._node.counts.retained_elsewhere += message.retain
                message.retain = False

    def _run(self, begun: _Begun, now: float) -> bool:
        """Route packets of a run; False if others should have their turn before the rest."""
        run = begun.run
        assert run is not None
        at = self._core.from_brokers.run(run.packets, run.version, run.origin, run.level, now, PLAIN, begun.at)
        if 0 <= at < len(run.packets):
            begun.at = at
            return False
        begun.run = None
        if at < 0:
            self._refuse(begun.broker, "a message that no client could have sent")
        return True

    def _pass_on(self, item: list[Message] | Run, naming: Naming, now: float) -> bool:
        """Route what a parcel holds in one go; False if one of the messages could be none."""
        inlet = self._core.from_brokers
        if isinstance(item, Run):
            at = 0
            while 0 <= at < len(item.packets):
                at = inlet.run(item.packets, item.version, item.origin, item.level, now, naming, at)
            return at >= 0
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
        self._node.counts.bad_parcels += 1
        name = self._names[broker]
        self._core.account.tell(Event("parcel_refused", f"broker {name}", "", text, is_trouble=True))

    def origin(self, broker: int, client: str) -> Origin:
        """The publisher of what a broker brings."""
        return self._origins.of(broker, client)

    def _make_origin(self, broker: int, client: str) -> Origin:
        owner = self._core.holdings.owner(None)
        name = self._names[broker]
        region, _, own = client.rpartition("\0")
        if self._retaining is None:
            region = region_of(name)
        is_entering = self._retaining is None
        return Origin(own, 0, owner, name, region, is_entering=is_entering)
