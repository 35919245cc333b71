"""Who was turned away at a full link, and when they may come again: credit for each link and level.

Theory of operation
-------------------
A broker between others keeps few messages: for each link, and of each level, what it carries in a second or so.  An
assured message that finds no room there is turned away, and its origin, which still has it, is told at once by a
notice: *wait* with this stream (origin, destination, lane), and go on from this number.  While a stream waits, nothing
of it is taken, so that what comes later does not come in vain.

When half of the room is free again, the streams that wait get *credit* in turns: so many bytes may come.  Whoever has
used up its credit waits for the next; whoever does not use it for a while is told that it is *free* and is forgotten.
So what waits in a broker is bounded for each link and level, whoever sends it, the rest waits at its origin, which
bounds it for each destination; and a stream that leads over another link never waits for this one.

Nothing depends on a notice: one that is lost is said again with the next message that is turned away, an origin that
hears nothing for long sends what is not settled again, and so it does when links come or go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from tieline.core.timers import Timer, Timers
from tieline.overlay.carrier.incarnations import Incarnations
from tieline.overlay.counts import Counts
from tieline.overlay.frames.fields import BadFrame, Reader, put, put_bytes
from tieline.overlay.frames.frame import LEVELS, TAG_BITS, Data, Notice, Numbered, Topic, is_assured
from tieline.overlay.links.links import Link

#: What a stream is told beside a number of bytes.
WAIT: Final = 0
FREE: Final = 1
#: Least that is given to one stream at a time.
_LEAST: Final = 2_048
#: How soon somebody who does not seem to know is told again, and how long credit is kept for somebody.
_AGAIN_S, _KEPT_S = 0.25, 1.0
#: Streams that are remembered for one link; what else is turned away comes again when its origin has waited for long.
_MOST: Final = 4_096
#: Origin, destination and lane.
Key = tuple[int, int, int]


class Allowance(NamedTuple):
    """What the origin of a stream is told: from which place on it may send how many bytes."""

    key: Key
    place: int
    room: int


class _Stream:
    __slots__ = ("credit", "place", "told_at", "until")

    def __init__(self, place: int) -> None:
        #: The first that was turned away.
        self.place = place
        #: Bytes that it may still send, until when.
        self.credit = 0
        self.until = 0.0
        self.told_at = 0.0


class Credit:
    """The streams that wait for room on one link, by level."""

    def __init__(self) -> None:
        #: In the order in which they get credit.
        self._streams: tuple[dict[Key, _Stream], ...] = tuple({} for _ in range(LEVELS))

    def __len__(self) -> int:
        return sum(map(len, self._streams))

    def admit(self, data: Data, now: float) -> tuple[dict[int, int], list[Allowance]]:
        """The destinations for which a frame may be taken as far as credit goes, and what origins are to be told."""
        streams = self._streams[data.level]
        admitted: dict[int, int] = {}
        told: list[Allowance] = []
        for destination, place in data.destinations.items():
            key = data.origin, destination, data.lane
            stream = streams.get(key)
            if stream is None:
                admitted[destination] = place
            elif stream.credit > 0:
                admitted[destination] = place
                stream.credit -= data.size
                stream.until = now + _KEPT_S
                stream.place = place + (data.count << TAG_BITS)
            else:
                told += self._turn_away(key, stream, place, now)
        return admitted, told

    def refuse(self, data: Data, now: float) -> list[Allowance]:
        """There was no room for a frame after all; what its origin is to be told."""
        streams = self._streams[data.level]
        told: list[Allowance] = []
        for destination, place in data.destinations.items():
            key = data.origin, destination, data.lane
            stream = streams.get(key)
            if stream is None:
                if len(self) >= _MOST:
                    continue
                stream = streams[key] = _Stream(place)
                stream.told_at = -_AGAIN_S
            elif stream.credit or stream.place > place:
                stream.place, stream.told_at = place, -_AGAIN_S
            stream.credit = 0
            told += self._turn_away(key, stream, place, now)
        return told

    def _turn_away(self, key: Key, stream: _Stream, place: int, now: float) -> list[Allowance]:
        stream.place = min(stream.place, place)
        if now - stream.told_at < _AGAIN_S:
            return []
        stream.told_at = now
        return [Allowance(key, stream.place, WAIT)]

    def release(self, now: float) -> list[Allowance]:
        """Forget those who had credit and have not used it for a while: they are free."""
        told: list[Allowance] = []
        for streams in self._streams:
            over = [key for key, stream in streams.items() if stream.credit > 0 and stream.until <= now]
            told += [Allowance(key, streams.pop(key).place, FREE) for key in over]
        return told

    def grant(self, link: Link, now: float) -> list[Allowance]:
        """Share what room there is on a link, once it is half of all."""
        told: list[Allowance] = []
        most = link.line.assured_most
        for level, streams in enumerate(self._streams):
            room = most - link.line.bytes[level]
            if not streams or 2 * room < most:
                continue
            room -= sum(max(0, stream.credit) for stream in streams.values())
            if 2 * room < most:
                continue
            waiting = [key for key, stream in streams.items() if stream.credit <= 0]
            share = max(_LEAST, room // max(1, len(waiting)))
            for key in waiting:
                if room <= 0:
                    break
                room -= share
                stream = streams[key] = streams.pop(key)
                stream.credit, stream.until = share, now + _KEPT_S
                told.append(Allowance(key, stream.place, share))
        return told


#: Called with a destination, a lane, a place in the stream and how many bytes may be sent from there.
Limit = Callable[[int, int, int, int, float], None]


class Crediting:
    """Everything about credit at one broker: where messages pass links, and where they begin."""

    def __init__(  # what is asked, and who is told
        self,
        broker: int,
        names: Mapping[int, str],
        *,
        links: Mapping[int, Link],
        incarnations: Incarnations,
        timers: Timers,
        counts: Counts,
        limit: Limit,
        find: Callable[[str], int | None],
        pass_notice: Callable[[Notice, float], None],
    ) -> None:
        self._broker = broker
        self._names = names
        self._links = links
        self._incarnations = incarnations
        self._timers = timers
        self._counts = counts
        self._limit = limit
        self._find = find
        self._pass_notice = pass_notice
        #: By peer, where somebody was turned away.
        self._credits: dict[int, Credit] = {}
        self._timer: Timer | None = None

    def offer(self, link: Link, item: Numbered, now: float, *, is_single: bool) -> None:
        """Have something sent over a link, or see to it that its origin sends it again when there is room.

        Where others carry copies on other ways, nobody is told to wait because of this one.
        """
        if isinstance(item, Notice) or not is_assured(item.lane) or not is_single:
            link.offer(item, now)
            return
        credit = self._credits.get(link.peer)
        told: list[Allowance] = []
        if credit is not None:
            admitted, told = credit.admit(item, now)
            if len(admitted) < len(item.destinations):
                self._counts.turned_away += 1
                item = item.to(admitted, item.path)
        if item.destinations and not link.offer(item, now):
            if credit is None:
                credit = self._credits[link.peer] = Credit()
            told += credit.refuse(item, now)
            self._watch(now)
        if told:
            self._tell(told, now)

    def filled(self, link: Link, now: float) -> None:
        """Something has left a link: there may be room for those who wait for it."""
        credit = self._credits.get(link.peer)
        if credit is not None:
            self._grant(credit, link, now)

    def _grant(self, credit: Credit, link: Link, now: float) -> None:
        told = credit.grant(link, now)
        if told:
            self._counts.credits += len(told)
            self._tell(told, now)

    def lost(self, peer: int) -> None:
        """A link is down: whoever waits for it hears so, and goes another way."""
        self._credits.pop(peer, None)

    def _watch(self, now: float) -> None:
        if self._timer is None and self._credits:
            self._timer = self._timers.at(now + _KEPT_S / 2, self._look)

    def _look(self, now: float) -> None:
        """What was given and not used is given to others; whoever waits for nothing is forgotten."""
        self._timer = None
        for peer, credit in list(self._credits.items()):
            self._tell(credit.release(now), now)
            self._grant(credit, self._links[peer], now)
            if not credit:
                del self._credits[peer]
        self._watch(now)

    def _tell(self, told: list[Allowance], now: float) -> None:
        by_origin: dict[int, list[Allowance]] = {}
        for each in told:
            by_origin.setdefault(each.key[0], []).append(each)
        for origin, mine in by_origin.items():
            if origin == self._broker:
                for (_origin, destination, lane), place, room in mine:
                    self._limit(destination, lane, place, room, now)
                continue
            if origin not in self._incarnations.tags:
                continue
            body = bytearray(put(self._incarnations.tags[origin]))
            for (_origin, destination, lane), place, room in mine:
                body += put_bytes(self._names[destination].encode()) + put(lane, place, room)
            self._pass_notice(Notice(Topic.CREDIT, self._broker, origin, bytes(body)), now)

    def heard(self, notice: Notice, now: float) -> None:
        """A broker on the way tells how much it takes of some streams of ours."""
        reader = Reader(notice.body)
        if reader.integer() != self._incarnations.tag:
            self._counts.foreign_notices += 1
            return
        while not reader.is_over:
            name, lane, place, room = reader.text(), reader.integer(), reader.integer(), reader.integer()
            if not is_assured(lane):
                raise BadFrame(f"credit for lane {lane}, which needs none")
            destination = self._find(name)
            if destination is not None:
                self._limit(destination, lane, place, room, now)
