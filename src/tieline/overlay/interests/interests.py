"""What each broker wants, as it says itself: grown before a subscription is acknowledged, shrunk lazily.

Theory of operation
-------------------
A broker's interest is a set of entries under a version that only grows, also over its lives.  It is said whole once in
each life, then in steps from one version to the next.  Whoever learns a newer version commits it, passes it on, and
echoes the version to its owner; whoever cannot apply a step, because it does not know the version before, asks its
neighbours for the whole.  A subscription is granted once every reachable broker has echoed a version that covers it:
what any of them accepts from then on will be sent.  Waiting is bounded, and a subscription that was granted without an
echo is counted.

What an unreachable broker wants is kept: what is published meanwhile is owed to it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

from tieline.match.trees import FilterTree
from tieline.overlay.frames.frame import Kind, frame
from tieline.overlay.interests.comparison import Comparison
from tieline.overlay.interests.entries import (
    MOST_ENTRIES,
    Entries,
    Entry,
    Form,
    Known,
    Said,
    Terms,
    put_said,
    size_of_all,
)
from tieline.overlay.interests.needs import Needs
from tieline.overlay.interests.substitutes import Move, Substitutes

#: Versions of one life.
_PER_LIFE: Final = 1 << 24
#: Topics of which it is remembered who wants them.
_MEMORY: Final = 4_096
#: What an entry of another broker takes in memory beside its texts, with its subscription on our routes, about.
_ENTRY_BYTES: Final = 2_200
#: How long growth waits for more of it, and how long shrinking does.
GATHER_S, SHRINK_S = 0.02, 2.0
#: The time between two steps where there was too much for one.
PAUSE_S: Final = 0.005
#: Needs that are said in another way with one step, at most: each takes about fifteen microseconds.
_MOVES: Final = 50
#: Called with a broker, what it wants now beside before, and what it wants no longer; the former comes first.
Follower = Callable[[int, Entries, frozenset[Entry]], None]


def life_of(version: int) -> int:
    """The life of a broker in which it said a version."""
    return version // _PER_LIFE


class News(NamedTuple):
    """What was learned: to be committed, and passed on."""

    broker: int
    version: int
    added: Entries
    removed: frozenset[Entry]


@dataclass(slots=True)
class Request:
    """A subscription that waits until it may be acknowledged."""

    number: int
    #: The version of our interest that covers it.
    version: int
    deadline: float


@dataclass(frozen=True, slots=True)
class Granted:
    """A subscription that may be acknowledged, and who has echoed it."""

    number: int
    echoed: frozenset[int]


def _nobody(broker: int, added: Entries, removed: frozenset[Entry]) -> None:
    pass


def _nothing(broker: int) -> None:
    pass


class Interests:
    """What this broker wants, what the others want, and how far they know of us."""

    def __init__(self, broker: int, life: int, known: dict[int, Known]) -> None:
        self._broker = broker
        self._version = life * _PER_LIFE
        self._needs = Needs()
        #: What is needed in the place of what would be too much to be said.
        self.substitutes = Substitutes()
        #: When growth is to be said, and when shrinking is; the latter also tells once that we want nothing any more.
        self._grow_at: float | None = None
        self._shrink_at: float | None = None
        #: By broker, as committed or about to be.
        self.known: dict[int, Known] = {}
        #: By broker, about as many bytes as its entries take.
        self._sizes: dict[int, int] = {}
        self._follower: Follower = _nobody
        #: Told when everything that a broker has said is taken in.
        self.concluded: Callable[[int], None] = _nothing
        #: By filter, the brokers that want it and with how many entries.
        self._tree: FilterTree[dict[int, int]] = FilterTree()
        self._wanted: dict[str, frozenset[int]] = {}
        #: By broker, the version of ours that it has echoed.
        self._echoed: dict[int, int] = {}
        self.requests: list[Request] = []
        self._number = 0
        for other, (version, entries) in known.items():
            if other != broker:
                # also what was taken in before the first version was there whole
                self.learn(Said(other, Form.WHOLE, max(version, 1), 0, entries))

    # -- what others want

    def follow(self, follower: Follower) -> None:
        """Tell somebody what every other broker wants, now and whenever it changes."""
        self._follower = follower
        for broker, known in self.known.items():
            follower(broker, {**known.entries}, frozenset())

    def learn(self, said: Said) -> News | None:
        """Take in what was said of another broker; what is news of it.  None if nothing is, or if it does not fit.

        Raises :class:`tieline.overlay.frames.fields.BadFrame` if it comes to more than one broker may want.
        """
        if not self.is_news(said):
            return None
        added, removed = self.changes(said)
        self.take(said.broker, added, removed)
        self.conclude(said.broker, said.version)
        return News(said.broker, said.version, added, removed)

    def is_news(self, said: Said) -> bool:
        """Whether something is said of another broker that is newer than what is known, and can be taken in."""
        known = self.known.get(said.broker)
        is_newer = said.version > (0 if known is None else known.version)
        return said.broker != self._broker and is_newer and said.form is not Form.REQUEST and not self.lacks(said)

    def changes(self, said: Said) -> tuple[dict[Entry, Terms], frozenset[Entry]]:
        """What is new and what is gone with something said; BadFrame if it comes to more than one broker may want."""
        comparison = self.compare(said, said.added, said.removed)
        while not comparison.step(MOST_ENTRIES):
            pass
        return comparison.added, frozenset(comparison.removed)

    def compare(self, head: Said, added: Entries, removed: Collection[Entry]) -> Comparison:
        """The same in portions."""
        known = self.known.get(head.broker, Known(0, {})).entries
        gone = None if head.form is Form.WHOLE else removed
        return Comparison(known, added, gone, self._sizes, head.broker)

    def take(self, broker: int, added: Entries, removed: frozenset[Entry]) -> None:
        """Take in some changes; until :meth:`conclude` they belong to the version that was known before."""
        version, entries = self.known.get(broker, Known(0, {}))
        new = [entry for entry in added if entry not in entries]
        # whoever was written off while an update about it went on wants nothing that could go
        removed = removed if removed <= entries.keys() else frozenset([entry for entry in removed if entry in entries])
        self._sizes[broker] = self._sizes.get(broker, 0) + size_of_all(new) - size_of_all(removed)
        entries |= added
        for entry in removed:
            del entries[entry]
        self.known[broker] = Known(version, entries)
        self._enter(broker, new, removed)
        self._follower(broker, added, removed)

    def conclude(self, broker: int, version: int) -> None:
        """All changes that lead to a version were taken in."""
        self.known[broker] = Known(version, self.known.get(broker, Known(0, {})).entries)
        self.concluded(broker)

    @property
    def is_growing(self) -> bool:
        """Whether something is needed here that others were not told of."""
        return self._needs.is_grown

    @property
    def kept_bytes(self) -> int:
        """About as many bytes as everything takes that others want."""
        entries = sum([len(known.entries) for known in self.known.values()])
        return entries * _ENTRY_BYTES + 2 * sum(self._sizes.values())

    def lacks(self, said: Said) -> bool:
        """Whether something is missing before a step can be applied, so that the whole has to be asked for."""
        known = self.known.get(said.broker)
        version = known.version if known else 0
        is_step = said.form is Form.DELTA and said.broker != self._broker
        return is_step and version < said.version and version != said.base

    def _enter(self, broker: int, added: Iterable[Entry], removed: Iterable[Entry]) -> None:
        for entry in added:
            brokers = self._tree.get(entry.filter)
            if brokers is None:
                brokers = {}
                self._tree.put(entry.filter, brokers)
            brokers[broker] = brokers.get(broker, 0) + 1
        for entry in removed:
            brokers = self._tree.get(entry.filter)
            assert brokers is not None
            brokers[broker] -= 1
            if not brokers[broker]:
                del brokers[broker]
                if not brokers:
                    self._tree.remove(entry.filter)
        self._wanted.clear()

    def wanted_by(self, topic: str) -> frozenset[int]:
        """The other brokers that want messages of a topic, whatever the messages say."""
        brokers = self._wanted.get(topic)
        if brokers is None:
            if len(self._wanted) >= _MEMORY:
                self._wanted.clear()
            brokers = self._wanted[topic] = frozenset().union(*self._tree.match(topic))
        return brokers

    @property
    def versions(self) -> dict[int, int]:
        """The version that is known of each broker, ourselves included."""
        return {self._broker: self._version, **{broker: known.version for broker, known in self.known.items()}}

    def newer_than(self, versions: dict[int, int]) -> list[bytes]:
        """Frames with everything that is not known to somebody who knows these versions."""
        return [
            frame(Kind.INTEREST, put_said(whole))
            for broker in (self._broker, *self.known)
            if (whole := self.whole(broker)) is not None and whole.version > versions.get(broker, 0)
        ]

    def whole(self, broker: int) -> Said | None:
        """Everything that a broker wants, ourselves included; None if nothing was said of it."""
        if broker == self._broker:
            # before anything was said in this life, what the last one said holds
            return Said(broker, Form.WHOLE, self._version, 0, self._needs.said) if self._is_begun else None
        known = self.known.get(broker)
        return None if known is None else Said(broker, Form.WHOLE, known.version, 0, known.entries)

    # -- what this broker wants

    @property
    def _is_begun(self) -> bool:
        """Whether something was said in this life."""
        return self._version % _PER_LIFE != 0

    @property
    def promised(self) -> int:
        """The version that will hold everything that is needed now."""
        return self._version + (self._needs.is_grown or not self._is_begun)

    @property
    def own(self) -> Entries:
        """What was said last of ourselves."""
        return self._needs.said

    @property
    def due(self) -> float | None:
        """When :meth:`say` has something to say; None if all is said."""
        return min((at for at in (self._grow_at, self._shrink_at) if at is not None), default=None)

    def begin(self, now: float) -> None:
        """Somebody is there who may remember what an earlier life wanted: it hears of this one within a while."""
        if not self._is_begun and self._shrink_at is None:
            self._shrink_at = now + SHRINK_S

    def need(self, entry: Entry, qos: int, now: float, deadline: float) -> int:
        """A subscription begins; the number under which it will be granted."""
        version = self._version
        if self._needs.add(self.substitutes.enter(entry, qos), qos):
            version += 1
        self._move(self.substitutes.fit(entry), now)
        self._note_due(now)
        self._number += 1
        self.requests.append(Request(self._number, version, deadline))
        return self._number

    def cover(self, *, optimally: bool, now: float) -> None:
        """Say the fewest entries from now on, or take back nothing that is needed (suboptimal covering)."""
        self._needs.cover(optimally=optimally)
        self._note_due(now)

    def release(self, entry: Entry, qos: int, now: float) -> None:
        """A subscription ends; the interest shrinks after a while."""
        stood = self.substitutes.leave(entry, qos)
        self._needs.remove(stood, qos)
        self._move(self.substitutes.relax(stood), now)
        self._note_due(now)

    def _move(self, moves: Iterable[Move], now: float) -> None:
        """Needs are said in another way: what replaces them is said with the next step, and they go with it."""
        for move in moves:
            self._needs.move(*move)
            self._shrink_at = now + GATHER_S

    def _note_due(self, now: float) -> None:
        if self._needs.is_grown and self._grow_at is None:
            self._grow_at = now + GATHER_S
        if self._needs.is_shrunk and self._shrink_at is None:
            self._shrink_at = now + SHRINK_S

    def say(self, now: float) -> bytes | None:
        """The next version of our own interest, as a frame to be flooded; None if there is nothing new to say."""
        is_shrinking = self._shrink_at is not None and now >= self._shrink_at
        base, is_whole = self._version, not self._is_begun
        self._move(self.substitutes.go_on(_MOVES), now)
        step = self._needs.step(is_shrinking=is_shrinking)
        self._grow_at = None
        if is_shrinking:
            self._shrink_at = None
        self._go_on(now, base, is_shrinking=is_shrinking)
        if step is None and not (is_whole and is_shrinking):
            if any(request.version > base for request in self.requests):
                self._version += 1  # what they asked for went before it was said
                return self._step(base, Said(self._broker, Form.DELTA, self._version, base), is_whole=is_whole)
            return None
        self._version += 1
        added, removed = step or ({}, frozenset())
        return self._step(base, Said(self._broker, Form.DELTA, self._version, base, added, removed), is_whole=is_whole)

    def _go_on(self, now: float, base: int, *, is_shrinking: bool) -> None:
        """What was too much for one step comes with the next ones, in between others have their turn."""
        if self._needs.is_grown:
            self._grow_at = now + PAUSE_S
            for request in self.requests:
                # what it needs may be in a later step
                if request.version > base:
                    request.version = base + 2
        if (is_shrinking and self._needs.is_shrunk) or self.substitutes.is_moving:
            self._shrink_at = now + PAUSE_S

    def _step(self, base: int, said: Said, *, is_whole: bool) -> bytes:
        whole = self.whole(self._broker)
        return frame(Kind.INTEREST, put_said(whole if is_whole and whole is not None else said))

    def outlive(self, life: int, now: float) -> None:
        """Go on in a later life: what is needed is said once more, under its versions."""
        self._version = max(self._version, life * _PER_LIFE)
        self._shrink_at = now + GATHER_S

    def write_off(self, broker: int) -> News:
        """Take a broker to want nothing, until it says everything anew."""
        removed = frozenset(self.known.get(broker, Known(0, {})).entries)
        self.take(broker, {}, removed)
        # a step to the next version says nothing to who does not know this one
        self.conclude(broker, 0)
        self.forgotten(broker)
        return News(broker, 0, {}, removed)

    def is_written_off(self, broker: int) -> bool:
        """Whether somebody has said that a broker is gone for good, and it has said nothing since."""
        known = self.known.get(broker)
        return known is not None and known.version <= 1

    def forgotten(self, broker: int) -> None:
        """Another broker has begun anew, and knows nothing of what we want."""
        self._echoed.pop(broker, None)

    def echoed(self, broker: int, version: int) -> None:
        """Another broker has committed a version of our interest."""
        if version <= self._version:  # else somebody means an earlier life, which had a later clock
            self._echoed[broker] = max(version, self._echoed.get(broker, 0))

    def missing(self, reachable: Iterable[int]) -> set[int]:
        """The brokers whose echo a request waits for."""
        newest = max((request.version for request in self.requests), default=0)
        return {broker for broker in reachable if self._echoed.get(broker, 0) < newest}

    def grant(self, reachable: frozenset[int], now: float) -> tuple[list[Granted], int]:
        """The requests that need wait no longer, and how many of them somebody had not echoed."""
        #: By version, who has echoed it; most requests of one moment have the same.
        echoes = {
            asked: frozenset([broker for broker, version in self._echoed.items() if version >= asked])
            for asked in {request.version for request in self.requests}
        }
        known = {
            asked
            for asked, echoed in echoes.items()
            if reachable <= echoed and (asked <= self._version or not reachable)
        }
        # tens of thousands may wait, and are looked at each time
        over = [request for request in self.requests if request.version in known or now >= request.deadline]
        if over:
            self.requests = [each for each in self.requests if each.version not in known and now < each.deadline]
        late = sum([request.version not in known for request in over])
        return [Granted(request.number, echoes[request.version]) for request in over], late

    def check(self) -> None:
        """What always holds, for tests."""
        self._needs.check()
        self.substitutes.check()
