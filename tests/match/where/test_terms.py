from __future__ import annotations

import pytest

from tieline.match.box import GREATEST, LEAST, above, below
from tieline.match.where.terms import PRESENT, Interval, complement


@pytest.mark.parametrize(
    ("intervals", "gaps"),
    [
        ([], [PRESENT]),
        ([PRESENT], []),
        ([(1, 2)], [(LEAST, below(1)), (above(2), GREATEST)]),
        ([(1, 1), (2, 2)], [(LEAST, below(1)), (above(1), below(2)), (above(2), GREATEST)]),
        ([(LEAST, 0)], [(5e-324, GREATEST)]),
        ([(0, GREATEST)], [(LEAST, -5e-324)]),
        ([(1, 2), (above(2), 3)], [(LEAST, below(1)), (above(3), GREATEST)]),
    ],
)
def test_the_complement_is_what_lies_between_and_beyond(intervals: list[Interval], gaps: list[Interval]) -> None:
    assert complement(intervals) == gaps
    assert complement(gaps) in (intervals, [(intervals[0][0], intervals[-1][1])] if intervals else [])
