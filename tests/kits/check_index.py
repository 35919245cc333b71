"""A conformance kit for indexes: whatever implements ``tieline.match.index.Index`` is done when ``check_index`` passes.

``make`` returns an empty index of so many dimensions.  Random changes and questions run beside a reference that knows
nothing but a list of boxes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from random import Random
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kits.examples import examples
from tieline.match.box import ANY, GREATEST, LEAST, MISSING, Box, above, below, everything
from tieline.match.index import Index

Make = Callable[[int], Index]

#: Numbers at which boxes begin and end, and where points lie: equal ones, neighbours, and the ends of the world.
_NUMBERS: Final = (-2.5, -1.0, 0.0, 0.1, 1 / 3, 0.5, 1.0, 1e-300, 5e-324, 7.0, 1e6, 1e300)
_MOST_DIMENSIONS: Final = 7


class Oracle:
    """The ten lines that every index must agree with."""

    def __init__(self) -> None:
        self.boxes: list[tuple[int, Box]] = []

    def add(self, id: int, box: Box) -> None:
        self.boxes.append((id, box))

    def remove(self, id: int) -> None:
        self.boxes = [(other, box) for other, box in self.boxes if other != id]

    def match(self, row: Sequence[float]) -> list[int]:
        return sorted({id for id, box in self.boxes if box.contains(row)})

    def coverers(self, inner: Box) -> list[int]:
        return sorted({id for id, box in self.boxes if box.covers(inner)})


def check_index(make: Make, *, count: int = 30) -> None:
    """Assert everything that an index owes."""
    check_script(make, count=count)
    check_crowd(make)
    check_missing(make)
    check_refusals(make)


# -- random scripts

ends = st.one_of(
    st.sampled_from(_NUMBERS),
    st.sampled_from(_NUMBERS).map(above),
    st.sampled_from(_NUMBERS).map(below),
    st.sampled_from((LEAST, GREATEST)),
    st.floats(-10, 10),
)
values = st.one_of(ends, st.just(MISSING), st.floats(allow_nan=False, allow_infinity=False))
intervals = st.one_of(
    st.just(ANY),
    st.just((LEAST, GREATEST)),
    ends.map(lambda end: (end, end)),
    ends.map(lambda end: (LEAST, end)),
    ends.map(lambda end: (end, GREATEST)),
    st.tuples(ends, ends).map(lambda pair: (min(pair), max(pair))),
)


def boxes(dimensions: int) -> st.SearchStrategy[Box]:
    """Boxes of every kind that a condition can be."""
    return st.lists(intervals, min_size=dimensions, max_size=dimensions).map(box_of)


def rows(dimensions: int) -> st.SearchStrategy[list[float]]:
    """Points, near the ends of boxes more often than not."""
    return st.lists(values, min_size=dimensions, max_size=dimensions)


def box_of(intervals: Sequence[tuple[float, float]]) -> Box:
    """A box, given by its intervals."""
    return Box(tuple(lo for lo, _ in intervals), tuple(hi for _, hi in intervals))


def check_script(make: Make, *, count: int) -> None:
    """Any changes in any order leave an index that agrees with the reference."""

    @examples(count)
    @given(st.data(), st.integers(1, _MOST_DIMENSIONS))
    def follow(data: st.DataObject, dimensions: int) -> None:
        index, oracle = make(dimensions), Oracle()
        assert index.dimensions == dimensions
        point, box = rows(dimensions), boxes(dimensions)
        for _ in range(data.draw(st.integers(1, 15))):
            for id, added in data.draw(st.lists(st.tuples(st.integers(0, 12), box), max_size=4)):
                index.add(id, added)
                oracle.add(id, added)
            present = sorted({id for id, _ in oracle.boxes})
            gone = data.draw(st.sampled_from((None, *present)))
            if gone is not None:
                index.remove(gone)
                oracle.remove(gone)
            agree(index, oracle, data.draw(st.lists(point, max_size=3)), data.draw(st.lists(box, max_size=1)))

    follow()


def agree(index: Index, oracle: Oracle, points: Sequence[Sequence[float]], inner: Sequence[Box]) -> None:
    """An index and the reference give the same answers, one by one and all at once."""
    assert len(index) == len(oracle.boxes)
    corners = [corner for _, box in oracle.boxes[-2:] for corner in (box.lo, box.hi)]
    # the lower end of an interval without one is no value
    points = [*points, *(tuple(value if value >= LEAST else MISSING for value in corner) for corner in corners)]
    for point in points:
        assert sorted(index.match(point)) == oracle.match(point), f"exact, and each id once: {point}"
    offsets, ids = index.match_batch(points)
    assert len(offsets) == len(points) + 1 and offsets[0] == 0 and offsets[-1] == len(ids)
    for point, start, end in zip(points, offsets[:-1], offsets[1:], strict=True):
        assert sorted(ids[start:end]) == oracle.match(point), f"a batch is what its points are: {point}"
    for box in (*inner, *(box for _, box in oracle.boxes[-2:])):
        assert sorted(index.coverers(box)) == oracle.coverers(box), f"everybody who covers {box}"


# -- more boxes than a script has


def check_crowd(make: Make, *, size: int = 300) -> None:
    """Boxes enough for every bucket, many of them alike, come and go."""
    random = Random(1)
    for dimensions in (1, 2, 5):
        index, oracle = make(dimensions), Oracle()
        for id in range(size):
            for _ in range(random.choice((1, 1, 1, 2, 3))):
                box = box_of([_interval(random) for _ in range(dimensions)])
                index.add(id, box)
                oracle.add(id, box)
        points = [[_value(random) for _ in range(dimensions)] for _ in range(15)]
        agree(index, oracle, points, [])
        offsets, ids = index.match_batch(points * 20)
        lengths = [end - start for start, end in pairwise(offsets)]
        assert lengths == [len(oracle.match(point)) for point in points] * 20, "however large a batch is"
        assert sorted(ids) == sorted([id for point in points for id in oracle.match(point)] * 20)
        for id in random.sample(range(size), size // 2):
            index.remove(id)
            oracle.remove(id)
        agree(index, oracle, points, [box_of([_interval(random) for _ in range(dimensions)]) for _ in range(5)])
        for id in range(size, size + 80):
            box = box_of([_interval(random) for _ in range(dimensions)])
            index.add(id - size // 2, box)
            oracle.add(id - size // 2, box)
        agree(index, oracle, points, [])
        assert index.memory() > 0


def _interval(random: Random) -> tuple[float, float]:
    kind = random.random()
    if kind < 0.2:
        return ANY
    lo = random.choice((float(random.randrange(8)), random.gauss(4, 2)))
    if kind < 0.4:
        return (lo, GREATEST) if kind < 0.3 else (LEAST, below(lo))
    return (lo, lo) if kind < 0.6 else (lo, lo + random.random() * 3)


def _value(random: Random) -> float:
    return random.choice((MISSING, float(random.randrange(-1, 9)), random.gauss(4, 2), random.gauss(4, 2), 1e9))


# -- single promises


def check_missing(make: Make) -> None:
    """A value that is missing satisfies no condition, not even one that every number does."""
    index = make(2)
    index.add(0, everything(2))
    index.add(1, Box((LEAST, ANY[0]), (GREATEST, ANY[1])))
    index.add(2, Box((0.0, ANY[0]), (GREATEST, ANY[1])))
    assert sorted(index.match((1.0, MISSING))) == [0, 1, 2]
    assert index.match((MISSING, 1.0)) == [0]
    assert index.match((MISSING, MISSING)) == [0]
    assert sorted(index.match((GREATEST, LEAST))) == [0, 1, 2]
    assert sorted(index.match((-math.ulp(0.0), 0.0))) == [0, 1]


def check_refusals(make: Make) -> None:
    """What is not there cannot be removed; what was given away is not changed by those who took it."""
    index = make(1)
    assert index.match((0.0,)) == [] and index.match_batch([]) == ([0], []) and index.coverers(everything(1)) == []
    for id in (0, 5, 10**6):
        with pytest.raises(KeyError):
            index.remove(id)
    index.add(3, Box((0.0,), (1.0,)))
    index.add(3, Box((0.0,), (1.0,)))
    assert len(index) == 2
    answer = index.match((0.5,))
    answer.append(99)
    assert index.match((0.5,)) == [3]
    index.remove(3)
    assert len(index) == 0 and index.match((0.5,)) == []
    with pytest.raises(KeyError):
        index.remove(3)
    with pytest.raises(ValueError, match="whole number from 0"):
        index.add(-1, everything(1))
    with pytest.raises(ValueError, match="1 dimensions, not 2"):
        index.add(3, everything(2))
    assert len(index) == 0 and index.match((0.5,)) == []
