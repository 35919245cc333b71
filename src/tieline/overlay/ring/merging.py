"""How what many want becomes one summary: ours under a budget of bytes, and the paper's one rectangle per type.

Theory of operation
-------------------
*Digests* keep boxes as they are while they fit into the budget; then the cells that they touch, on the declared grid,
which two sums have in common whoever made them, so that joining is one OR.  Filters beyond their share of the budget
are cut to fewer levels.  *Rectangles* keep the least box around all boxes of a type, out to the borders of its cells:
the paper's ``S_aug`` with its intervals, by other bytes.  Both only ever add to what is wanted.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import ClassVar, Final, Protocol

from tieline.match.box import Box
from tieline.match.cover.filters import canonical, covers
from tieline.match.merge.digest import BoxDigest, CellDigest, Routing
from tieline.match.merge.union import bounding
from tieline.overlay.ring.events import RingSubscription, Spaces
from tieline.overlay.ring.summary import EVERYTHING, Level, Summary, is_cut_alike

#: Bytes of one summary for each of its types, and for its filters.
BUDGET: Final = 1_024
#: Digests whose cells are remembered.
_MOST_CUT: Final = 1_024


class Merging(Protocol):
    """Makes summaries of subscriptions, and one summary of several."""

    name: ClassVar[str]

    def of(self, subscriptions: Iterable[RingSubscription]) -> Summary:
        """What a broker wants."""
        ...

    def joined(self, one: Summary, other: Summary) -> Summary:
        """What either of two wants, or more."""
        ...


def admitted(summary: Summary, spaces: Spaces) -> Summary:
    """What a peer has said, as far as it can be joined with others: a type that is declared otherwise is everything."""
    for name, level in summary.types.items():
        routing = spaces.get(name)
        if routing is None:
            return EVERYTHING
        if isinstance(level, CellDigest) and level.routing.encode() != routing.encode():
            return EVERYTHING
        if not level.fits(max(routing.places) + 1) and isinstance(level, BoxDigest) and level.boxes:
            return EVERYTHING
    return summary


def _sorted_out(
    subscriptions: Iterable[RingSubscription], spaces: Spaces
) -> tuple[set[str], dict[str, dict[Box, None]]]:
    """Filters that are wanted as they are, and boxes by the declared type that they belong to."""
    filters: set[str] = set()
    boxes: dict[str, dict[Box, None]] = {}
    for subscription in subscriptions:
        space = spaces.get(subscription.type)
        if subscription.box is None or space is None or not space.fits(len(subscription.box.lo)):
            filters.add(subscription.filter)
        elif not subscription.box.is_empty:
            boxes.setdefault(subscription.type, {})[subscription.box] = None
    return filters, boxes


class Digests:
    """As exact as a number of bytes allows."""

    name: ClassVar[str] = "digests"

    def __init__(self, spaces: Spaces, budget: int = BUDGET) -> None:
        self._spaces = spaces
        self._budget = budget
        #: Cells of boxes that are joined again and again: what a broker wants itself, for one.
        self._cut: dict[BoxDigest, CellDigest] = {}

    def of(self, subscriptions: Iterable[RingSubscription]) -> Summary:
        filters, boxes = _sorted_out(subscriptions, self._spaces)
        types = {name: self._level(found, self._spaces[name]) for name, found in boxes.items()}
        return Summary(fewer_filters(filters, self._budget), types)

    def joined(self, one: Summary, other: Summary) -> Summary:
        if one.is_empty or one is other:
            return other
        if other.is_empty:
            return one
        if one.is_everything or other.is_everything:
            return EVERYTHING
        types = _joined_types(one.types, other.types, self._both)
        return Summary(fewer_filters(one.filters | other.filters, self._budget), types)

    def _level(self, boxes: Collection[Box], routing: Routing) -> Level:
        exact = BoxDigest(boxes)
        return exact if exact.size <= self._budget else CellDigest.of(boxes, routing)

    def _both(self, name: str, one: Level, other: Level) -> Level:
        routing = self._spaces.get(name)
        if isinstance(one, BoxDigest) and isinstance(other, BoxDigest):
            boxes = dict.fromkeys((*one.boxes, *other.boxes))
            if routing is None:
                raise ValueError(f"{name} is no declared type")
            return self._level(boxes, routing)
        ours, theirs = self._cells(one, other), self._cells(other, one)
        if not is_cut_alike(ours, theirs):
            raise ValueError(f"two brokers have declared {name} otherwise")
        return ours.joined(theirs)

    def _cells(self, level: Level, other: Level) -> CellDigest:
        if isinstance(level, CellDigest):
            return level
        assert isinstance(other, CellDigest), "one of both has cells"
        found = self._cut.get(level)
        if found is None or found.routing is not other.routing:
            if len(self._cut) >= _MOST_CUT:
                self._cut.clear()
            found = self._cut[level] = CellDigest.of(level.boxes, other.routing)
        return found


class Rectangles:
    """The paper's: one rectangle for all boxes of a type, and no end of filters."""

    name: ClassVar[str] = "rectangles"

    def __init__(self, spaces: Spaces) -> None:
        self._spaces = spaces

    def of(self, subscriptions: Iterable[RingSubscription]) -> Summary:
        filters, boxes = _sorted_out(subscriptions, self._spaces)
        types = {name: BoxDigest([self._snapped(name, bounding(found))]) for name, found in boxes.items()}
        return Summary(filters, types)

    def joined(self, one: Summary, other: Summary) -> Summary:
        if one.is_everything or other.is_everything:
            return EVERYTHING
        return Summary(one.filters | other.filters, _joined_types(one.types, other.types, self._both))

    def _snapped(self, name: str, box: Box) -> Box:
        """A box out to the borders of its cells, so that a point is inside exactly if its cell is."""
        routing = self._spaces[name]
        if set(routing.places) != set(range(len(box.lo))):
            return box
        lowest, highest = routing.space.box_cells(routing.project(box))
        first, last = routing.space.cell_box(lowest), routing.space.cell_box(highest)
        at = {place: axis for axis, place in enumerate(routing.places)}
        axes = [at[place] for place in range(len(box.lo))]
        return Box(tuple(first.lo[axis] for axis in axes), tuple(last.hi[axis] for axis in axes))

    @staticmethod
    def _both(name: str, one: Level, other: Level) -> Level:
        if not isinstance(one, BoxDigest) or not isinstance(other, BoxDigest):
            raise ValueError(f"{name} is told in cells, of which there is no rectangle")  # noqa: TRY004 - both are levels
        return BoxDigest([bounding((*one.boxes, *other.boxes))])


def _joined_types(one: Mapping[str, Level], other: Mapping[str, Level], both: _Both) -> dict[str, Level]:
    types = {**one, **other}
    for name in one.keys() & other.keys():
        ours, theirs = one[name], other[name]
        types[name] = ours if ours is theirs else both(name, ours, theirs)
    return types


class _Both(Protocol):
    def __call__(self, name: str, one: Level, other: Level) -> Level:
        """A level for what two levels of one type want."""


def fewer_filters(filters: Collection[str], budget: int) -> Collection[str]:
    """Filters within a number of bytes: all of them, or without those that others cover, or cut to fewer levels."""
    if _size(filters) <= budget:
        return filters
    found = _uncovered(filters)
    depth = max(filter.count("/") for filter in found)
    while _size(found) > budget and depth > 0:
        found = _uncovered({_cut(filter, depth) for filter in found})
        depth -= 1
    # what begins with $ is no part of +, so no number of them can be cut to nothing
    return found if _size(found) <= budget else {"#", *(filter for filter in found if filter.startswith("$"))}


def _size(filters: Iterable[str]) -> int:
    return sum(len(filter) + 1 for filter in filters)


def _cut(filter: str, depth: int) -> str:
    levels = filter.split("/")
    return filter if len(levels) <= depth else "/".join([*levels[:depth], "#"])


def _uncovered(filters: Collection[str]) -> set[str]:
    # two spellings of one filter would each be left out for the other
    filters = set(map(canonical, filters))
    wide = {filter for filter in filters if filter.endswith("#") or "+" in filter}
    return {one for one in filters if not any(other != one and covers(other, one) for other in wide)}
