"""One broker on the ring, without sockets: messages in, messages out, time as an argument.

Whoever drives it gives it what has come (:meth:`receive`), what a link could not hand over (:meth:`refused`), and what
its clients do.  A link hands over in order what it was given, or says that it could not; it never does half of it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from tieline.overlay.frames.fields import BadFrame
from tieline.overlay.ring.account import Accounting, of_one
from tieline.overlay.ring.dispatch.protocol import Dispatch
from tieline.overlay.ring.events import Event, RingSubscription, Sent, Spaces
from tieline.overlay.ring.growth import Growth, Then
from tieline.overlay.ring.identifiers import BITS
from tieline.overlay.ring.merging import Merging
from tieline.overlay.ring.messages import Anew, Data, Echo, Key, Message, Peer, Settled, decode, encode
from tieline.overlay.ring.promises import Batch, Deliver, Promises, size_of
from tieline.overlay.ring.settings import RingSettings
from tieline.overlay.ring.summary import NOTHING, Summary
from tieline.overlay.ring.surroundings import Alarms, RingCounts, Surroundings
from tieline.overlay.ring.table import Table
from tieline.overlay.ring.upkeep import Upkeep

#: Subscriptions that are added up in one go, and how long others have their turn in between.
_PORTION: Final = 500
_PAUSE_S: Final = 0.005


@dataclass(frozen=True, slots=True, kw_only=True)
class RingEnds:
    """What a broker's store has kept of an earlier life."""

    #: Whether it was on the ring before, so that others may take it for the one that it was.
    has_lived: bool = False
    incarnation: int = 0
    owed: tuple[Batch, ...] = ()
    #: By lane, the last number that was given out.
    numbers: Mapping[int, int] = field(default_factory=dict)
    #: By origin, incarnation and lane, the last number that was committed.
    positions: Mapping[tuple[int, int, int], int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class RingWorld:
    """What surrounds a broker: how it sends bytes, gives events to its clients, keeps facts, and is called back."""

    alarms: Alarms
    send: Callable[[Peer, bytes], None]
    deliver: Deliver
    #: Commits what an origin owes, or that it owes it no more; then the publisher may be told.
    commit: Callable[[Batch, bool, Callable[[float], None]], None]


class RingNode:
    """A broker that knows a few others, and gets to all that want a message by them."""

    def __init__(  # what a broker on the ring is made of
        self,
        me: Peer,
        world: RingWorld,
        *,
        merging: Merging,
        dispatch: Dispatch,
        spaces: Spaces,
        settings: RingSettings | None = None,
        ends: RingEnds | None = None,
    ) -> None:
        settings, ends = settings or RingSettings(), ends or RingEnds()
        self.me: Final = me
        self._world = world
        self._dispatch = dispatch
        self.table: Final = Table(me, Accounting(merging, settings.account_bytes), settings.successors)
        self._around = Surroundings(
            table=self.table, merging=merging, spaces=spaces, settings=settings, alarms=world.alarms, send=self._send
        )
        self.counts: Final[RingCounts] = self._around.counts
        #: What the clients here ask for, each with how many ask for it, and the sum.
        self._subscriptions: dict[RingSubscription, int] = {}
        self.own: Summary = NOTHING
        self.growth: Final = Growth(self._around, lambda: of_one(me, self.own))
        self.upkeep: Final = Upkeep(self._around, self.growth, dispatch, self._changed)
        self.promises: Final = Promises(self._around, dispatch, world.deliver, lambda: self.upkeep.is_whole)
        self.promises.settled_for_good = lambda batch: world.commit(batch, False, lambda _now: None)
        self.promises.positions.update(ends.positions)
        self._incarnation = ends.incarnation
        self._numbers = dict(ends.numbers)
        self._kept = ends.owed
        self._has_lived = ends.has_lived
        #: Whether it waits until nobody takes it for the one that it was.
        self._is_quiet = False
        #: Batches of others that came by a way on which they may come twice.
        self._seen: OrderedDict[Key, None] = OrderedDict()
        self._joining: list[Then] = []
        #: What is asked for is added up anew, since some of it is no more.
        self._recount: _Recount | None = None

    def __repr__(self) -> str:
        return f"<RingNode {self.me!r} {len(self.table)} fingers, {len(self.growth.watchers)} watchers>"

    # -- coming and going

    def begin(self, via: Peer | None, now: float) -> None:
        """Found a ring, or join the ring of a broker; go on with what an earlier life owed.

        Who was there before does nothing until everybody has noticed that, and says to each that asks that it begins
        anew.  What others know of it, and tell it, is meant for an earlier life: it would echo what it tells nobody,
        and speak for arcs that it does not know.
        """
        settings = self._around.settings
        self.resume(now)
        if self._has_lived and via is not None:
            self._has_lived, self._is_quiet = False, True
            self._world.alarms.at(now + settings.lease_s, partial(self._begin_anew, via))
            return
        part = (self.me.identifier >> BITS - 16) / (1 << 16)
        self.upkeep.begin(via, now, (0.5 + 0.5 * part) * settings.stabilise_s)

    def resume(self, now: float) -> None:
        """Go on with what an earlier life owed: before anything is published, for it has smaller numbers."""
        kept, self._kept = self._kept, ()
        for batch in kept:
            self.promises.owe(batch, self._incarnation, now)

    def _begin_anew(self, via: Peer, now: float) -> None:
        self._is_quiet = False
        self.begin(via, now)

    def leave(self, now: float) -> None:
        """Go, and tell everybody; there is nothing left to do once :attr:`has_left` is true."""
        self.upkeep.leave(now)

    @property
    def has_left(self) -> bool:
        return self.upkeep.is_leaving and not self.growth.watchers and not self.promises.unfinished

    def _changed(self, gone: Peer | None, now: float) -> None:
        if gone is not None:
            self.promises.peer_lost(gone, now)
            return
        if self.upkeep.is_joined:
            waiting, self._joining = self._joining, []
            for then in waiting:
                then(now)
        if self.upkeep.is_closed:
            self.promises.closed(now)

    # -- messages

    def receive(self, peer: Peer, data: bytes, now: float) -> bool:
        """A message has come; one that is none ends nothing but itself, and False says that it was none."""
        try:
            message = decode(data)
        except BadFrame:
            self.counts.malformed += 1
            return False
        if self._is_quiet:
            if not isinstance(message, Anew):
                self._send(peer, Anew())
            return True
        self.upkeep.wake(now)
        self.upkeep.heard(peer, now)
        if isinstance(message, Data):
            self._on_data(peer, message, now)
        elif isinstance(message, Settled):
            self.promises.settled(peer, message, now)
        elif isinstance(message, Echo):
            self.growth.echoed(peer, message.version, now)
            self.upkeep.echoed(peer, now)
        else:
            self.upkeep.receive(peer, message, now)
        return True

    def renewed(self, peer: Peer, now: float) -> None:
        """A link has found that a broker has begun anew: the one that was known is dead."""
        self.upkeep.lost(peer, now)

    def remember(self, peer: Peer) -> None:
        """A broker may know the ring when everybody in the table is gone, or stand in another part of it."""
        self.upkeep.remember(peer)

    def refused(self, peer: Peer, data: bytes, sent: float, now: float, *, may_have_come: bool = False) -> None:
        """A link could not hand over a message that it was given some time ago: publications go to somebody else.

        The peer is gone, unless it has given a sign of life since.  What may have come there all the same is handed
        over again only if it is recognised when it comes twice: with QoS 0 it is not.
        """
        message = decode(data)
        if not self.upkeep.refused(peer, sent, now) and isinstance(message, Data):
            self.upkeep.member_lost(peer)
        if not isinstance(message, Data) or not self._dispatch.keeps_promises:
            return
        if message.is_assured:
            self.promises.peer_lost(peer, now)
        elif may_have_come:
            self.counts.uncertain += 1
        else:
            self.counts.rerouted += 1
            self._forward(message._replace(hops=max(0, message.hops - 1)), message.origin)

    def _send(self, peer: Peer, message: Message) -> None:
        self._world.send(peer, encode(message))

    def _on_data(self, peer: Peer, data: Data, now: float) -> None:
        self.counts.visits += 1
        self.counts.hops += data.hops
        if self._dispatch.keeps_promises:
            if data.is_assured:
                self.promises.arrived(peer, data, now)
                return
            if self.table.holds(data.start, data.end):
                self._give(data)
        elif data.key in self._seen or data.origin == self.me.identifier:
            self.counts.seen_before += 1
            return
        else:
            self._seen[data.key] = None
            if len(self._seen) > self._around.settings.tasks:
                self._seen.popitem(last=False)
            self._give(data)
        self._forward(data, peer.identifier)

    def _give(self, data: Data) -> None:
        self._world.deliver(data, None, lambda _now: None)

    def _forward(self, data: Data, came_from: int) -> None:
        for peer, copy in self._dispatch.onward(self.table, data, came_from).copies:
            self._send(peer, copy)

    # -- clients

    def concerns(self, event: Event) -> bool:
        """Whether somebody else may want an event, as far as it is known here.

        Nobody whose subscription was acknowledged before is overlooked: everybody has echoed it, this broker included.
        """
        me = self.me.identifier
        onward = self._dispatch.onward(self.table, self._made_of((event,), 0, 0), me)
        return bool(onward.copies) or (bool(onward.gaps) and not self.upkeep.is_whole)

    def _made_of(self, events: Iterable[Event], lane: int, number: int) -> Data:
        me = self.me.identifier
        sent = tuple(Sent(0, event) for event in events)
        return Data(me, self._incarnation, lane, number, 0, 0, me, me, (), sent)

    def publish(self, events: Iterable[Event], lane: int, now: float) -> None:
        """Send events with QoS 0 to everybody else who wants them."""
        self.upkeep.wake(now)
        self._forward(self._made_of(events, lane, self._next_number(lane)), self.me.identifier)

    def publish_assured(self, events: Iterable[Event], lane: int, then: Then, now: float) -> bool:
        """Bring events to everybody else who wants them; call once they are safe here.  False if too much is owed."""
        batch = Batch(lane, self._next_number(lane), tuple(events))
        if self.promises.owed_bytes + size_of(batch.events) > self._around.settings.owed_bytes:
            self._numbers[lane] -= 1
            self.counts.refused += 1
            return False
        self._world.commit(batch, True, partial(self._is_safe, batch, then))
        return True

    def _is_safe(self, batch: Batch, then: Then, now: float) -> None:
        then(now)
        self.upkeep.wake(now)
        self.promises.owe(batch, self._incarnation, now)

    def _next_number(self, lane: int) -> int:
        self._numbers[lane] = self._numbers.get(lane, 0) + 1
        return self._numbers[lane]

    def subscribe(self, subscription: RingSubscription, then: Callable[[float, bool], None], now: float) -> None:
        """Somebody here asks for more; call once everybody knows, and say whether that is so or was waited for."""
        self.subscribe_all((subscription,), then, now)

    def subscribe_all(
        self, subscriptions: Sequence[RingSubscription], then: Callable[[float, bool], None], now: float
    ) -> None:
        """The same for several, of which others are told at once."""
        pending = _Pending(then, self.counts)
        self._world.alarms.at(now + self._around.settings.growth_s, pending.late)
        for subscription in subscriptions:
            self._subscriptions[subscription] = self._subscriptions.get(subscription, 0) + 1
        more = self._around.merging.of(subscriptions)
        if not self.own.covers(more):
            self.own = self._around.merging.joined(self.own, more)
        if self._recount is not None and self._recount.rest is not None:
            self._recount.add(more)
        spread = partial(self.growth.spread, self.me.identifier, of_one(self.me, more), pending.done)
        if self.upkeep.is_joined:
            spread(now)
        else:
            self._joining.append(spread)

    def unsubscribe(self, subscription: RingSubscription, now: float) -> None:
        """Somebody here asks for less; KeyError if nobody has asked for it."""
        count = self._subscriptions[subscription]
        if count > 1:
            self._subscriptions[subscription] = count - 1
            return
        del self._subscriptions[subscription]
        if self._recount is None:
            self._recount_soon(now)
        elif self._recount.rest is not None:
            self._recount.is_outdated = True

    def _recount_soon(self, now: float) -> None:
        self._recount = _Recount(self._around.merging)
        self._world.alarms.at(now + self._around.settings.shrink_s / 2, self._count_anew)

    def _count_anew(self, now: float) -> None:
        """Add up what is asked for still, some of it at a time: there may be very much."""
        recount = self._recount
        assert recount is not None, "somebody has asked for less"
        if recount.rest is None:
            recount.rest = [*self._subscriptions]
        if recount.go_on():
            self._world.alarms.at(now + _PAUSE_S, self._count_anew)
            return
        self._recount = None
        self.own = recount.sum
        self.growth.shrank(now)
        if recount.is_outdated:
            self._recount_soon(now)

    @property
    def subscriptions(self) -> Iterable[RingSubscription]:
        """What is asked for here."""
        return self._subscriptions

    @property
    def unfinished(self) -> int:
        """What is owed, carried for others, or waited for here."""
        return self.promises.unfinished + self.growth.unfinished

    def adopt(self, own: Summary, subscriptions: Iterable[RingSubscription]) -> None:
        """Ask for what is known to everybody already: how a ring begins that was put together as a whole."""
        self._subscriptions = dict.fromkeys(subscriptions, 1)
        self.own = own
        self.upkeep.is_joined = self.upkeep.is_closed = True


class _Recount:
    """The sum of what is asked for, made anew in portions; what comes meanwhile is added to it."""

    __slots__ = ("_merging", "is_outdated", "rest", "sum")

    def __init__(self, merging: Merging) -> None:
        self._merging = merging
        self.sum = NOTHING
        #: Less is asked for since it has begun.
        self.is_outdated = False
        #: What has not been added yet; None before it has begun.
        self.rest: list[RingSubscription] | None = None

    def add(self, more: Summary) -> None:
        """Somebody asks for more."""
        self.sum = self._merging.joined(self.sum, more)

    def go_on(self) -> bool:
        """Add one portion; whether there is more."""
        assert self.rest is not None, "it has begun"
        portion, self.rest = self.rest[:_PORTION], self.rest[_PORTION:]
        if portion:
            self.add(self._merging.of(portion))
        return bool(self.rest)


class _Pending:
    """A subscription that waits for echoes, and no longer than it may."""

    __slots__ = ("_counts", "_then")

    def __init__(self, then: Callable[[float, bool], None], counts: RingCounts) -> None:
        self._then: Callable[[float, bool], None] | None = then
        self._counts = counts

    def done(self, now: float) -> None:
        """All echoes are there: say so, if nothing has been said yet."""
        then, self._then = self._then, None
        if then is not None:
            then(now, True)

    def late(self, now: float) -> None:
        """The time is over and an echo is missing: count that, and say so, if nothing has been said yet."""
        then, self._then = self._then, None
        if then is not None:
            self._counts.unechoed += 1
            then(now, False)
