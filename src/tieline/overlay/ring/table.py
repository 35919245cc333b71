"""What one broker knows of the ring: who stands before and behind it, and its fingers with what their arcs want.

Theory of operation
-------------------
Fingers stand in the order in which one comes to them.  The arc of a finger ends before the next one, that of the last
one before the broker itself, so arcs hold everybody else once, whichever fingers are known.  The first finger is the
successor; between a broker and its successor stands nobody, as far as it knows.

A finger has told what is wanted from it up to some place, ``until``.  While that is not before the end of its arc, an
arc in which nobody wants an event need not be entered; otherwise nothing is certain, and it is.  An arc becomes longer
when the next finger is lost.  Then what both had told is kept together, until the first of them has told anew.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from tieline.overlay.ring.account import ANYBODY, NOBODY, Accounting, ArcAccount
from tieline.overlay.ring.events import Event
from tieline.overlay.ring.identifiers import AROUND, way
from tieline.overlay.ring.messages import Peer


class Finger:
    """A broker that this one hands arcs to."""

    __slots__ = ("heard", "peer", "start", "told", "until", "version")

    def __init__(self, peer: Peer, start: int, now: float) -> None:
        self.peer = peer
        #: Where it was looked for.
        self.start = start
        #: What is wanted from it up to ``until``; before it has told anything, nothing is certain.
        self.told: ArcAccount = ANYBODY
        self.until = peer.identifier
        #: Of what it told last; 0 before that.
        self.version = 0
        #: When there was the last sign of life.
        self.heard = now

    def __repr__(self) -> str:
        return f"<Finger {self.peer!r} version {self.version}>"


class ArcPart(NamedTuple):
    """A part of an arc of a finger, both ends as identifiers."""

    finger: Finger
    start: int
    end: int
    #: Whether the finger has told what all of its arc wants.
    is_certain: bool

    def wants(self, event: Event) -> bool:
        """False only if nobody in it wants an event."""
        return not self.is_certain or self.finger.told.wants(event)


class Table:
    """Successors, a predecessor and fingers; who changes it sees to it that others are told."""

    def __init__(self, me: Peer, accounting: Accounting, successors: int) -> None:
        self.me = me
        self.accounting = accounting
        self._most = successors
        self.predecessor: Peer | None = None
        #: When the predecessor gave the last sign of life.
        self.predecessor_heard = 0.0
        #: The nearest first; the first of them is the first finger.
        self.successors: list[Peer] = []
        #: What successors had told that are gone: they may be there, and only out of reach of this broker.  Until it is
        #: known who stands behind it, others are told that as well.
        self.lost_told: ArcAccount = NOBODY
        #: By how far it is to them, ascending.
        self._ways: list[int] = []
        self._fingers: list[Finger] = []

    def __len__(self) -> int:
        return len(self._fingers)

    def __iter__(self) -> Iterator[Finger]:
        return iter(self._fingers)

    @property
    def successor(self) -> Peer | None:
        return self._fingers[0].peer if self._fingers else None

    def way_to(self, identifier: int) -> int:
        """How far it is from here to a place."""
        return way(self.me.identifier, identifier)

    def finger(self, identifier: int) -> Finger | None:
        """The finger with an identifier, if there is one."""
        at = bisect_left(self._ways, self.way_to(identifier))
        if at < len(self._fingers) and self._fingers[at].peer.identifier == identifier:
            return self._fingers[at]
        return None

    def end_of(self, finger: Finger) -> int:
        """Where the arc of a finger ends."""
        at = bisect_right(self._ways, self.way_to(finger.peer.identifier))
        return self._fingers[at].peer.identifier if at < len(self._fingers) else self.me.identifier

    def is_certain(self, finger: Finger) -> bool:
        """Whether a finger has told what its whole arc wants."""
        at = bisect_right(self._ways, self.way_to(finger.peer.identifier))
        end = self._ways[at] if at < len(self._ways) else AROUND
        return finger.version > 0 and (self.way_to(finger.until) or AROUND) >= end

    def before(self, finger: Finger) -> Finger | None:
        """The finger in front of another one."""
        at = bisect_left(self._ways, self.way_to(finger.peer.identifier))
        return self._fingers[at - 1] if at else None

    def add(self, finger: Finger) -> Finger | None:
        """One finger more; the one in front of it, whose arc ends here now."""
        distance = self.way_to(finger.peer.identifier)
        at = bisect_left(self._ways, distance)
        self._ways.insert(at, distance)
        self._fingers.insert(at, finger)
        if at == 0:
            self.know_behind(finger.peer, self.successors)
        return self._fingers[at - 1] if at else None

    def remove(self, finger: Finger) -> Finger | None:
        """One finger less; the one in front of it, whose arc has become longer and which has to tell anew."""
        at = self._fingers.index(finger)
        del self._ways[at], self._fingers[at]
        if not at:
            return None
        front = self._fingers[at - 1]
        front.told = self.accounting.joined(front.told, finger.told)
        return front

    def know_behind(self, peer: Peer, successors: Iterable[Peer]) -> None:
        """A successor and who is behind it, as it says itself."""
        known: list[Peer] = []
        for each in (peer, *successors):
            if each.identifier == self.me.identifier:
                break
            if each not in known:
                known.append(each)
        self.successors = known[: self._most]

    def lost(self, peer: Peer) -> None:
        """A broker is gone: neither successor nor predecessor any more."""
        self.successors = [each for each in self.successors if each != peer]
        if self.predecessor == peer:
            self.predecessor = None

    def closest_before(self, key: int) -> Peer | None:
        """The last finger in front of a place; None if there is none."""
        at = bisect_left(self._ways, self.way_to(key) or AROUND)
        return self._fingers[at - 1].peer if at else None

    def is_mine(self, key: int) -> bool:
        """Whether a place lies between here and the successor, which then is whoever is looked for there."""
        return not self._ways or 0 < self.way_to(key) <= self._ways[0]

    def parts(self, start: int, end: int) -> Iterator[ArcPart]:
        """The places from ``start`` up to ``end`` by the fingers whose arcs hold them; equal ones are the whole ring.

        Nothing is said of those between here and the successor: :meth:`gaps` has them.
        """
        for first, last in self._spans(start, end):
            at = max(bisect_right(self._ways, first) - 1, 0)
            while at < len(self._ways) and self._ways[at] < last:
                until = self._ways[at + 1] if at + 1 < len(self._ways) else AROUND
                finger = self._fingers[at]
                begin, stop = max(first, self._ways[at]), min(last, until)
                if begin < stop:
                    certain = finger.version > 0 and (self.way_to(finger.until) or AROUND) >= until
                    yield ArcPart(finger, self._place(begin), self._place(stop), certain)
                at += 1

    def gaps(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """What of the places from ``start`` up to ``end`` lies between here and the successor."""
        nearest = self._ways[0] if self._ways else AROUND
        for first, last in self._spans(start, end):
            if first < nearest:
                yield self._place(first), self._place(min(last, nearest))

    def holds(self, start: int, end: int) -> bool:
        """Whether this broker is among the places from ``start`` up to ``end``."""
        return way(start, self.me.identifier) < (way(start, end) or AROUND)

    def _spans(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """The same places as distances from here, without this broker itself; at most two runs."""
        if not self.holds(start, end):
            yield self.way_to(start), self.way_to(end) or AROUND
            return
        if (last := self.way_to(end) or AROUND) > 1:
            yield 1, last
        if start != self.me.identifier:
            yield self.way_to(start), AROUND

    def _place(self, distance: int) -> int:
        return (self.me.identifier + distance) % AROUND

    def wanted_from(self, own: ArcAccount, end: int) -> ArcAccount:
        """What is wanted from here up to a place: by this broker, and in the arcs of its fingers in front of it."""
        last = self.way_to(end) or AROUND
        found = self.accounting.joined(own, self.up_to(end, self.lost_told))
        for distance, finger in zip(self._ways, self._fingers, strict=True):
            if distance >= last:
                break
            found = self.accounting.joined(found, self.up_to(end, finger.told))
        return found

    def up_to(self, end: int, told: ArcAccount) -> ArcAccount:
        """What is told of an arc, without those who stand behind a place."""
        last = self.way_to(end) or AROUND
        return told.among(lambda identifier: self.way_to(identifier) < last)

    def check(self) -> None:
        """What always holds, for tests."""
        assert self._ways == sorted(set(self._ways))
        assert [self.way_to(each.peer.identifier) for each in self._fingers] == self._ways
        assert not self._fingers or self.successors[:1] == [self._fingers[0].peer]
        assert len(self.successors) <= self._most
