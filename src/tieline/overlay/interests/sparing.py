"""What of our interest others need not hear, because nothing that could meet it is published at any of them.

Theory of operation
-------------------
Brokers may *declare* what is published at them.  As soon as all others have, what meets none of the declarations is
*spared*: it is wanted here, and nobody is told.  Groups and topics that begin with $ are never spared.

Declarations change, and whoever has changed one must know whether what it hears goes by the new one already.  So a
broker that spares anything says of each other broker by which declaration it goes, with a mark among what it wants
(:func:`~tieline.overlay.interests.marks.knowledge`), and keeps this order:

1. what was spared and meets a new declaration is told, until everybody in reach has it;
2. the marks are told, and those of before withdrawn;
3. once these have gone, what meets no declaration any more is withdrawn.

So a broker with the mark of somebody's declaration is told everything that can be met by it, in every version of our
interest.  One that finds marks, and not its own, takes it that everything is wanted that is published at it
(:mod:`tieline.overlay.interests.supplement`).  Both sides go by what was said, so it does not matter who hears what
first, and a declaration may change at any time.

One declaration can concern tens of thousands of entries, so each step takes a portion of them at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final, Protocol

from tieline.core.timers import Timers
from tieline.match.cover.filters import OverlapTree
from tieline.overlay.interests.entries import Entry
from tieline.overlay.interests.marks import knowledge

#: Entries that are looked at in one go, and the time between two of these.
_PORTION: Final = 200
_PAUSE_S: Final = 0.005
#: How often it is looked whether marks have gone that were withdrawn, which is said lazily.
_LOOK_S: Final = 0.5
#: How often it is looked whether others know what was spared.
_WAIT_S: Final = 0.02
#: Something wanted (True) or wanted no longer.
Change = tuple[Entry, bool]


class Telling(Protocol):
    """What tells others what is wanted."""

    def tell(self, changes: list[Change], now: float) -> set[int]:
        """Tell some changes; the numbers of those that are not known everywhere yet."""

    def when_known(self, numbers: Iterable[int], then: Callable[[], None]) -> None:
        """Have something done when all brokers in reach know of what has these numbers."""

    @property
    def said(self) -> Collection[Entry]:
        """What others were told last."""

    @property
    def is_growing(self) -> bool:
        """Whether something is wanted that is still to be told."""


class Sparing:
    """Decides what of our interest is told."""

    def __init__(self, telling: Telling, timers: Timers) -> None:
        self._telling = telling
        self._timers = timers
        #: How often each thing is wanted: what is told, and what is spared.
        self._told: dict[Entry, int] = {}
        self.spared: dict[Entry, int] = {}
        #: What all declarations together leave open; None while somebody has declared nothing.  Of what goes on now,
        #: and of what it leads to.
        self._open: OverlapTree | None = None
        self._next: OverlapTree | None = None
        #: By broker, what it has declared, None for nothing; and whether that has changed since a round began.
        self._declarations: dict[str, frozenset[str] | None] = {}
        self._is_stale = False
        self._is_busy = False
        #: The marks that are told.
        self._marks: frozenset[Entry] = frozenset()
        #: Portions of what was spared that somebody does not know of yet.
        self._unknown = 0

    # -- what is wanted

    def sort(self, changes: Iterable[Change]) -> list[Change]:
        """Those of some changes that others are to hear of."""
        heard: list[Change] = []
        for entry, is_new in changes:
            if not _can_be_spared(entry):
                heard.append((entry, is_new))
            elif is_new:
                if self._is_met(entry):
                    self._told[entry] = self._told.get(entry, 0) + 1
                    heard.append((entry, True))
                else:
                    self.spared[entry] = self.spared.get(entry, 0) + 1
            elif not _less(self.spared, entry):
                _less(self._told, entry)
                heard.append((entry, False))
        return heard

    def _is_met(self, entry: Entry) -> bool:
        """Whether something may be published that an entry wants, also while declarations change."""
        if self._open is None or entry in self._told or self._open.meets(entry.filter):
            return True
        return self._is_busy and (self._next is None or self._next.meets(entry.filter))

    # -- what is declared

    def declare(self, declarations: Mapping[str, frozenset[str] | None]) -> None:
        """The declarations of all other brokers that are known, by name."""
        if dict(declarations) == self._declarations:
            return
        self._declarations = dict(declarations)
        self._is_stale = True
        if not self._is_busy:
            self._is_busy = True
            self._next = self._open
            self._timers.soon(self._begin)

    @property
    def _is_sparing(self) -> bool:
        """Whether everybody has declared something."""
        return bool(self._declarations) and None not in self._declarations.values()

    def _begin(self, now: float) -> None:
        """A round begins, with the declarations as they are."""
        self._is_stale = False
        self._next = None
        marks: frozenset[Entry] = frozenset()
        if self._is_sparing:
            filters = {each for declared in self._declarations.values() for each in declared or ()}
            self._next = OverlapTree.of(filters)
            marks = frozenset(knowledge(name, declared) for name, declared in self._declarations.items())
        self._grow(list(self.spared), marks, now)

    def _grow(self, left: list[Entry], marks: frozenset[Entry], now: float) -> None:
        """Tell of what was spared and can be met; the last portion waits until others have it."""
        portion, left = left[:_PORTION], left[_PORTION:]
        changes: list[Change] = []
        for entry in portion:
            if entry in self.spared and (self._next is None or self._next.meets(entry.filter)):
                count = self.spared.pop(entry)
                self._told[entry] = self._told.get(entry, 0) + count
                changes += [(entry, True)] * count
        numbers = self._telling.tell(changes, now)
        if numbers:
            self._unknown += 1
            self._telling.when_known(numbers, self._known)
        if left:
            self._timers.at(now + _PAUSE_S, lambda then: self._grow(left, marks, then))
        else:
            self._mark(marks, now)

    def _known(self) -> None:
        self._unknown -= 1

    def _mark(self, marks: frozenset[Entry], now: float) -> None:
        """Say by what this goes; a round that declarations have overtaken begins again, and says nothing."""
        if self._is_stale:
            self._begin(now)
            return
        if self._unknown or self._telling.is_growing:
            self._timers.at(now + _WAIT_S, lambda then: self._mark(marks, then))
            return
        gone, new = self._marks - marks, marks - self._marks
        self._marks = marks
        changes = [*((mark, True) for mark in sorted(new)), *((mark, False) for mark in sorted(gone))]
        if changes:
            self._telling.tell(changes, now)
        self._await(gone, now)

    def _await(self, gone: frozenset[Entry], now: float) -> None:
        """Wait until marks that were withdrawn are no longer said, and those that are new are."""
        said = self._telling.said
        if any(mark in said for mark in gone) or any(mark not in said for mark in self._marks):
            self._timers.at(now + _LOOK_S, lambda then: self._await(gone, then))
            return
        self._open = self._next
        self._shrink(list(self._told) if self._open is not None else [], now)

    def _shrink(self, left: list[Entry], now: float) -> None:
        """Withdraw what can be met no longer."""
        portion, left = left[:_PORTION], left[_PORTION:]
        changes: list[Change] = []
        open_ = self._open
        if self._is_stale or open_ is None:
            portion, left = [], []
        for entry in portion:
            if entry in self._told and open_ is not None and not open_.meets(entry.filter):
                count = self._told.pop(entry)
                self.spared[entry] = self.spared.get(entry, 0) + count
                changes += [(entry, False)] * count
        if changes:
            self._telling.tell(changes, now)
        if left:
            self._timers.at(now + _PAUSE_S, lambda then: self._shrink(left, then))
        elif self._is_stale:
            self._begin(now)
        else:
            self._is_busy = False


def _can_be_spared(entry: Entry) -> bool:
    """Groups are named one by one, and nobody declares topics that begin with $."""
    return not entry.share and not entry.filter.startswith("$")


def _less(counts: dict[Entry, int], entry: Entry) -> bool:
    """One fewer; whether there was one."""
    count = counts.get(entry, 0)
    if count > 1:
        counts[entry] = count - 1
    elif count:
        del counts[entry]
    return bool(count)
