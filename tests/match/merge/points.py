"""A Hypothesis strategy for points where mistakes are likely: on the ends of boxes, beside them, far out, missing."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from tieline.match.box import GREATEST, LEAST, MISSING, Box, above, below


def near(boxes: Sequence[Box], dimensions: int, *others: float) -> st.SearchStrategy[tuple[float, ...]]:
    """Points that have an end of a box, or a number beside one, or one of some others, in every attribute."""
    ends = {0.0, *others, *(bound for box in boxes for corner in box for bound in corner if abs(bound) <= GREATEST)}
    values = {*ends, *map(above, ends), *map(below, ends), LEAST, GREATEST, MISSING} - {-MISSING}
    # Between ends too, and beyond any declared bounds.
    value = st.one_of(st.sampled_from(sorted(values)), st.floats(-2.0, 6.0), st.floats(allow_nan=False).map(_number))
    return st.tuples(*[value] * dimensions)


def _number(value: float) -> float:
    """A point has no -inf."""
    return max(value, LEAST)
