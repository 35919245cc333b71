"""Named nodes and the ways between them: who reaches whom, how fast, and what chance does to it.

All chance comes from one seed, by the names of the two ends and the number of their connection, so a node that is added
does not change what happens to the others, and a world that is run twice does the same twice.  A partition lets lines
between its groups fall silent, as a cut cable does: nobody is told, and what was on the line is sent again when it
heals.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from random import Random

from tieline.sim.clock import Clock
from tieline.sim.endpoint import Endpoint, pair
from tieline.sim.link import IDEAL, Way
from tieline.sim.story import Story


@dataclass(frozen=True, slots=True, eq=False)
class _Line:
    """A connection between two nodes."""

    a: str
    b: str
    end: Endpoint


class VirtualNetwork:
    """Connections by the names of their ends."""

    def __init__(self, clock: Clock, *, seed: int = 0, usual: Way = IDEAL, story: Story | None = None) -> None:
        """``usual`` is the way between nodes of which nothing else is said; a ``story`` hears everything."""
        self.clock = clock
        self.seed = seed
        self.usual = usual
        self.story = story
        self._ways: dict[tuple[str, str], Way] = {}
        self._lines: list[_Line] = []
        self._made: dict[tuple[str, str], int] = {}
        #: The groups of a partition; who is in none of them reaches everybody who is in none.
        self._groups: dict[str, int] = {}

    def way(self, a: str, b: str, there: Way, back: Way | None = None) -> None:
        """From now on the way from ``a`` to ``b`` is like this; without ``back`` the way back is, too."""
        self._ways[a, b] = there
        self._ways[b, a] = there if back is None else back
        for line in self._open():
            if {line.a, line.b} == {a, b}:
                line.end.out.way, line.end.into.way = self.between(line.a, line.b), self.between(line.b, line.a)

    def between(self, a: str, b: str) -> Way:
        """What the way from one node to another is like."""
        return self._ways.get((a, b), self.usual)

    def connect(self, a: str, b: str) -> tuple[Endpoint, Endpoint]:
        """A new connection that ``a`` makes to ``b``: the end of each."""
        number = self._made[a, b] = self._made.get((a, b), 0) + 1
        chance = Random(f"{self.seed}|{a}|{b}|{number}").random  # noqa: S311 - luck that is to come out again
        ours, theirs = pair(self.clock, self.between(a, b), self.between(b, a), chance=chance)
        self._lines.append(_Line(a, b, ours))
        if self.story is not None:
            self.story.tell(a, "connects", b)
            self.story.listen(a, b, ours.out, ours.into)
        if self._is_cut(a, b):
            _silence(ours)
        return ours, theirs

    def partition(self, *groups: Iterable[str]) -> None:
        """Let nothing through between these groups, and between them and all others."""
        self._groups = {name: number for number, names in enumerate(groups, start=1) for name in names}
        self._tell(f"is cut off, in group {{group}} of {len(groups)}")
        self._apply()

    def heal(self) -> None:
        """Let everything through again."""
        self._tell("is joined again")
        self._groups = {}
        self._apply()

    @property
    def retried(self) -> int:
        """Segments that had to be sent again because a line had lost them."""
        return sum(line.end.out.retried + line.end.into.retried for line in self._lines)

    def _tell(self, what: str) -> None:
        if self.story is not None:
            for name, group in self._groups.items():
                self.story.tell(name, what.format(group=group))

    def _apply(self) -> None:
        for line in self._open():
            is_cut = self._is_cut(line.a, line.b)
            if is_cut and not line.end.out.is_silent:
                _silence(line.end)
            elif not is_cut and line.end.out.is_silent:
                line.end.out.speak()
                line.end.into.speak()

    def _is_cut(self, a: str, b: str) -> bool:
        return self._groups.get(a, 0) != self._groups.get(b, 0)

    def _open(self) -> list[_Line]:
        """Connections that are not over in both directions; the others are forgotten, but for what they counted."""
        return [line for line in self._lines if not (line.end.out.is_over and line.end.into.is_over)]


def _silence(end: Endpoint) -> None:
    end.out.fall_silent()
    end.into.fall_silent()
