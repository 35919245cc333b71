"""Carries messages from the broker that accepted them to all that want them: once, and in the order of a lane.

Theory of operation
-------------------
The origin knows who wants a message and writes the set of destinations into the frame.  Each hop splits the set by
neighbour, so a destination is in exactly one copy (where the strategy asks for one).  Per destination the frame has a
number in the stream (origin, destination, lane): the destination takes every number once and in order, whichever way it
came.  Hops keep a frame in custody until the next one has it (:mod:`tieline.overlay.links`); the ends acknowledge too,
so nothing depends on the memory of a broker in the middle.  A frame is never sent to a broker of its own path.

A path that ends blind is parked, and tried again with an empty path after a moment or with a new view.  A destination
asks for what is missing; an origin sends again what was not settled for long.  Messages with QoS 0 are not kept: who
drops some passes on a void, and a hole that nobody fills is skipped after a moment.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from tieline.core.timers import Timer, Timers
from tieline.overlay.counts import Counts
from tieline.overlay.durable import Ends, Journal, Owed, Owing, Settled, Taken
from tieline.overlay.frame import LARGEST, Data, Notice, Numbered, Reader, Topic, is_assured, put
from tieline.overlay.links import Link
from tieline.overlay.membership import Membership
from tieline.overlay.strategies.path import Path
from tieline.overlay.strategies.strategy import Strategy
from tieline.overlay.streams import WINDOW, Incoming, Outgoing, batches

#: Called with the origin, the lane and messages whose turn it is; how many of them were taken.  Assured ones for which
#: there is no room now are offered again; with QoS 0 it is the last time.  What became of assured messages is committed
#: with the facts of the same seal.
Deliver = Callable[[int, int, Sequence[bytes]], int]
#: Bytes of the longest message that is carried, until messages travel in segments.
LONGEST: Final = LARGEST // 2
#: Copies of copies kept thin links full for 40 s and more when a flood was repeated as soon as a single copy is.
_COPIES_PACE: Final = 4
#: How far a stream comes before its origin hears of it at once.
_TELL_AFTER: Final = WINDOW // 4
#: Holes that one acknowledgement names, for each stream.
_HOLES: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How long the carrier waits, and how much it keeps."""

    #: How long an end acknowledgement may wait for more to acknowledge.
    ack_s: float = 0.02
    #: When a destination asks for a number that is missing, and how often.
    hole_s: float = 0.3
    #: When a destination gives up a number with QoS 0 that is missing.
    skip_s: float = 0.25
    #: When an origin sends again what was not settled.
    resend_s: float = 4.0
    #: When messages for which there was no room are offered again.
    room_s: float = 0.05
    #: How often an origin is told that there is still no room; well before it would send again.
    stalled_s: float = 1.0
    #: When a frame that found no way is tried again.
    parked_s: float = 0.25
    #: Frames without a way that are kept in memory.
    parked: int = 4_096
    #: Messages that may be owed to one destination in one lane.
    owed: int = 100_000


class Carrier:
    """One broker's part in carrying: an origin, a destination and a hop in between."""

    def __init__(  # carrying touches every part of a node
        self,
        broker: int,
        life: int,
        ends: Ends,
        *,
        links: Mapping[int, Link],
        membership: Membership,
        strategy: Strategy,
        timers: Timers,
        journal: Journal,
        counts: Counts,
        deliver: Deliver,
        send: Callable[[int, Numbered], None],
        limits: Limits,
    ) -> None:
        self._broker = broker
        self._life = life
        self._links = links
        self._membership = membership
        self.strategy = strategy
        #: Notices take the shortest path, whatever carries the messages.
        self._shortest = Path(membership, counts)
        self._timers = timers
        self._journal = journal
        self._counts = counts
        self._deliver = deliver
        self._send = send
        self._limits = limits
        self.outgoing = {key: Outgoing(owing.copy()) for key, owing in ends.owing.items()}
        self.incoming = {key: Incoming(position, counts) for key, position in ends.positions.items()}
        #: By destination and lane, the last number that was given to a message with QoS 0 in this life.
        self._unassured: dict[tuple[int, int], int] = {}
        self._parked: list[Data] = []
        #: By origin, the lanes of which it should hear.
        self._acks: dict[int, set[int]] = {}
        self._ack_timer: Timer | None = None
        self._parked_timer: Timer | None = None
        self._resend_timer: Timer | None = None
        self._hole_timers: dict[tuple[int, int], Timer] = {}
        #: Streams that have moved on since the last seal.
        self._moved: dict[tuple[int, int], Incoming] = {}
        #: Streams without room, with the time at which their origin was last told.
        self._stalled: dict[tuple[int, int], float] = {}
        self._room_timer: Timer | None = None

    @property
    def _pace(self) -> int:
        """How much longer an origin waits before it repeats something that would be copied over every link."""
        return 1 if self.strategy.is_single else _COPIES_PACE

    def use(self, strategy: Strategy, now: float) -> None:
        """Choose links in another way from now on; what is under way goes on by it from wherever it is."""
        self.strategy = strategy
        self.view_changed(now)

    # -- the origin

    def publish(self, lane: int, payloads: tuple[bytes, ...], destinations: frozenset[int], now: float) -> bool:
        """Owe messages to brokers, or send them at once with QoS 0; False if one is too long or too much is owed."""
        if any(len(payload) > LONGEST for payload in payloads):
            self._counts.too_long += len(payloads)
            return False
        if not is_assured(lane):
            for batch in batches(payloads):
                self._publish_unassured(lane, batch, destinations, now)
            return True
        streams = {broker: self._outgoing(broker, lane) for broker in destinations}
        if any(len(stream.owing.unsettled) >= self._limits.owed for stream in streams.values()):
            self._counts.refused += len(payloads)
            return False
        if streams:
            for batch in batches(payloads):
                firsts = {broker: stream.owing.add(batch) for broker, stream in streams.items()}
                self._journal.note(Owed(lane, batch, firsts), partial(self._owed, lane, batch, firsts, now))
        return True

    def _outgoing(self, destination: int, lane: int) -> Outgoing:
        stream = self.outgoing.get((destination, lane))
        if stream is None:
            stream = self.outgoing[destination, lane] = Outgoing(Owing())
        return stream

    def _publish_unassured(
        self, lane: int, payloads: tuple[bytes, ...], destinations: frozenset[int], now: float
    ) -> None:
        firsts = {}
        for broker in destinations:
            if broker not in self._membership.reachable:
                self._counts.no_route += len(payloads)
                continue
            number = self._unassured.get((broker, lane), 0)
            firsts[broker] = number + 1
            self._unassured[broker, lane] = number + len(payloads)
        if firsts:
            self.forward(Data(lane, self._broker, self._life, firsts, payloads, born=now), now)

    def _owed(self, lane: int, payloads: tuple[bytes, ...], firsts: dict[int, int], born: float, now: float) -> None:
        """Messages are safe: the first copies leave together."""
        together = {}
        for broker, first in firsts.items():
            stream = self.outgoing[broker, lane]
            stream.committed = max(stream.committed, first + len(payloads) - 1)
            if broker in self._membership.reachable and stream.may_send(first, len(payloads)):
                if not stream.is_underway:
                    stream.touched_at = now
                stream.sent = stream.committed
                together[broker] = first
            else:
                self._pump(broker, lane, stream, now)
        if together:
            self.forward(Data(lane, self._broker, self._life, together, payloads, born=born), now)
            self._watch_settling(now)

    def _pump(self, broker: int, lane: int, stream: Outgoing, now: float) -> None:
        """Send what is safe and not on its way, as far as the window and a way there allow."""
        if broker in self._membership.reachable:
            for batch in batches(stream.unsent()):
                if not stream.is_underway:
                    stream.touched_at = now
                first = stream.sent + 1
                stream.sent += len(batch)
                self._send_again(broker, lane, stream, first, batch, now)
                if stream.sent < first:
                    break  # no way after all: it was taken back
        self._watch_settling(now)

    def _send_again(
        self, broker: int, lane: int, stream: Outgoing, first: int, payloads: tuple[bytes, ...], now: float
    ) -> None:
        head = lane, self._broker, self._life, {broker: first}, payloads
        self.forward(Data(*head, born=now, attempt=stream.attempt), now)

    def _watch_settling(self, now: float) -> None:
        if self._resend_timer is None and any(stream.is_unsettled for stream in self.outgoing.values()):
            self._resend_timer = self._timers.at(now + self._limits.resend_s / 4, self._resend)

    def _resend(self, now: float) -> None:
        """What was not settled for long is sent again."""
        self._resend_timer = None
        for (broker, lane), stream in self.outgoing.items():
            if stream.is_unsettled and now - stream.touched_at >= self._limits.resend_s * self._pace:
                self._counts.resent_by_origin += stream.sent - stream.owing.settled
                stream.rewind()
                self._pump(broker, lane, stream, now)
        self._watch_settling(now)

    def _settled(self, destination: int, reader: Reader, now: float) -> None:
        """A destination says how far it has come, and what it misses."""
        while not reader.is_over:
            lane, number, is_stalled = reader.integer(), reader.integer(), reader.integer()
            holes = [(reader.integer(), reader.integer()) for _ in reader.repeat()]
            stream = self.outgoing.get((destination, lane))
            if stream is None or number > stream.committed:
                continue  # of streams that we have forgotten, which only a lost store can do
            stream.is_stalled = bool(is_stalled)
            if stream.owing.settle(number):
                self._journal.note(Settled(destination, lane, number))
                stream.sent = max(stream.sent, number)
                stream.touched_at = now
            elif is_stalled:
                stream.touched_at = now
            if holes and now - stream.asked_at >= self._limits.hole_s / 2 * self._pace:
                stream.asked_at = now
                stream.attempt += 1
                self._fill_holes(destination, lane, stream, holes, now)
            self._pump(destination, lane, stream, now)

    def _fill_holes(self, broker: int, lane: int, stream: Outgoing, holes: list[tuple[int, int]], now: float) -> None:
        for hole in holes:
            first, payloads = stream.missing(*hole)
            for batch in batches(payloads):
                self._counts.resent_by_origin += len(batch)
                self._send_again(broker, lane, stream, first, batch, now)
                first += len(batch)

    # -- a hop

    def arrived(self, item: Numbered, now: float) -> None:
        """Something came over a link."""
        if self._broker in item.path:
            self._counts.looped += 1
        elif isinstance(item, Notice):
            self.pass_notice(item, now)
        elif self.strategy.admits(item):
            self.forward(item, now)
        else:
            self._counts.seen_before += 1

    def forward(self, data: Data, now: float) -> None:
        """Take what is for us, and send the rest on, a copy for each neighbour that leads to some destinations."""
        copies: dict[int, dict[int, int]] = {}
        blind: dict[int, int] = {}
        for destination, first in data.destinations.items():
            if destination == self._broker:
                self._take(data, first, now)
                continue
            peers = self.strategy.next_brokers(destination, data.path)
            if not peers:
                blind[destination] = first
            for peer in peers:
                copies.setdefault(peer, {})[destination] = first
        if copies:
            path = data.path + bytes((self._broker,))
            for peer, destinations in copies.items():
                self._send(peer, data.to(destinations, path))
        if blind:
            self._blind(data, blind, now)

    def _blind(self, data: Data, destinations: dict[int, int], now: float) -> None:
        """No neighbour leads to some destinations."""
        if not is_assured(data.lane):
            self._counts.no_route += data.count * len(destinations)
        elif data.origin == self._broker:
            # what comes back to its origin on a path that began anew is no copy that anybody waits for
            for destination in () if data.path else destinations:
                self.outgoing[destination, data.lane].rewind()
        elif not self.strategy.is_single:
            self._counts.blind_copies += 1
        else:
            self._counts.parked += 1
            self._parked.append(data.to(destinations, b""))
            if len(self._parked) > self._limits.parked:
                del self._parked[0]
                self._counts.parked_full += 1
            if self._parked_timer is None:
                self._parked_timer = self._timers.at(now + self._limits.parked_s, self._retry_parked)

    def _retry_parked(self, now: float) -> None:
        self._timers.cancel(self._parked_timer)
        self._parked_timer = None
        parked, self._parked = self._parked, []
        for data in parked:
            # under its old attempt: a flooding hop that has seen it would otherwise copy it again, for ever
            self.forward(data, now)

    def link_lost(self, link: Link, now: float) -> None:
        """Carry another way what a link has not delivered; what has no other way stays with it."""
        for number, item in link.hand_out():
            if isinstance(item, Notice):
                item.path = b""
                self.pass_notice(item, now)
                continue
            path = item.path[:-1]
            elsewhere: dict[int, int] = {}
            nowhere: dict[int, int] = {}
            for destination, first in item.destinations.items():
                has_way = bool(self.strategy.next_brokers(destination, path))
                (elsewhere if has_way else nowhere)[destination] = first
            if elsewhere:
                self._counts.rerouted += 1
                self.forward(item.to(elsewhere, path), now)
            if not nowhere:
                continue
            if not is_assured(item.lane):
                self._counts.no_route += item.count * len(nowhere)
            elif len(link) < self._limits.parked:
                link.keep(number, item.to(nowhere, item.path))
            else:
                self._counts.parked_full += 1

    def view_changed(self, now: float) -> None:
        """Links have come or gone somewhere: what waited for a way may have one."""
        for link in self._links.values():
            if not link.is_up and len(link):
                self.link_lost(link, now)
        if self._parked:
            self._retry_parked(now)
        for (broker, lane), stream in self.outgoing.items():
            if stream.sent < stream.committed:
                self._pump(broker, lane, stream, now)
        if self._acks:
            self._acknowledge(now)

    def pass_notice(self, notice: Notice, now: float) -> None:
        """Send a notice on towards its target; one that has no way is dropped, and what it said is said again."""
        peers = self._shortest.next_brokers(notice.target, notice.path)
        if not peers:
            self._counts.notices_lost += 1
        else:
            path = notice.path + bytes((self._broker,))
            self._send(peers[0], Notice(notice.topic, notice.source, notice.target, notice.body, path))

    # -- the destination

    def _take(self, data: Data, first: int, now: float) -> None:
        key = data.origin, data.lane
        stream = self.incoming.get(key)
        if stream is None:
            stream = self.incoming[key] = Incoming(0, self._counts)
        payloads = data.payloads or (None,) * data.count
        if is_assured(data.lane):
            ready = stream.add(first, payloads, now)
            self._give_assured(key, stream, ready, now)
            if not ready and first <= stream.committed:
                self._acknowledge_soon(key, now)  # it does not know that we have it
        elif stream.begin(data.life, first):
            self._give(key, stream.add(first, payloads, now))
        else:
            self._counts.late += len(data.payloads)
        self._watch_hole(key, stream, now)

    def _give(self, key: tuple[int, int], ready: list[bytes]) -> None:
        if ready:
            self._counts.taken += self._deliver(*key, ready)

    def _give_assured(self, key: tuple[int, int], stream: Incoming, ready: list[bytes], now: float) -> None:
        """Offer messages whose turn it is; those without room stay in their stream, and nobody else waits for them."""
        if not ready:
            return
        taken = self._deliver(*key, ready)
        self._counts.taken += taken
        if taken:
            self._moved[key] = stream
        if taken < len(ready):
            stream.put_back(ready[taken:])
            if key not in self._stalled:
                self._counts.stalled += 1
                self._stalled[key] = now
                self._acknowledge_soon(key, now)
            if self._room_timer is None:
                self._room_timer = self._timers.at(now + self._limits.room_s, self.offer_again)

    def offer_again(self, now: float) -> None:
        """There may be room for what had none; called now and then, and by whoever knows that there is."""
        self._timers.cancel(self._room_timer)
        self._room_timer = None
        for key, told_at in list(self._stalled.items()):
            stream = self.incoming[key]
            self._give_assured(key, stream, stream.retry(now), now)
            if not stream.is_stalled:
                del self._stalled[key]
                self._acknowledge_soon(key, now)
                self._watch_hole(key, stream, now)
            elif now - told_at >= self._limits.stalled_s:
                self._stalled[key] = now
                self._acknowledge_soon(key, now)

    def seal(self) -> None:
        """Note how far streams have come since the last seal, to be committed with what was made of their messages."""
        if self._moved:
            moved = [(key, stream, stream.position) for key, stream in self._moved.items()]
            self._moved.clear()
            facts = [Taken(*key, position) for key, _stream, position in moved]
            self._journal.note_all(facts, partial(self._committed, moved))

    def _committed(self, moved: list[tuple[tuple[int, int], Incoming, int]], now: float) -> None:
        is_far = False
        for key, stream, position in moved:
            stream.committed = position
            self._acknowledge_soon(key, now)
            is_far = is_far or position - stream.told >= _TELL_AFTER
        if is_far:
            # an origin that waited for the timer would stand still at the end of its window
            self._acknowledge(now)

    def _watch_hole(self, key: tuple[int, int], stream: Incoming, now: float) -> None:
        """Have a look again when a hole has been there for long enough."""
        if stream.hole_since is not None and key not in self._hole_timers:
            patience = self._limits.hole_s if is_assured(key[1]) else self._limits.skip_s
            due = max(now, stream.hole_since + patience)
            self._hole_timers[key] = self._timers.at(due, partial(self._hole_due, key, stream, patience))

    def _hole_due(self, key: tuple[int, int], stream: Incoming, patience: float, now: float) -> None:
        del self._hole_timers[key]
        if stream.hole_since is None:
            return
        if now >= stream.hole_since + patience:
            if is_assured(key[1]):
                self._counts.holes_asked += 1
                stream.hole_since = now
                self._acknowledge_soon(key, now)
            else:
                self._give(key, stream.skip(now))
        self._watch_hole(key, stream, now)

    def _acknowledge_soon(self, key: tuple[int, int], now: float) -> None:
        self._acks.setdefault(key[0], set()).add(key[1])
        if self._ack_timer is None:
            self._ack_timer = self._timers.at(now + self._limits.ack_s, self._acknowledge)

    def _acknowledge(self, now: float) -> None:
        """Tell origins how far their streams are safe here; those out of reach hear of it when a way leads there."""
        self._timers.cancel(self._ack_timer)
        self._ack_timer = None
        for origin in [origin for origin in self._acks if origin in self._membership.reachable]:
            body = bytearray()
            for lane in sorted(self._acks.pop(origin)):
                stream = self.incoming[origin, lane]
                holes = stream.holes(_HOLES) if stream.hole_since is not None else []
                stream.told = stream.committed
                body += put(lane, stream.committed, stream.is_stalled, len(holes))
                body += put(*(value for hole in holes for value in hole))
            self.pass_notice(Notice(Topic.END_ACK, self._broker, origin, bytes(body)), now)

    def settled(self, notice: Notice, now: float) -> None:
        """An end acknowledgement has come."""
        self._settled(notice.source, Reader(notice.body), now)

    # -- for those who ask

    @property
    def unfinished(self) -> int:
        """Messages that are owed, held or parked here."""
        owed = sum(len(stream.owing.unsettled) for stream in self.outgoing.values())
        held = sum(len(stream.held) for stream in self.incoming.values())
        return owed + len(self._parked) + held + len(self._moved)

    def check(self) -> None:
        """What always holds, for tests."""
        for sent in self.outgoing.values():
            sent.check()
        for came in self.incoming.values():
            came.check()
