"""Every kind of index keeps what all of them owe, new or with a past."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from tests.kits.check_index import Make, check_index
from tieline.match.box import ANY
from tieline.match.index import AdaptiveIndex, Boxes, Index
from tieline.match.index.small import SmallIndex
from tieline.match.index.vectors import VectorIndex


def used(build: Callable[[Boxes, int], Index]) -> Make:
    """Indexes that are empty, but held boxes before: they have buckets, and slots that are used again."""

    def make(dimensions: int) -> Index:
        random = Random(dimensions)
        lo = [[random.choice((random.uniform(-3, 8), ANY[0])) for _ in range(dimensions)] for _ in range(90)]
        hi = [[random.choice((end + random.random(), ANY[1])) for end in ends] for ends in lo]
        ids = [random.randrange(60) for _ in lo]
        index = build(Boxes(ids, lo, hi), dimensions)
        for id in set(ids):
            index.remove(id)
        return index

    return make


@pytest.mark.hypothesis
def test_small() -> None:
    check_index(SmallIndex)
    check_index(used(SmallIndex.from_boxes))


@pytest.mark.hypothesis
def test_numpy() -> None:
    check_index(VectorIndex, count=15)
    check_index(used(VectorIndex.from_boxes))


@pytest.mark.hypothesis
def test_numba() -> None:
    compiled = pytest.importorskip("tieline.match.index.compiled", exc_type=ImportError)
    check_index(compiled.CompiledIndex, count=15)
    check_index(used(compiled.CompiledIndex.from_boxes))


@pytest.mark.hypothesis
def test_adaptive() -> None:
    check_index(AdaptiveIndex, count=15)
    check_index(used(AdaptiveIndex.from_boxes), count=15)
