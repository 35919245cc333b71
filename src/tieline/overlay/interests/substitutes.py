"""What is said in the place of needs that would take too much to be said one by one: never less than they want.

Theory of operation
-------------------
Every need has a *cover*, which wants more: a condition that of a digest of all conditions on its filter; a filter the
one in which everything behind its last but one level is open.  As long as everything fits, each need is said as it is.
When conditions on one filter take more than their budget, those that cells can express are moved behind a digest, and
later ones are said exactly again until they take as much.  When all entries together take more than theirs, the largest
group with one cover is moved behind that.  What is said then is a superset, and the last hop decides exactly.

Nothing is moved back until little is left: half of the budget, so that nobody has others hear of every step.  Groups of
shared subscriptions are never moved: the origin names them one by one.

Tens of thousands of needs may have to move because of one, which takes tenths of a second.  So they move a few at a
time, with each need that comes or goes and whenever the owner goes on with it; what is said meanwhile is a superset,
too, and somewhat more than its budget, of which others take four times as much.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final, NamedTuple

from tieline.overlay.interests.digests import digest_of, is_digest
from tieline.overlay.interests.entries import MOST_BYTES, MOST_ENTRIES, Entry, size_of

#: A quarter of what others take: what was said and is on its way out counts there, too.
ENTRIES: Final = MOST_ENTRIES // 4
BYTES: Final = MOST_BYTES // 4
#: Bytes of the conditions on one filter that are said exactly.
CONDITION_BYTES: Final = 16_384
#: What is left of a budget when something had to be widened, so that the next need does not do so again.
_ROOM: Final = 0.75
#: Members of a group that is widened before all groups are; and levels to which all filters are cut first.
_LARGE, _DEEP = 8, 8
#: What is restored is taken to be no longer than this on average.
_LONG: Final = 256
_OPEN: Final = "/#"
#: Needs that move when it is found that some have to, and with each need that comes or goes from then on; and entries
#: that are looked at in vain in the time in which one moves.
_FIRST, _EACH, _LOOKED = 64, 2, 16
#: Units of work, about a hundred nanoseconds each, that a need takes.
_ENTERING, _DRAWING = 120, 1_500


class Move(NamedTuple):
    """Needs that are said in another way from now on: how many there are of each QoS."""

    entry: Entry
    to: Entry
    counts: tuple[int, int, int]


def cover_of(entry: Entry) -> Entry | None:
    """The next larger thing that wants everything that an entry wants; None if there is nothing larger."""
    if entry.condition:
        return Entry(entry.filter)
    levels = entry.filter.removesuffix(_OPEN).split("/")
    if entry.filter == "#" or (len(levels) == 1 and levels[0].startswith("$")):
        return None  # a wildcard does not see names that begin with $
    wider = "/".join(levels[:-1])
    return Entry(f"{wider}{_OPEN}" if len(levels) > 1 else "#")


class _Group:
    """What is said in its own words and has one cover."""

    __slots__ = ("members", "size")

    def __init__(self) -> None:
        self.members: dict[Entry, None] = {}
        self.size = 0


class Substitutes:
    """Which entry stands for each need, so that all of them fit."""

    def __init__(self, *, entries: int = ENTRIES, size: int = BYTES, condition_size: int = CONDITION_BYTES) -> None:
        self._most = entries
        self._most_size = size
        self._most_condition_size = condition_size
        #: By need, how many subscriptions of each QoS.
        self._needs: dict[Entry, list[int]] = {}
        #: By need, what stands for it, if that is something else; and the other way round.
        self._stand_in: dict[Entry, Entry] = {}
        self._behind: dict[Entry, dict[Entry, None]] = {}
        #: By cover, what is said in its own words; how many entries that are, and their bytes.
        self._groups: dict[Entry | None, _Group] = {}
        self._count = self._size = 0
        #: By filter and fingerprint, the size of its conditions that are said exactly, and the digest made last.
        self._conditions: dict[tuple[str, int], int] = {}
        self._digests: dict[tuple[str, int], Entry] = {}
        #: What still moves: behind covers, or back from behind these, in that order; None where one was looked for.
        self._moving: Iterator[Move | None] | None = None
        self._relaxed: dict[Entry, None] = {}

    def __len__(self) -> int:
        """How many entries are said."""
        return self._count

    @property
    def size(self) -> int:
        """About as many bytes as those take."""
        return self._size

    def effort(self, entry: Entry) -> int:
        """What it costs to enter an entry, in units of work: a condition that goes into cells is read and drawn."""
        shelf = entry.filter, entry.fingerprint
        is_crowded = shelf in self._digests or 2 * self._conditions.get(shelf, 0) > self._most_condition_size
        return _DRAWING if entry.condition and is_crowded else _ENTERING

    # -- needs come and go

    def enter(self, entry: Entry, qos: int) -> Entry:
        """One more subscription needs an entry: what stands for it."""
        if entry.share:
            return entry
        counts = self._needs.get(entry)
        if counts is None:
            counts = self._needs[entry] = [0, 0, 0]
            above = self._above(entry) if self._behind else None
            if above is None:
                self._say(entry)
            else:
                self._put_behind(entry, above)
        counts[qos] += 1
        return self._stand_in.get(entry, entry)

    def leave(self, entry: Entry, qos: int) -> Entry:
        """One subscription fewer: what stood for it."""
        if entry.share:
            return entry
        counts = self._needs[entry]
        stood = self._stand_in.get(entry, entry)
        counts[qos] -= 1
        if not any(counts):
            del self._needs[entry]
            if stood is entry:
                self._unsay(entry)
            else:
                self._take_from_behind(entry, stood)
        return stood

    def _above(self, entry: Entry) -> Entry | None:
        """The widest stand-in that wants what an entry wants."""
        found, cover = None, cover_of(entry)
        while cover is not None:
            if cover in self._behind:
                found = cover
            cover = cover_of(cover)
        return found

    def _say(self, entry: Entry) -> None:
        group = self._groups.setdefault(cover_of(entry), _Group())
        if entry not in group.members:
            group.members[entry] = None
            size = size_of(entry)
            group.size += size
            self._count += 1
            self._size += size
            self._weigh(entry, size)

    def _unsay(self, entry: Entry) -> None:
        """Nothing needs an entry in its own words any more, unless it stands for others or is needed itself."""
        if entry in self._behind or (entry in self._needs and entry not in self._stand_in):
            return
        cover = cover_of(entry)
        group = self._groups[cover]
        del group.members[entry]
        size = size_of(entry)
        group.size -= size
        self._count -= 1
        self._size -= size
        self._weigh(entry, -size)
        if not group.members:
            del self._groups[cover]

    def _weigh(self, entry: Entry, size: int) -> None:
        if entry.condition and not is_digest(entry.condition):
            shelf = entry.filter, entry.fingerprint
            self._conditions[shelf] = self._conditions.get(shelf, 0) + size
            if not self._conditions[shelf]:
                del self._conditions[shelf]

    def _put_behind(self, entry: Entry, to: Entry) -> None:
        if to not in self._behind:
            self._behind[to] = {}
            self._say(to)
        self._behind[to][entry] = None
        self._stand_in[entry] = to

    def _take_from_behind(self, entry: Entry, stood: Entry) -> None:
        behind = self._behind[stood]
        del behind[entry]
        del self._stand_in[entry]
        if not behind:
            del self._behind[stood]
            shelf = stood.filter, stood.fingerprint
            if self._digests.get(shelf) == stood:
                del self._digests[shelf]
            self._unsay(stood)

    # -- what does not fit

    def fit(self, entry: Entry) -> list[Move]:
        """An entry has come: what has to be said in another way, so that everything fits; the rest moves later."""
        moves: list[Move] = []
        shelf = entry.filter, entry.fingerprint
        if entry.condition and self._conditions.get(shelf, 0) > self._most_condition_size:
            self._digest(shelf, moves)
        most = _EACH
        if (self._moving is None or self._relaxed) and not self._fits(1.0):
            self._relaxed.clear()
            self._moving = self._widen()
            most = _FIRST
        self._move_some(most, moves)
        return moves

    @property
    def is_moving(self) -> bool:
        """Whether more needs are to be said in another way than was found by now."""
        return self._moving is not None

    def go_on(self, most: int) -> list[Move]:
        """Others have had their turn: about so many needs more that are said in another way."""
        moves: list[Move] = []
        self._move_some(most, moves)
        return moves

    def _move_some(self, most: int, moves: list[Move]) -> None:
        if self._moving is None:
            return
        steps = list(islice(self._moving, most))
        moves += [step for step in steps if step is not None]
        if len(steps) < most:
            self._moving = None

    def _fits(self, share: float) -> bool:
        return self._count <= share * self._most and self._size <= share * self._most_size

    def _widen(self) -> Iterator[Move | None]:
        """Large groups go behind their covers, the largest first; if that is not enough, all that is deep does."""
        large = [(len(group.members), cover) for cover, group in self._groups.items() if cover]
        for _, cover in sorted([each for each in large if each[0] >= _LARGE], key=lambda each: -each[0]):
            if self._fits(_ROOM):
                return
            group = self._groups.get(cover)
            for member in list(group.members) if group is not None else ():
                yield from self._move_all(member, cover)
        for depth in range(_DEEP, -1, -1):
            if self._fits(_ROOM):
                return
            for looked, member in enumerate([each for group in self._groups.values() for each in group.members]):
                wider = _cut(member, depth)
                if wider is not None:
                    yield from self._move_all(member, wider)
                elif looked % _LOOKED == 0:
                    yield None

    def _digest(self, shelf: tuple[str, int], moves: list[Move]) -> None:
        """Say the conditions on a filter by cells, and all of it where they are too many that no cell can tell."""
        filter, fingerprint = shelf
        cover = Entry(filter)
        exact = [
            member
            for member in self._groups[cover].members
            if member.fingerprint == fingerprint and not is_digest(member.condition)
        ]
        before = self._digests.get(shelf)
        conditions = [member.condition for member in exact]
        text, held = digest_of(conditions, before.condition if before is not None else "")
        if not text and before is not None:
            before = None
            text, held = digest_of(conditions)
        if text:
            digest = Entry(filter, "", text, fingerprint)
            for condition in held:
                moves += self._move_all(Entry(filter, "", condition, fingerprint), digest)
            if before is not None and before != digest:
                moves += self._move_all(before, digest)
            self._digests[shelf] = digest
        if self._conditions.get(shelf, 0) > self._most_condition_size // 2:
            for member in list(self._groups[cover].members):
                moves += self._move_all(member, cover)

    def _move_all(self, member: Entry, to: Entry) -> Iterator[Move]:
        """Have whatever a said entry stands for, itself included, stand behind another one."""
        for need in list(self._behind.get(member, ())):
            # others may have come and gone since the last one moved
            if self._stand_in.get(need) == member:
                self._take_from_behind(need, member)
                yield self._move(need, member, to)
        if member in self._needs and member not in self._stand_in:
            move = self._move(member, member, to)
            self._unsay(member)
            yield move

    def _move(self, need: Entry, stood: Entry, to: Entry) -> Move:
        self._put_behind(need, to)
        counts = self._needs[need]
        return Move(stood, to, (counts[0], counts[1], counts[2]))

    # -- what fits again

    def relax(self, stood: Entry) -> list[Move]:
        """Something has gone for which an entry stood: what is said in its own words again; the rest moves later."""
        if stood not in self._behind and stood.condition:
            stood = self._digests.get((stood.filter, stood.fingerprint), stood)
        most = _EACH
        if stood in self._behind and stood not in self._relaxed and self._is_little(stood):
            if self._moving is None:
                self._moving = self._restore()
                most = _FIRST
            if most == _FIRST or self._relaxed:
                self._relaxed[stood] = None
        moves: list[Move] = []
        self._move_some(most, moves)
        return moves

    def _is_little(self, stood: Entry) -> bool:
        """Whether what is behind an entry would fit without it."""
        behind = self._behind[stood]
        first = next(iter(behind))
        if first.condition and first.filter == stood.filter:
            # adding up is worth it only where there are few: each takes more than twenty bytes
            if len(behind) > self._most_condition_size // 40:
                return False
            exact = self._conditions.get((first.filter, first.fingerprint), 0)
            return 2 * (exact + sum(map(size_of, behind))) <= self._most_condition_size
        return 2 * len(self._needs) <= self._most and len(self._needs) < self._most_size // _LONG

    def _restore(self) -> Iterator[Move | None]:
        """What can be said in its own words again goes back from behind what stands for it."""
        while self._relaxed:
            stand_in = next(iter(self._relaxed))
            for need in list(self._behind.get(stand_in, ())):
                if self._stand_in.get(need) != stand_in:
                    continue  # it has gone since
                self._take_from_behind(need, stand_in)
                self._say(need)
                counts = self._needs[need]
                yield Move(stand_in, need, (counts[0], counts[1], counts[2]))
            self._relaxed.pop(stand_in, None)

    def check(self) -> None:
        """What always holds, for tests."""
        said = {member for group in self._groups.values() for member in group.members}
        assert len(said) == self._count
        assert sum(map(size_of, said)) == self._size
        for need in self._needs:
            assert self._stand_in.get(need, need) in said, need
        for stand_in, behind in self._behind.items():
            assert behind
            assert all(self._stand_in[need] == stand_in for need in behind)
        assert said == {self._stand_in.get(need, need) for need in self._needs}


def _cut(entry: Entry, depth: int) -> Entry | None:
    """The entry for all topics with its first levels; None if it is no longer than that, or cannot be cut."""
    levels = entry.filter.removesuffix(_OPEN).split("/")
    if entry.filter == "#" or len(levels) <= depth or entry.share:
        return None
    if depth:
        return Entry("/".join(levels[:depth]) + _OPEN)
    # a wildcard does not see names that begin with $
    return None if levels[0].startswith("$") else Entry("#")
