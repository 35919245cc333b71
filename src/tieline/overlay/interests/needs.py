"""What the subscriptions of this broker need, and the fewest entries that say so.

Theory of operation
-------------------
An entry without group and condition covers every other one that is no group's, whose topics are among its own and whose
QoS is not higher: whoever sends us the one sends us the other.  So only entries that nothing covers are *said*.  Groups
are always said, since the origin names them one by one.

What is needed and not covered by what was said makes the interest *grow*, at once.  What was said and is not needed, or
is covered by now, makes it *shrink*, later and together.  Where an entry goes that covered others, those are in the
same step as its going: nobody ever knows less of us than we need.

That is optimal covering.  With suboptimal covering, the rules of the covering paper, what was said stays said while
somebody needs it, also when something wider comes that covers it: others keep more entries, and hear less where wide
subscriptions come and go.  What was said is the flag that the paper has for each upstream; others hear all the same.

A step looks only at entries that have changed and, where one that covers is gone, at those below it.  One client can
change ten thousand of them at a time, so a step does no more than it is allowed to, and the next one goes on.  What
grows comes first; of what shrinks, an entry is looked at after those below it, which are said by then.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from tieline.match.cover.filters import CoverTree
from tieline.overlay.interests.entries import Entries, Entry, Terms

#: What one step may do, in nodes of a tree (a few hundred nanoseconds each); and what to look at an entry counts for.
MOST: Final = 12_000
LOOKING: Final = 20


class Step(NamedTuple):
    """From what was said to what is said now: first everything new, then everything gone."""

    added: dict[Entry, Terms]
    removed: frozenset[Entry]


class _Shelf:
    """The entries on one filter that are no group's, with their terms."""

    __slots__ = ("conditional", "plain")

    def __init__(self) -> None:
        self.plain: tuple[Entry, Terms] | None = None
        self.conditional: dict[Entry, Terms] = {}


class Covering:
    """Entries that can be asked whether one of them covers another, and which ones one covers."""

    __slots__ = ("_shelves", "entries", "work")

    def __init__(self) -> None:
        self.entries: dict[Entry, Terms] = {}
        #: What was done to find out about entries, ever growing: nodes of the tree, about.
        self.work = 0
        self._shelves: CoverTree[_Shelf] = CoverTree()

    def put(self, entry: Entry, terms: Terms) -> None:
        """Add an entry, or give it other terms."""
        self.entries[entry] = terms
        if entry.share:
            return
        shelf = self._shelves.get(entry.filter)
        if shelf is None:
            shelf = _Shelf()
            self._shelves.put(entry.filter, shelf)
        if entry.is_plain:
            shelf.plain = entry, terms
        else:
            shelf.conditional[entry] = terms

    def remove(self, entry: Entry) -> None:
        """Take an entry out, if it is there."""
        if self.entries.pop(entry, None) is None or entry.share:
            return
        shelf = self._shelves.get(entry.filter)
        assert shelf is not None
        if entry.is_plain:
            shelf.plain = None
        else:
            del shelf.conditional[entry]
        if shelf.plain is None and not shelf.conditional:
            self._shelves.remove(entry.filter)

    def is_covered(self, entry: Entry, qos: int) -> bool:
        """Whether another entry brings all that this one wants."""
        if entry.share:
            return False
        visited = self._shelves.visited
        for shelf in self._shelves.coverers(entry.filter):
            if shelf.plain is not None and shelf.plain[0] != entry and shelf.plain[1].qos >= qos:
                self.work += self._shelves.visited - visited
                return True
        self.work += self._shelves.visited - visited
        return False

    def below(self, entry: Entry) -> Iterator[Entry]:
        """The entries whose topics are among those of a plain one, itself included."""
        if entry.is_plain:
            for shelf in self._shelves.covered(entry.filter):
                if shelf.plain is not None:
                    yield shelf.plain[0]
                yield from shelf.conditional


class Needs:
    """What is needed, counted by subscriptions, beside what was said."""

    def __init__(self) -> None:
        #: Whether what was said is taken back when something wider covers it: optimal covering.
        self._withdraws = True
        #: How many subscriptions need each entry, by QoS.
        self._counts: dict[Entry, list[int]] = {}
        self._needed = Covering()
        self._said = Covering()
        #: Entries that are to be looked at when the interest grows, and those that only a shrinking one has to look at.
        self._grown: dict[Entry, None] = {}
        self._shrunk: dict[Entry, None] = {}
        #: What one of the latter covered and is still to be looked at before it, which is the last of them.
        self._looking: deque[Entry] = deque()

    @property
    def said(self) -> Entries:
        """What was said last; together with what is growing never less than what is needed."""
        return self._said.entries

    def cover(self, *, optimally: bool) -> None:
        """Cover optimally or suboptimally from now on; what was said in vain so far is looked for."""
        if optimally and not self._withdraws:
            self._shrunk |= dict.fromkeys(self._said.entries)
        self._withdraws = optimally

    @property
    def is_grown(self) -> bool:
        """Whether something is needed that nobody was told of."""
        return bool(self._grown)

    @property
    def is_shrunk(self) -> bool:
        """Whether something was said that need not be."""
        return bool(self._shrunk or self._looking)

    def add(self, entry: Entry, qos: int) -> bool:
        """A subscription begins; whether others have to hear of it before it is acknowledged."""
        counts = self._counts.setdefault(entry, [0, 0, 0])
        counts[qos] += 1
        self._weigh(entry, counts)
        said = self._said.entries.get(entry)
        if said is not None and said.qos >= qos:
            if entry.share:
                self._grown[entry] = None  # the number of its members, for which nobody waits
            return False
        if self._said.is_covered(entry, qos):
            # what covers it may be about to go, perhaps with the next step
            self._shrunk[entry] = None
            if self._looking:
                self._grown[entry] = None
            return False
        self._grown[entry] = None
        # what it covers was said in vain from now on
        self._shrunk[entry] = None
        return True

    def remove(self, entry: Entry, qos: int) -> None:
        """A subscription ends; KeyError if there is none."""
        counts = self._counts[entry]
        if not counts[qos]:
            raise KeyError(entry)
        counts[qos] -= 1
        if not any(counts):
            del self._counts[entry]
            self._needed.remove(entry)
        else:
            self._weigh(entry, counts)
        self._shrunk[entry] = None

    def move(self, entry: Entry, to: Entry, counts: Iterable[int]) -> None:
        """Subscriptions that needed an entry need another one instead, which wants no less."""
        before, after = self._counts[entry], self._counts.setdefault(to, [0, 0, 0])
        for qos, count in enumerate(counts):
            before[qos] -= count
            after[qos] += count
        if any(before):
            self._weigh(entry, before)
        else:
            del self._counts[entry]
            self._needed.remove(entry)
            self._grown.pop(entry, None)
        self._weigh(to, after)
        self._grown[to] = None
        self._shrunk[to] = self._shrunk[entry] = None

    def _weigh(self, entry: Entry, counts: list[int]) -> None:
        qos = max(qos for qos, count in enumerate(counts) if count)
        self._needed.put(entry, Terms(qos, sum(counts) if entry.share else 0))

    def step(self, *, is_shrinking: bool, most: int = MOST) -> Step | None:
        """What is to be said next, found with about so much work; None if nothing new was found.

        Whether that was all, :attr:`is_grown` and :attr:`is_shrunk` say.
        """
        added: dict[Entry, Terms] = {}
        removed: set[Entry] = set()
        enough = self._needed.work + most
        #: What is needed and would be covered by others that are said by the end of this step, or of a later one.
        covered: dict[Entry, None] = {}
        while self._grown and self._needed.work < enough:
            entry = next(iter(self._grown))
            del self._grown[entry]
            terms = self._uncovered(entry)
            said = self._said.entries.get(entry)
            if terms is None:
                covered[entry] = None
            elif said is None or said < terms:
                added[entry] = terms
        if self._grown:
            self._grown |= covered
        while is_shrinking and (self._looking or self._shrunk) and self._needed.work < enough:
            entry = self._next_to_look_at()
            terms, said = self._uncovered(entry), self._said.entries.get(entry)
            if terms is None and said is not None:
                if self._withdraws or entry not in self._needed.entries:
                    removed.add(entry)
            elif terms is not None and said != terms:
                added[entry] = terms
        for entry, terms in added.items():
            self._said.put(entry, terms)
        for entry in removed:
            self._said.remove(entry)
        return Step(added, frozenset(removed)) if added or removed else None

    def _uncovered(self, entry: Entry) -> Terms | None:
        """The terms of an entry that is needed and that no other one covers."""
        self._needed.work += LOOKING
        terms = self._needed.entries.get(entry)
        return None if terms is None or self._needed.is_covered(entry, terms.qos) else terms

    def _next_to_look_at(self) -> Entry:
        if not self._looking:
            last = next(iter(self._shrunk))
            del self._shrunk[last]
            below = dict.fromkeys((*self._said.below(last), *self._needed.below(last)))
            below.pop(last, None)
            self._looking.extend(below)
            self._looking.append(last)
        return self._looking.popleft()

    def check(self) -> None:
        """What always holds, for tests: what was said covers what is needed, but for what is growing."""
        for entry, terms in self._needed.entries.items():
            said = self._said.entries.get(entry)
            is_said = said is not None and said.qos >= terms.qos
            assert is_said or self._said.is_covered(entry, terms.qos) or entry in self._grown, entry
