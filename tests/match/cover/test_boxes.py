from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.match.cover.interests import boxes
from tieline.match.box import ANY, LEAST, Box
from tieline.match.cover import boxes as module
from tieline.match.cover.boxes import BoxSet, IndexFactory


class Scan:
    """An index as its protocol has it, strict about ids."""

    def __init__(self, dimensions: int) -> None:
        self.dimensions = dimensions
        self.boxes: dict[int, Box] = {}
        self.found: list[int] = []

    def add(self, id: int, box: Box) -> None:
        assert len(box.lo) == len(box.hi) == self.dimensions
        assert 0 <= id <= len(self.boxes), "ids are dense and used again"
        assert id not in self.boxes
        self.boxes[id] = box

    def remove(self, id: int) -> None:
        del self.boxes[id]

    def match(self, row: Sequence[float]) -> list[int]:
        assert len(row) == self.dimensions
        assert all(value >= LEAST for value in row), "a point has no -inf"
        self.found = [id for id, box in self.boxes.items() if box.contains(row)]
        return self.found

    def coverers(self, box: Box) -> list[int]:
        return [id for id, candidate in self.boxes.items() if candidate.covers(box)]


@pytest.fixture
def _eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """An index from the third box on."""
    monkeypatch.setattr(module, "SCAN_TO", 2)


@pytest.mark.usefixtures("_eager")
@pytest.mark.parametrize("make_index", [None, Scan])
@given(stored=st.lists(boxes(2), max_size=12), box=boxes(2), is_mirrored=st.booleans(), data=st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_both_questions_of_covering(
    make_index: IndexFactory | None, stored: list[Box], box: Box, is_mirrored: bool, data: st.DataObject
) -> None:
    shelf = BoxSet(make_index, is_mirrored=is_mirrored)
    kept: dict[int, Box] = {}
    for key, one in enumerate(stored, start=1_000):
        shelf.add(key, one)
        kept[key] = one
        if data.draw(st.booleans()):
            gone = sorted(kept)[data.draw(st.integers(0, len(kept) - 1))]
            shelf.remove(gone)
            del kept[gone]
    assert sorted(shelf.coverers(box)) == [key for key, one in kept.items() if one.covers(box)]
    assert sorted(shelf.covered(box)) == [key for key, one in kept.items() if box.covers(one)]
    assert list(shelf) == list(kept)
    assert len(shelf) == len(kept)


@pytest.mark.usefixtures("_eager")
def test_the_mirror_finds_no_more_than_is_covered() -> None:
    shelf = BoxSet(Scan, is_mirrored=True)
    for key in range(10):
        shelf.add(key, Box((float(key),), (key + 1.5,)))
    assert shelf.covered(Box((2.0,), (5.0,))) == [2, 3]
    assert isinstance(shelf._mirror, Scan)
    assert shelf._mirror.found == [2, 3], "others were looked at"


@pytest.mark.usefixtures("_eager")
def test_a_number_is_not_any_value() -> None:
    # The mirror cannot tell the two apart: the least number stands for no bound.
    shelf = BoxSet(Scan, is_mirrored=True)
    shelf.add(0, Box((5.0,), (6.0,)))
    shelf.add(1, Box((7.0,), (8.0,)))
    shelf.add(2, Box((ANY[0],), (1.0,)))
    assert shelf.covered(Box((LEAST,), (1.0,))) == []
    assert shelf.covered(Box((ANY[0],), (1.0,))) == [2]


def test_few_boxes_have_no_index() -> None:
    shelf = BoxSet(Scan, is_mirrored=True)
    for key in range(module.SCAN_TO):
        shelf.add(key, Box((), ()))
    assert shelf._index is None
    assert len(shelf.coverers(Box((), ()))) == len(shelf.covered(Box((), ()))) == module.SCAN_TO
