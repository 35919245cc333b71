"""The origin's part of carrying: what is owed is committed and sent, again and again until its destination settles it.

Numbers are those of :class:`~tieline.overlay.carrier.durable.Owing`, which only grow; on links they are smaller by the
base of the destination's incarnation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import groupby
from typing import Final

from tieline.core.timers import Timer
from tieline.overlay.carrier.credit import FREE, WAIT
from tieline.overlay.carrier.durable import Owed, Owing, Replaced, Settled
from tieline.overlay.carrier.ends import LONGEST, StreamEnd, Surroundings
from tieline.overlay.carrier.streams import Outgoing, batches
from tieline.overlay.frames.aging import without_expired
from tieline.overlay.frames.fields import Reader
from tieline.overlay.frames.frame import ASSURED_LANES, ERRANDS, TAG, TAG_BITS, Data, Notice, Planned, is_assured, place

#: Copies of copies kept thin links full for 40 s and more when a flood was repeated as soon as a single copy is.
COPIES_PACE: Final = 4
#: How often the time doubles after which something is sent again, while nothing comes of it.
MOST_PATIENT: Final = 3
#: How often the time doubles after which a hole is filled again, while nothing comes of it.
MOST_FILLS: Final = 4

#: Called with a destination, a topic, the number of messages and their level.
Expired = Callable[[int, bytes, int, int, float], None]

#: Called with a destination and a lane: the frames to it that are still in the hands of this broker's links.
UnderWay = Callable[[int, int], Iterable[Data]]

#: Called with what a stream carries under one number.
PlanOf = Callable[[bytes], Planned | None]


def unheard(broker: int, topic: bytes, messages: int, level: int, now: float) -> None:
    """Nobody wants to know of what has expired."""


class Sender(StreamEnd):
    """Everything that one broker owes to others."""

    def __init__(
        self,
        around: Surroundings,
        forward: Callable[[Data, float], None],
        first_hop: Callable[[int, Data], int],
        under_way: UnderWay,
    ) -> None:
        super().__init__(around)
        self._forward = forward
        #: To which neighbour a frame would go that is for some broker; 0 if there is none.
        self._first_hop = first_hop
        self._under_way = under_way
        #: By which plan a message travels, where there is one; those of one frame travel by the same.
        self.plan_of: PlanOf | None = None
        #: How much longer to wait before something is repeated that would be copied over every link.
        self.pace = 1
        #: By destination and lane.
        self.outgoing = {key: Outgoing(owing.copy()) for key, owing in around.ends.owing.items()}
        #: By destination, bytes that are owed to it.
        self.owed_bytes: dict[int, int] = {}
        for (destination, _lane), stream in self.outgoing.items():
            self._charge(destination, stream.owing.bytes)
        #: By destination and lane, the last number that was given to a message with QoS 0 in this life.
        self._unassured: dict[tuple[int, int], int] = {}
        self._resend_timer: Timer | None = None
        #: Told of messages for a broker that have expired here.
        self.expired: Expired = unheard

    def go_by(self, plan_of: PlanOf | None) -> None:
        """Let what leaves from now on travel by a plan, or by none."""
        self.plan_of = plan_of

    def tell(self, payloads: tuple[bytes, ...], destination: int, now: float) -> None:
        """Owe errands to a broker, whatever is owed to it: whoever causes them has a bound for that."""
        stream = self._stream(destination, ERRANDS)
        for batch in batches(payloads):
            firsts = {destination: self._owe(destination, stream, batch)}
            self._journal.note(Owed(ERRANDS, batch, firsts), partial(self._owed, ERRANDS, batch, firsts, now, False))

    def last(self, destination: int, lane: int) -> int:
        """The number of the last message that is owed or settled, as the destination counts; 0 before the first."""
        stream = self.outgoing.get((destination, lane))
        return 0 if stream is None else stream.owing.last - stream.owing.base

    def is_settled(self, destination: int, lane: int, number: int) -> bool:
        """Whether a destination has everything up to a number that :meth:`last` gave."""
        stream = self.outgoing.get((destination, lane))
        return stream is None or stream.owing.settled - stream.owing.base >= number

    def publish(
        self,
        lane: int,
        payloads: tuple[bytes, ...],
        destinations: frozenset[int],
        now: float,
        *,
        expires: bool = False,
    ) -> bool:
        """Owe messages to brokers, or send them at once with QoS 0; False if one is too long or too much is owed.

        It is said whether some of them expire.
        """
        if any(len(payload) > LONGEST for payload in payloads):
            self._counts.too_long += len(payloads)
            return False
        if not is_assured(lane):
            for planned, batch in self._batches(payloads):
                self._publish_unassured(lane, batch, destinations, now, planned=planned, expires=expires)
            return True
        streams = {broker: self._stream(broker, lane) for broker in destinations}
        if any(
            len(stream.owing.unsettled) >= 2 * self._limits.owed
            or self.owed_bytes.get(broker, 0) >= 2 * self._limits.owed_bytes
            for broker, stream in streams.items()
        ):
            self._counts.refused += len(payloads)
            return False
        if streams:
            for _planned, batch in self._batches(payloads):
                firsts = {broker: self._owe(broker, stream, batch) for broker, stream in streams.items()}
                if expires:
                    for broker, first in firsts.items():
                        streams[broker].accepted.update(dict.fromkeys(range(first, first + len(batch)), now))
                then = partial(self._owed, lane, batch, firsts, now, expires)
                self._journal.note(Owed(lane, batch, firsts), then)
        return True

    def _batches(self, payloads: Iterable[bytes]) -> Iterator[tuple[Planned | None, tuple[bytes, ...]]]:
        """Messages as frames should hold them, with the plan that those of each travel by."""
        for batch in batches(payloads):
            yield from self._by_plan(batch)

    def _by_plan(self, batch: tuple[bytes, ...]) -> Iterator[tuple[Planned | None, tuple[bytes, ...]]]:
        if self.plan_of is None:
            yield None, batch
            return
        for planned, alike in groupby(batch, self.plan_of):
            yield planned, tuple(alike)

    def _owe(self, broker: int, stream: Outgoing, payloads: tuple[bytes, ...]) -> int:
        """The number of the first of some messages that are owed from now on."""
        owing = stream.owing
        before = owing.bytes
        first = owing.add(payloads)
        self._charge(broker, owing.bytes - before)
        return first

    def replace(self, broker: int, lane: int, number: int, payload: bytes) -> None:
        """Owe something else in the place of a message that is not settled."""
        owing = self.outgoing[broker, lane].owing
        before = owing.bytes
        owing.replace(number, payload)
        self._charge(broker, owing.bytes - before)
        self._journal.note(Replaced(broker, lane, number, payload))

    def settle(self, broker: int, stream: Outgoing, number: int) -> bool:
        """Owe nothing up to a number any more; whether that was news."""
        before = stream.owing.bytes
        if stream.accepted:
            for settled in range(stream.owing.settled + 1, number + 1):
                stream.accepted.pop(settled, None)
        is_news = stream.owing.settle(number)
        self._charge(broker, stream.owing.bytes - before)
        return is_news

    def _charge(self, broker: int, size: int) -> None:
        self.owed_bytes[broker] = self.owed_bytes.get(broker, 0) + size

    def owes_much(self, broker: int, share: float = 1.0) -> bool:
        """Whether this share of what may be owed to a broker is owed to it."""
        if self.owed_bytes.get(broker, 0) >= share * self._limits.owed_bytes:
            return True
        streams = (self.outgoing.get((broker, lane)) for lane in ASSURED_LANES)
        most = share * self._limits.owed
        return any(stream is not None and len(stream.owing.unsettled) >= most for stream in streams)

    def _stream(self, destination: int, lane: int) -> Outgoing:
        stream = self.outgoing.get((destination, lane))
        if stream is None:
            owing = Owing()
            if destination in self._incarnations.known:
                owing.renew(self._incarnations.known[destination])
            stream = self.outgoing[destination, lane] = Outgoing(owing)
        return stream

    def _publish_unassured(
        self,
        lane: int,
        payloads: tuple[bytes, ...],
        destinations: frozenset[int],
        now: float,
        *,
        planned: Planned | None,
        expires: bool,
    ) -> None:
        firsts = {}
        tags = self._incarnations.tags
        for broker in destinations:
            if broker not in self._membership.reachable or broker not in tags:
                self._counts.no_route += len(payloads)
                continue
            number = self._unassured.get((broker, lane), 0)
            firsts[broker] = place(number + 1, tags[broker])
            self._unassured[broker, lane] = number + len(payloads)
        if firsts:
            data = Data(lane, self._broker, self._incarnations.life_tag, firsts, payloads, born=now)
            data.expires, data.planned = expires, planned
            self._forward(data, now)

    def _owed(  # what was noted with them
        self, lane: int, payloads: tuple[bytes, ...], firsts: dict[int, int], born: float, expires: bool, now: float
    ) -> None:
        """Messages are safe: the first copies leave together."""
        together = {}
        for broker, first in firsts.items():
            stream = self.outgoing[broker, lane]
            stream.committed = max(stream.committed, first + len(payloads) - 1)
            if self._may_reach(broker) and stream.may_send(first, len(payloads)):
                if not stream.is_underway:
                    stream.touched_at = now
                stream.sent = stream.committed
                together[broker] = place(first - stream.owing.base, self._incarnations.tags[broker])
            else:
                self.pump(broker, lane, stream, now)
        if together:
            data = Data(lane, self._broker, self._incarnations.tag, together, payloads, born=born)
            # the plan may be another one since they were accepted
            data.expires, data.planned = expires, None if self.plan_of is None else self.plan_of(payloads[0])
            self._forward(data, now)
            self._watch_settling(now)

    def _may_reach(self, broker: int) -> bool:
        return broker in self._membership.reachable and self._incarnations.is_usable(broker)

    def pump(self, broker: int, lane: int, stream: Outgoing, now: float) -> None:
        """Send what is safe and not on its way, as far as the window and a way there allow."""
        if self._may_reach(broker):
            for batch in stream.portions():
                if not stream.spend(batch):
                    break
                if not stream.is_underway:
                    stream.touched_at = now
                first = stream.sent + 1
                stream.sent += len(batch)
                self._send_rest(broker, lane, stream, first, batch, now)
                if stream.sent != first + len(batch) - 1:
                    break  # no way after all, or no room: what is next is another number, and may have gone already
        self._watch_settling(now)

    def pump_all(self, now: float, to: int | None = None) -> None:
        """Send what waits for a way, to one broker or to all: the most urgent first."""
        waiting = [
            (lane, broker)
            for (broker, lane), stream in self.outgoing.items()
            if to in (None, broker) and stream.sent < stream.committed
        ]
        for lane, broker in sorted(waiting, reverse=True):
            self.pump(broker, lane, self.outgoing[broker, lane], now)

    def view_changed(self, now: float) -> None:
        """Links have come or gone: a link that was full need not be on the way any more, nor what was sent before."""
        for stream in self.outgoing.values():
            stream.credit = None
            stream.elsewhere.clear()
            stream.timeouts = stream.fills = stream.vain = 0
        self.pump_all(now)

    def trust(self) -> None:
        """Links are chosen in another way from now on: what the one before came to says nothing of it."""
        for stream in self.outgoing.values():
            stream.vain = 0

    def limit(self, destination: int, lane: int, where: int, room: int, now: float) -> None:
        """A full link on the way takes so many bytes of a stream from some place on, or everything again."""
        stream = self.outgoing.get((destination, lane))
        if stream is None or where & TAG != self._incarnations.tags.get(destination):
            return
        stream.touched_at = now
        number = (where >> TAG_BITS) + stream.owing.base
        if room == FREE:
            stream.credit = None
        else:
            stream.credit = room
            if number in stream.elsewhere:  # the other link is full as well
                stream.elsewhere = {each for each in stream.elsewhere if each < number}
            if stream.owing.settled < number <= stream.sent:
                stream.elsewhere |= self._elsewhere(destination, lane, stream, number)
                stream.sent = number - 1
        if room != WAIT:
            self.pump(destination, lane, stream, now)

    def _elsewhere(self, destination: int, lane: int, stream: Outgoing, number: int) -> set[int]:
        """Of what was sent behind a number that met a full link, what a plan has sent over another one.

        That is on its way.  To send all of it again would keep full links full.
        """
        if self.plan_of is None:
            return set()
        hops: dict[Planned | None, int] = {}

        def hop(each: int) -> int:
            assert self.plan_of is not None
            planned = self.plan_of(stream.owing.unsettled[each])
            if planned not in hops:
                data = Data(
                    lane, self._broker, self._incarnations.tag, {destination: 0}, (), born=0.0, attempt=stream.mark
                )
                data.planned = planned
                hops[planned] = self._first_hop(destination, data)
            return hops[planned]

        full = hop(number)
        return {each for each in range(number + 1, stream.sent + 1) if hop(each) != full}

    def _send_rest(
        self, broker: int, lane: int, stream: Outgoing, first: int, payloads: tuple[bytes, ...], now: float
    ) -> None:
        """Send some messages, but for those that are on their way by another link."""
        # as it is now: what meets a full link while this is sent concerns those that are sent later
        elsewhere = frozenset(stream.elsewhere)
        if not elsewhere:
            self._send_again(broker, lane, stream, first, payloads, now)
            return
        for is_elsewhere, run in groupby(enumerate(payloads, first), lambda each: each[0] in elsewhere):
            rest = [*run]
            if is_elsewhere:
                if stream.credit is not None:
                    stream.credit += sum(len(payload) for _number, payload in rest)
            else:
                self._send_again(broker, lane, stream, rest[0][0], tuple(payload for _, payload in rest), now)

    def _send_again(
        self, broker: int, lane: int, stream: Outgoing, first: int, payloads: tuple[bytes, ...], now: float
    ) -> None:
        where = place(first - stream.owing.base, self._incarnations.tags[broker])
        if stream.accepted:
            payloads = self._fresh(broker, lane, stream, first, payloads, now)
        tag, expires = self._incarnations.tag, bool(stream.accepted)
        for planned, alike in self._by_plan(payloads):
            data = Data(lane, self._broker, tag, {broker: where}, alike, born=now, attempt=stream.mark)
            data.expires, data.planned = expires, planned
            self._forward(data, now)
            where += len(alike) << TAG_BITS

    def _fresh(  # of a stream, those that are sent now
        self, broker: int, lane: int, stream: Outgoing, first: int, payloads: tuple[bytes, ...], now: float
    ) -> tuple[bytes, ...]:
        """Messages with what they have left until they expire, without those that have."""
        fresh = []
        for number, payload in enumerate(payloads, first):
            left, gone = without_expired(payload, now - stream.accepted.get(number, now))
            fresh.append(left)
            for topic, count in gone.items():
                self._counts.expired += count
                self.expired(broker, topic, count, lane >> 4, now)
            if gone:
                stream.accepted[number] = now
                self.replace(broker, lane, number, left)
        return tuple(fresh)

    def rewind(self, destination: int, lane: int) -> None:
        """What was just sent has no way after all."""
        stream = self.outgoing[destination, lane]
        stream.failed(stream.touched_at)
        stream.rewind()

    def _watch_settling(self, now: float) -> None:
        if self._resend_timer is None and any(stream.is_unsettled for stream in self.outgoing.values()):
            self._resend_timer = self._timers.at(now + self._limits.resend_s / 4, self._resend)

    def _pace(self, lane: int) -> int:
        """How much longer to wait where all is copied; clients wait for errands, which are few."""
        return 1 if lane == ERRANDS else self.pace

    def _resend(self, now: float) -> None:
        """What was not settled for long is sent again."""
        self._resend_timer = None
        for (broker, lane), stream in self.outgoing.items():
            # what waits at a thin link for long does not wait shorter when it is sent again and again
            patience_s = self._limits.resend_s * max(self._pace(lane), 1 << min(stream.timeouts, MOST_PATIENT))
            if not stream.is_unsettled or now - stream.touched_at < patience_s:
                continue
            if stream.owing.settled + 1 in self._here(broker, lane, stream):
                stream.touched_at = now  # it is late, and not lost: behind what is more urgent, on a full link
            else:
                self._counts.resent_by_origin += stream.sent - stream.owing.settled
                stream.timeouts += 1
                stream.failed(now)
                stream.rewind()
                self.pump(broker, lane, stream, now)
        self._watch_settling(now)

    def settled(self, notice: Notice, now: float) -> None:
        """A destination says how far it has come, and what it misses."""
        destination, reader = notice.source, Reader(notice.body)
        theirs, ours = reader.integer(), reader.integer()
        if ours != self._incarnations.tag or theirs != self._incarnations.tags.get(destination):
            self._counts.foreign_notices += 1
            return
        while not reader.is_over:
            lane, number, is_stalled = reader.integer(), reader.integer(), reader.integer()
            holes = [(reader.integer(), reader.integer()) for _ in reader.repeat()]
            stream = self.outgoing.get((destination, lane))
            if stream is None:
                continue
            base = stream.owing.base
            if number + base > stream.committed:
                continue  # nobody can have what was not sent
            stream.is_stalled = bool(is_stalled)
            if self.settle(destination, stream, number + base):
                self._journal.note(Settled(destination, lane, number + base))
                stream.sent = max(stream.sent, number + base)
                stream.moved_on(now)
            elif is_stalled:
                stream.touched_at = now
            # what waits at a thin link already would only wait there twice
            pause_s = self._limits.hole_s / 2 * (self._pace(lane) << min(stream.fills, MOST_FILLS))
            if holes and now - stream.asked_at >= pause_s:
                stream.asked_at = now
                stream.fills += 1
                stream.attempt += 1
                self._fill_holes(destination, lane, stream, holes, now)
            self.pump(destination, lane, stream, now)

    def _fill_holes(self, broker: int, lane: int, stream: Outgoing, holes: list[tuple[int, int]], now: float) -> None:
        here = self._here(broker, lane, stream)
        base = stream.owing.base
        runs = [run for hole, count in holes for run in stream.missing(hole + base, count, here)]
        # where messages take several ways some come later, and holes say nothing of a strategy
        if now - stream.touched_at >= self._limits.resend_s and (runs or not here):
            stream.failed(now)
        if not self._may_reach(broker):
            return
        for hole, count in holes:
            self._fill_with_nothing(broker, lane, stream, hole + base, count, now)
        for first, payloads in runs:
            number = first
            for batch in batches(payloads):
                self._counts.resent_by_origin += len(batch)
                self._send_again(broker, lane, stream, number, batch, now)
                number += len(batch)

    def _here(self, broker: int, lane: int, stream: Outgoing) -> set[int]:
        """The numbers of a stream that no neighbour has yet: to send them again would fill a full link twice."""
        here: set[int] = set()
        ours, theirs = self._incarnations.tag, self._incarnations.tags.get(broker)
        for data in self._under_way(broker, lane):
            where = data.destinations[broker]
            if data.tag == ours and where & TAG == theirs:
                first = (where >> TAG_BITS) + stream.owing.base
                here.update(range(first, first + data.count))
        return here

    def _fill_with_nothing(  # the numbers of a hole, and whose it is
        self, broker: int, lane: int, stream: Outgoing, first: int, count: int, now: float
    ) -> None:
        """Say that there is nothing any more where a destination misses what is settled here: it was written off.

        Or the destination has gone back to a copy of its store.  One that only has not been heard yet takes these for
        copies of what it has.
        """
        gone = min(count, stream.owing.settled + 1 - first)
        if gone > 0:
            where = place(first - stream.owing.base, self._incarnations.tags[broker])
            head = lane, self._broker, self._incarnations.tag, {broker: where}, (b"",) * gone
            self._forward(Data(*head, born=now, attempt=stream.mark), now)

    def write_off(self, broker: int, lane: int, count: int) -> list[bytes]:
        """Owe a broker no longer what was first of a stream, as much as is said; what that was."""
        stream = self.outgoing[broker, lane]
        number = min(stream.owing.last, stream.owing.settled + count)
        gone = [stream.owing.unsettled[each] for each in range(stream.owing.settled + 1, number + 1)]
        self.settle(broker, stream, number)
        self._journal.note(Settled(broker, lane, number))
        stream.sent, stream.committed = max(stream.sent, number), max(stream.committed, number)
        return gone

    def renew(self, broker: int) -> None:
        """A broker has begun anew: everything that is not settled is sent to it, once that is safe."""
        for (destination, _lane), stream in self.outgoing.items():
            if destination == broker:
                self._counts.renumbered += len(stream.owing.unsettled)
                stream.renew(self._incarnations.known[broker])

    # -- for those who ask

    @property
    def unfinished(self) -> int:
        """Messages that are owed."""
        return sum(len(stream.owing.unsettled) for stream in self.outgoing.values())

    def check(self) -> None:
        """What always holds, for tests."""
        for stream in self.outgoing.values():
            stream.check()
        owed: dict[int, int] = {}
        for (destination, _lane), stream in self.outgoing.items():
            owed[destination] = owed.get(destination, 0) + stream.owing.bytes
        assert owed == {broker: size for broker, size in self.owed_bytes.items() if broker in owed}
