"""From a term to a few boxes: the disjunctive normal form, kept small while it grows.

Theory of operation
-------------------
A leaf is a list of regions: boxes, each either exact (the term holds everywhere in it) or only a superset (it may hold
there, and nowhere else).  ``or`` appends lists, ``and`` intersects each with each; empty boxes and those inside another
are left out at once.  Whenever a list becomes longer than ``MAX_BOXES``, neighbours are replaced two by two by the box
around both, which is a superset and no longer exact.  So the result always covers the term, the work is bounded, and
the boxes are exact whenever none had to be given up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import product
from operator import ge, le
from typing import Final, NamedTuple, TypeAlias

from tieline.match.box import Box
from tieline.match.where.terms import And, Leaf, Not, Or, Term

#: Boxes of one predicate.
MAX_BOXES: Final = 32
#: Intersections of one ``and``: more would be given up again anyway, unless nearly all of them were empty.
_MAX_PAIRS: Final = 8 * MAX_BOXES


class Region(NamedTuple):
    """A box, and whether a term holds in all of it."""

    box: Box
    is_exact: bool


#: The regions of a leaf, or of its negation.
Regions: TypeAlias = Callable[[Leaf, bool], Iterable[Region]]


def cover(term: Term, regions: Regions, *, is_negated: bool = False) -> list[Region]:
    """At most ``MAX_BOXES`` regions that contain every point where a term, or its negation, is true."""
    if isinstance(term, Not):
        return cover(term.term, regions, is_negated=not is_negated)
    if not isinstance(term, And | Or):
        return _gathered(regions(term, is_negated))
    parts = [cover(part, regions, is_negated=is_negated) for part in term.terms]
    if isinstance(term, And) is is_negated:  # a negated `and` is an `or`, and the other way round
        return _gathered(region for part in parts for region in part)
    # The short ones first, so that the long ones meet little.
    parts.sort(key=len)
    met = parts[0]
    for part in parts[1:]:
        met = _met(met, part)
    return met


def _met(one: list[Region], other: list[Region]) -> list[Region]:
    while len(one) * len(other) > _MAX_PAIRS:
        one, other = sorted((one, other), key=len)
        other = _loosened(other)
    return _gathered(Region(_intersection(a.box, b.box), a.is_exact and b.is_exact) for a, b in product(one, other))


def _gathered(regions: Iterable[Region]) -> list[Region]:
    kept: list[Region] = []
    for region in regions:
        if region.box.is_empty or any(_outdoes(other, region) for other in kept):
            continue
        kept = [other for other in kept if not _outdoes(region, other)]
        kept.append(region)
        if len(kept) > MAX_BOXES:
            # Once more, because what is around two may cover a third.
            kept = _gathered(_loosened(kept))
    return kept


def _loosened(regions: list[Region]) -> list[Region]:
    """About half as many, each around two that are next to each other in the order of their corners."""
    ordered = sorted(regions)
    pairs = [Region(_hull(a.box, b.box), is_exact=False) for a, b in zip(ordered[::2], ordered[1::2], strict=False)]
    return pairs + ordered[len(pairs) * 2 :]


def _outdoes(one: Region, other: Region) -> bool:
    """Whether a region makes another one superfluous; of two equal boxes the exact one says more."""
    return _covers(one.box, other.box) and (one.is_exact or not other.is_exact or one.box != other.box)


def _covers(one: Box, other: Box) -> bool:
    # As Box.covers, three times as fast: a subscription with many boxes does this thousands of times.
    return all(map(le, one.lo, other.lo)) and all(map(ge, one.hi, other.hi))


def _intersection(one: Box, other: Box) -> Box:
    return Box(tuple(map(max, one.lo, other.lo)), tuple(map(min, one.hi, other.hi)))


def _hull(one: Box, other: Box) -> Box:
    return Box(tuple(map(min, one.lo, other.lo)), tuple(map(max, one.hi, other.hi)))
