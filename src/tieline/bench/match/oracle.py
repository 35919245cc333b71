"""Which boxes contain a point, by looking at all of them: what every other answer is compared with."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from tieline.bench.load.failure import Failure

if TYPE_CHECKING:
    from tieline.bench.match.workload import Floats


class Mismatch(Failure):
    """An answer is not the right one."""


def containing(lo: Floats, hi: Floats, point: Floats) -> list[int]:
    """The rows of the boxes that contain a point, ascending."""
    import numpy as np

    found: list[int] = np.flatnonzero(((lo <= point) & (point <= hi)).all(axis=1)).tolist()
    return found


def verify(who: str, answers: Iterable[Sequence[int]], right: Sequence[list[int]]) -> int:
    """Compare answers with the right ones, each id once and none too many; returns the number compared."""
    for number, (answer, owed) in enumerate(zip(answers, right, strict=True)):
        if sorted(answer) != owed:
            few = sorted(set(owed).symmetric_difference(answer))[:5]
            raise Mismatch(
                f"{who} found {len(answer)} instead of {len(owed)} subscriptions for event {number}; "
                f"among those that differ: {few or 'none, but some came twice'}"
            )
    return len(right)
