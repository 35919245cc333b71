"""The destination's part of carrying: each number is taken once and in order, committed, and acknowledged.

What is next in its stream is given to its receivers at once, and how far the stream has come is sealed together with
what that did to their queues; the acknowledgement leaves after that commit.  A stream without room stands still alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from tieline.core.timers import Timer
from tieline.overlay.carried import Carried
from tieline.overlay.carrier.durable import Taken
from tieline.overlay.carrier.ends import StreamEnd, Surroundings
from tieline.overlay.carrier.streams import WINDOW, HeldBytes, Incoming
from tieline.overlay.frames.aging import aged
from tieline.overlay.frames.fields import put
from tieline.overlay.frames.frame import ERRANDS, TAG, TAG_BITS, Data, Notice, Topic, is_assured

#: Called with the origin, the lane and messages whose turn it is; how many of them were taken.  Assured ones for which
#: there is no room now are offered again; with QoS 0 it is the last time.  What became of assured messages is committed
#: with the facts of the same seal.
Deliver = Callable[[int, int, Sequence[bytes]], int]
#: How far a stream comes before its origin hears of it at once.
_TELL_AFTER: Final = WINDOW // 4
#: Holes that one acknowledgement names, for each stream.
_HOLES: Final = 8


class Taker(StreamEnd):
    """Everything that comes to one broker from others."""

    def __init__(self, around: Surroundings, deliver: Deliver, pass_notice: Callable[[Notice, float], None]) -> None:
        super().__init__(around)
        self._deliver = deliver
        self._pass_notice = pass_notice
        #: What came before its turn.
        self.held = HeldBytes()
        #: How long what comes was under way, and over how many links.
        self.carried = Carried()
        #: By origin and lane, of the incarnation that counts.
        self.incoming: dict[tuple[int, int], Incoming] = {}
        #: By origin, incarnation and lane, the streams of those that do not count now.
        self._others: dict[tuple[int, int, int], Incoming] = {}
        for (origin, incarnation, lane), position in around.ends.positions.items():
            stream = Incoming(position, self._counts, self.held)
            if incarnation == self._incarnations.last(origin):
                self.incoming[origin, lane] = stream
            else:
                self._others[origin, incarnation, lane] = stream
        #: By origin, incarnation and lane, streams that have moved on since the last seal.
        self._moved: dict[tuple[int, int, int], Incoming] = {}
        #: Streams without room, with the time at which their origin was last told.
        self._stalled: dict[tuple[int, int], float] = {}
        self._room_timer: Timer | None = None
        self._hole_timers: dict[tuple[int, int], Timer] = {}
        #: When links last came or went somewhere.
        self._view_at = 0.0
        #: By origin, the lanes of which it should hear.
        self._acks: dict[int, set[int]] = {}
        self._ack_timer: Timer | None = None

    def take(self, data: Data, where: int, now: float) -> None:
        """Take in a batch whose first message has a place in the stream that leads here."""
        key = data.origin, data.lane
        first = where >> TAG_BITS
        incarnations = self._incarnations
        tags = incarnations.tags if is_assured(data.lane) else incarnations.life_tags
        if where & TAG != incarnations.tag or data.tag != tags.get(data.origin):
            self._counts.foreign += data.count
            return
        stream = self.incoming.get(key)
        if stream is None:
            stream = self.incoming[key] = Incoming(0, self._counts, self.held)
        self.carried.add(data, now)
        payloads: tuple[bytes | None, ...] = data.payloads or (None,) * data.count
        if data.expires:
            payloads = tuple([aged(payload, now - data.born) for payload in data.payloads])
        if is_assured(data.lane):
            ready = stream.add(first, payloads, now)
            self._give_assured(key, stream, ready, now)
            if not ready and first <= stream.committed:
                self._acknowledge_soon(key, now)  # it does not know that we have it
        else:
            stream.begin(data.tag, first)
            ready = stream.leap(first, len(payloads), now)
            self._give(key, ready + stream.add(first, payloads, now))
        self._watch_hole(key, stream, now)

    def _give(self, key: tuple[int, int], ready: list[bytes]) -> None:
        if ready:
            self._counts.taken += self._deliver(*key, ready)

    def _give_assured(self, key: tuple[int, int], stream: Incoming, ready: list[bytes], now: float) -> None:
        """Offer messages whose turn it is; those without room stay in their stream, and nobody else waits for them."""
        if not ready:
            return
        taken = self._deliver(*key, ready)
        if key[1] != ERRANDS:
            self._counts.taken += taken
        if taken:
            self._moved[key[0], self._incarnations.last(key[0]), key[1]] = stream
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

    def position(self, origin: int, lane: int) -> int:
        """How far a stream has come."""
        stream = self.incoming.get((origin, lane))
        return 0 if stream is None else stream.position

    def seal(self) -> None:
        """Note how far streams have come since the last seal, to be committed with what was made of their messages."""
        if self._moved:
            moved = [(key, stream, stream.position) for key, stream in self._moved.items()]
            self._moved.clear()
            facts = [Taken(*key, position) for key, _stream, position in moved]
            self._journal.note_all(facts, partial(self._committed, moved))

    def _committed(self, moved: list[tuple[tuple[int, int, int], Incoming, int]], now: float) -> None:
        is_far = False
        for (origin, _incarnation, lane), stream, position in moved:
            stream.committed = position
            if self.incoming.get((origin, lane)) is stream:
                self._acknowledge_soon((origin, lane), now)
                is_far = is_far or position - stream.told >= _TELL_AFTER
        if is_far:
            # an origin that waited for the timer would stand still at the end of its window
            self._acknowledge(now)

    def _patience(self, lane: int, now: float) -> float:
        """How long a number is waited for before something is done about it.

        With QoS 0 only what was on a link that is gone gets lost without a void; everything else is slow.
        """
        if is_assured(lane):
            return self._limits.hole_s
        return self._limits.skip_s if now - self._view_at < self._limits.calm_s else self._limits.slow_s

    def _watch_hole(self, key: tuple[int, int], stream: Incoming, now: float) -> None:
        """Have a look again when a hole has been there for long enough."""
        if stream.hole_since is not None and key not in self._hole_timers:
            due = max(now, stream.hole_since + self._patience(key[1], now))
            self._hole_timers[key] = self._timers.at(due, partial(self._hole_due, key, stream))

    def _hole_due(self, key: tuple[int, int], stream: Incoming, now: float) -> None:
        del self._hole_timers[key]
        if stream.hole_since is None:
            return
        if now >= stream.hole_since + self._patience(key[1], now):
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

    def view_changed(self, now: float) -> None:
        """Links have come or gone somewhere: origins that were out of reach may hear how far they have come."""
        self._view_at = now
        for key in [key for key in self._hole_timers if not is_assured(key[1])]:
            self._timers.cancel(self._hole_timers.pop(key))
            self._watch_hole(key, self.incoming[key], now)
        if self._acks:
            self._acknowledge(now)

    def _acknowledge(self, now: float) -> None:
        """Tell origins how far their streams are safe here; those out of reach hear of it when a way leads there."""
        self._timers.cancel(self._ack_timer)
        self._ack_timer = None
        for origin in [origin for origin in self._acks if origin in self._membership.reachable]:
            body = bytearray(put(self._incarnations.tag, self._incarnations.tags[origin]))
            for lane in sorted(self._acks.pop(origin)):
                stream = self.incoming[origin, lane]
                holes = stream.holes(_HOLES) if stream.hole_since is not None else []
                stream.told = stream.committed
                body += put(lane, stream.committed, stream.is_stalled, len(holes))
                body += put(*(value for hole in holes for value in hole))
            self._pass_notice(Notice(Topic.END_ACK, self._broker, origin, bytes(body)), now)

    def renew(self, broker: int, before: int | None) -> None:
        """A broker has begun anew, and was another incarnation before: its streams are those of the new one."""
        for key in [key for key in self.incoming if key[0] == broker and is_assured(key[1])]:
            stream = self.incoming.pop(key)
            stream.forget_early()
            if before is not None:
                self._others[broker, before, key[1]] = stream
            self._stalled.pop(key, None)
            self._timers.cancel(self._hole_timers.pop(key, None))
        self._acks.pop(broker, None)
        known = self._incarnations.known[broker]
        for other in [other for other in self._others if other[0] == broker]:
            if other[1] == known[-1]:
                self.incoming[broker, other[2]] = self._others.pop(other)
            elif other[1] not in known:
                del self._others[other]

    # -- for those who ask

    @property
    def unfinished(self) -> int:
        """Messages that are held, and streams that are not sealed."""
        return sum(len(stream.held) for stream in self.incoming.values()) + len(self._moved)

    def check(self) -> None:
        """What always holds, for tests."""
        for stream in self.incoming.values():
            stream.check()
