from __future__ import annotations

import subprocess
import sys

import pytest

from tests.kits.patience import PATIENCE_S
from tieline.match.box import GREATEST, Box
from tieline.match.index import small
from tieline.match.index.small import SmallIndex


def grid(side: int) -> SmallIndex:
    index = SmallIndex(2)
    for x in range(side):
        for y in range(side):
            index.add(x * side + y, Box((float(x), float(y)), (x + 1.0, y + 1.0)))
    return index


def test_cells_are_remembered_until_something_changes() -> None:
    index = grid(10)
    assert sorted(index.match((3.5, 3.5))) == [33]
    assert index.match((3.6, 3.4)) == [33]
    assert len(index._cells) == 1
    index.add(100, Box((0.0, 0.0), (9.0, 9.0)))
    assert sorted(index.match((3.5, 3.5))) == [33, 100]
    index.remove(33)
    assert index.match((3.5, 3.5)) == [100]
    index.remove(100)
    assert index.match((3.5, 3.5)) == []


def test_an_answer_about_covering_does_not_outlive_a_change() -> None:
    index = grid(10)
    inner = Box((3.2, 3.2), (3.4, 3.4))
    assert index.coverers(inner) == [33]
    index.add(100, Box((0.0, 0.0), (9.0, GREATEST)))
    assert sorted(index.coverers(inner)) == [33, 100]


def test_the_memory_for_cells_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(small, "_MOST_CELLS", 8)
    index = grid(10)
    for x in range(10):
        for y in range(10):
            assert index.match((x + 0.5, y + 0.5)) == [x * 10 + y]
            assert len(index._cells) <= 8
    monkeypatch.setattr(small, "_MOST_CANDIDATES", 20)
    for x in range(10):
        for y in range(10):
            assert index.match((x + 0.5, y + 0.5)) == [x * 10 + y]
    kept = [len(cell.sure) + len(cell.close) + len(cell.far) for cell in index._cells.values()]
    assert sum(kept) == index._candidates <= 20


def test_slots_of_forgotten_boxes_are_not_kept_for_ever() -> None:
    index = SmallIndex(1)
    for number in range(1000):
        index.add(number, Box((float(number),), (number + 1.0,)))
        if number >= 10:
            index.remove(number - 10)
    assert len(index) == 10 and len(index._ids) <= 64
    assert sorted(index.match((995.5,))) == [995]


def test_few_boxes_need_no_bitmap() -> None:
    index = SmallIndex(3)
    for number in range(20):
        index.add(number, Box((float(number),) * 3, (number + 3.0,) * 3))
    assert sorted(index.match((10.5,) * 3)) == [8, 9, 10]
    assert list(index._cells) == [(0, 0, 0)]


def test_a_small_index_needs_neither_numpy_nor_numba() -> None:
    code = (
        "import sys; from tieline.match.index import AdaptiveIndex; from tieline.match.box import everything;"
        "index = AdaptiveIndex(2); [index.add(id, everything(2)) for id in range(100)];"
        "assert len(index.match((0.0, 1.0))) == 100; assert not {'numpy', 'numba'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=PATIENCE_S)


def test_repr() -> None:
    assert repr(grid(2)) == "<SmallIndex 4 boxes, 2 dimensions, 0 cells remembered>"
