"""What other brokers are taken to want because they do not know yet what is published here.

Whoever spares us a part of its interest says with marks by which declarations it goes
(:mod:`tieline.overlay.interests.sparing`).  If there are marks, and none for what we have declared, it may want
anything that is published here: so it is taken to want all of that, until its mark comes.  What is too much is sorted
out where it arrives.

A mark that speaks for us is believed when everything is taken in that was said with it; one that speaks against us at
once, before anything that goes with it is withdrawn.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from tieline.overlay.interests.entries import Entries, Entry, Terms
from tieline.overlay.interests.interests import Follower, Interests
from tieline.overlay.interests.marks import declared, is_knowledge, is_mark, knowledge

#: What is known of a broker of which nothing is known.
_NOTHING: Final = frozenset({""})
_HIGHEST: Final = Terms(2)
_NONE: Final[frozenset[Entry]] = frozenset()


class Supplement:
    """Stands between what is learned of others and who follows that."""

    def __init__(self, name: str, interests: Interests, follower: Follower) -> None:
        """``name`` is ours; nothing is declared yet."""
        self._name = name
        self._interests = interests
        self._follower = follower
        self._mark = knowledge(name, None)
        self._published: tuple[Entry, ...] = (Entry("#"),)
        #: By broker, what it says of itself, and of this which marks say by what it goes.
        self._marks: dict[int, set[Entry]] = {}
        self._knows: dict[int, set[Entry]] = {}
        #: Brokers that have said something else of themselves, and are not through with what they say.
        self._changed: set[int] = set()
        #: By broker that is known, the filters of what may be published at it; None if that is anything.
        self.declared: dict[int, frozenset[str] | None] = {}
        #: By broker, what it is taken to want beside what it says.
        self.added: dict[int, frozenset[Entry]] = {}

    def declare(self, filters: Iterable[str] | None) -> None:
        """Something else may be published here from now on; None if that is anything."""
        declared = None if filters is None else frozenset(filters)
        mark = knowledge(self._name, declared)
        if mark == self._mark:
            return
        self._mark = mark
        self._published = (Entry("#"),) if declared is None else tuple(Entry(each) for each in sorted(declared))
        for broker in self._knows:
            if self._is_unaware(broker):
                self._add(broker)
            else:
                self._take_back(broker)

    def learned(self, broker: int, added: Entries, removed: frozenset[Entry]) -> None:
        """A broker wants something else than before: what is added stays, whatever it says of that."""
        ours = self.added.get(broker, _NONE)
        self._follower(broker, {entry: terms for entry, terms in added.items() if entry not in ours}, _NONE)
        new, gone = [entry for entry in added if is_mark(entry)], [entry for entry in removed if is_mark(entry)]
        if new or gone:
            marks = self._marks.setdefault(broker, set())
            marks.update(new)
            marks.difference_update(gone)
            self._knows[broker] = set(filter(is_knowledge, marks))
            self._changed.add(broker)
            if self._is_unaware(broker) and broker not in self.added:
                # before anything goes that was said under another declaration
                self._add(broker)
        if removed:
            ours = self.added.get(broker, _NONE)
            self._follower(broker, {}, frozenset([entry for entry in removed if entry not in ours]))

    def concluded(self, broker: int) -> bool:
        """Everything is taken in that a broker has said; whether it has declared something else than before."""
        if broker in self.added and not self._is_unaware(broker):
            self._take_back(broker)
        if self._interests.is_written_off(broker):
            return self.declared.pop(broker, _NOTHING) is not _NOTHING
        if broker in self.declared and broker not in self._changed:
            return False
        self._changed.discard(broker)
        before = self.declared.get(broker, _NOTHING)
        self.declared[broker] = now = declared(self._marks.get(broker, ()))
        return before is _NOTHING or before != now

    def _is_unaware(self, broker: int) -> bool:
        knows = self._knows.get(broker)
        return bool(knows) and self._mark not in (knows or ())

    def _add(self, broker: int) -> None:
        """Take a broker to want everything that is published here, instead of what was added before."""
        before = self.added.get(broker, frozenset())
        self.added[broker] = now = frozenset(self._published)
        wanted = self._said_by(broker)
        new = {entry: _HIGHEST for entry in self._published if entry not in before and entry not in wanted}
        gone = frozenset([entry for entry in before - now if entry not in wanted])
        self._follower(broker, new, gone)

    def _take_back(self, broker: int) -> None:
        before = self.added.pop(broker, frozenset())
        wanted = self._said_by(broker)
        gone = frozenset([entry for entry in before if entry not in wanted])
        if gone:
            self._follower(broker, {}, gone)

    def _said_by(self, broker: int) -> Entries:
        known = self._interests.known.get(broker)
        return {} if known is None else known.entries
