"""Where the range of one attribute is cut into buckets, so that each holds about as many ends of intervals.

A bucket is only a hint where to look: boxes and points are put into buckets by the same monotone rule (``bisect_right``
over the boundaries, in whatever language), so a box overlaps the bucket of every point in it, and the exact comparison
decides.  Boundaries that fit the data badly cost time, never an answer.
"""

from __future__ import annotations

from collections.abc import Iterable

from tieline.match.box import GREATEST, LEAST, MISSING

#: Buckets of an attribute.  Measured from 32 to 128 with a million boxes: 64 is best nearly everywhere.
BUCKETS = 64
#: Boundaries between them, and the last bucket.
BOUNDARIES = LAST = BUCKETS - 1


def boundaries(ends: Iterable[float], buckets: int = BUCKETS) -> list[float]:
    """At most ``buckets - 1`` boundaries, ascending, for intervals with these ends.

    The last one is ``MISSING``: what is missing has a bucket of its own, which only unconditional intervals reach.
    """
    values = sorted(end for end in ends if LEAST < end < GREATEST)
    room = buckets - 2
    chosen = set(_spread(values, room))
    if len(chosen) < room:
        # Few values that occur often, as categories do, use up several places each; the others share what is left.
        rest = sorted(set(values) - chosen)
        chosen.update(_spread(rest, room - len(chosen)))
    return [*sorted(chosen), MISSING]


def _spread(values: list[float], count: int) -> list[float]:
    """So many of the sorted values, evenly spread; all of them if there are not more."""
    if len(values) <= count:
        return values
    return [values[(2 * place + 1) * len(values) // (2 * count)] for place in range(count)]
