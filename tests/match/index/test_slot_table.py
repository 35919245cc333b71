"""The bitmap says what its boxes are, however it came about."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kits.check_index import boxes, rows
from tests.kits.examples import examples
from tieline.match.box import Box, everything
from tieline.match.index.bitmaps import BitmapIndex
from tieline.match.index.build import build, curve_order
from tieline.match.index.protocol import MAX_ID, NO_BOXES, Boxes
from tieline.match.index.slot_table import CHUNK, NONE, SlotTable
from tieline.match.index.vectors import VectorIndex


def check(table: SlotTable) -> None:
    """Every bit, summary and link is what the boxes say."""
    owned: dict[int, set[int]] = {}
    empty = set()
    for slot in range(table.used):
        id = int(table.ids[slot])
        if id == NONE:
            empty.add(slot)
        else:
            owned.setdefault(id, set()).add(slot)
    for id in range(len(table.heads)):
        slots = table.slots(id)
        assert len(slots) == len(set(slots)) and set(slots) == owned.get(id, set())
    free: list[int] = []
    slot = table.free
    while slot != NONE and len(free) <= len(empty):
        free.append(slot)
        slot = int(table.links[slot])
    assert sorted(free) == sorted(empty)
    for slot in range(table.used):
        chunk, word, bit = slot // CHUNK, slot // 64 % 64, slot % 64
        bits = (table.words[chunk, :, word] >> np.uint64(bit)) & np.uint64(1)
        expected = np.zeros_like(bits)
        if slot not in empty:
            for attribute in range(table.dimensions):
                lo, hi = table.corners[slot, attribute], -table.corners[slot, table.dimensions + attribute]
                first, last = np.searchsorted(table.bounds[attribute], (lo, hi), side="right")
                expected[attribute * 64 + first : attribute * 64 + last + 1] = 1
        assert (bits == expected).all()
    for chunk in range(len(table.words)):
        for column in range(len(table.summary)):
            filled = np.flatnonzero(table.words[chunk, column])
            assert int(table.summary[column, chunk]) == sum(1 << int(word) for word in filled)


@pytest.fixture(params=["numpy", "numba"])
def kind(request: pytest.FixtureRequest) -> type[BitmapIndex]:
    if request.param == "numpy":
        return VectorIndex
    compiled = pytest.importorskip("tieline.match.index.compiled", exc_type=ImportError)
    kind: type[BitmapIndex] = compiled.CompiledIndex
    return kind


@pytest.mark.hypothesis
def test_bits_follow_changes(kind: type[BitmapIndex]) -> None:
    @examples(30)
    @given(st.data(), st.integers(1, 3))
    def follow(data: st.DataObject, dimensions: int) -> None:
        box = boxes(dimensions)
        some = data.draw(st.lists(st.tuples(st.integers(0, 9), box), max_size=12))
        index = kind(dimensions, Boxes([id for id, _ in some], [b.lo for _, b in some], [b.hi for _, b in some]))
        check(index._table)
        present = {id for id, _ in some}
        for _ in range(data.draw(st.integers(0, 8))):
            gone = data.draw(st.sampled_from((None, *sorted(present))))
            if gone is not None:
                index.remove(gone)
                present.remove(gone)
            else:
                index.add(id := data.draw(st.integers(0, 12)), data.draw(box))
                present.add(id)
        check(index._table)

    follow()


def test_more_boxes_than_a_chunk(kind: type[BitmapIndex]) -> None:
    index = kind(2)
    random = Random(3)
    corners = [(random.random(), random.random()) for _ in range(CHUNK + 300)]
    for id, (x, y) in enumerate(corners):
        index.add(id, Box((x, y), (x + 0.05, y + 0.05)))
    assert len(index._table.ids) >= len(corners) and index._table.chunks == 2
    for point in ((0.5, 0.5), (0.01, 0.99)):
        expected = [id for id, (x, y) in enumerate(corners) if x <= point[0] <= x + 0.05 and y <= point[1] <= y + 0.05]
        assert sorted(index.match(point)) == expected
        again = kind(2, index.snapshot()())
        assert sorted(again.match(point)) == expected
        assert sorted(again.match_batch([point] * 600)[1]) == sorted(expected * 600)
    assert len(index.match((0.5, 0.5))) > 5


def test_answers_of_any_size(kind: type[BitmapIndex]) -> None:
    index = kind(1, Boxes(list(range(6000)), [[0.0]] * 6000, [[1.0]] * 6000))
    assert sorted(index.match((0.5,))) == list(range(6000))
    assert sorted(index.coverers(Box((0.2,), (0.3,)))) == list(range(6000))
    offsets, ids = index.match_batch([(0.5,), (2.0,), (0.0,)])
    assert offsets == [0, 6000, 6000, 12_000] and sorted(ids) == sorted([*range(6000)] * 2)


@pytest.mark.hypothesis
def test_what_went_in_comes_out() -> None:
    @examples(20)
    @given(st.lists(st.tuples(st.integers(0, 30), boxes(3)), max_size=20), rows(3))
    def there_and_back(some: list[tuple[int, Box]], _point: list[float]) -> None:
        ids, lo, hi = [id for id, _ in some], [b.lo for _, b in some], [b.hi for _, b in some]
        index = VectorIndex(3, Boxes(ids, lo, hi))
        index.add(31, everything(3))
        index.remove(31)
        back = index.snapshot()()
        triples = zip(back.ids.tolist(), back.lo.tolist(), back.hi.tolist(), strict=True)
        expected = sorted((id, tuple(low), tuple(high)) for id, low, high in zip(ids, lo, hi, strict=True))
        assert sorted((id, tuple(low), tuple(high)) for id, low, high in triples) == expected

    there_and_back()


def test_neighbours_lie_together() -> None:
    """A million slots cannot be tested here, but a few thousand show whether words are skipped."""
    random = np.random.default_rng(1)
    lo = random.random((8 * CHUNK, 3))
    table = build(Boxes(np.arange(len(lo)), lo, lo + 0.1), 3)
    filled = 0
    for point in random.random((20, 3)):
        columns = [64 * k + int(np.searchsorted(table.bounds[k], point[k], side="right")) for k in range(3)]
        filled += int(np.bitwise_count(np.bitwise_and.reduce(table.summary[columns], axis=0)).sum())
    assert filled / 20 < 512 / 8, "at most an eighth of all words is looked at"


def test_the_order_is_a_permutation_and_knows_size() -> None:
    first = np.array([[0], [30], [0], [31], [1]], np.uint8)
    last = np.array([[63], [32], [62], [33], [63]], np.uint8)
    order = curve_order(first, last).tolist()
    assert sorted(order) == [0, 1, 2, 3, 4]
    places = {box: place for place, box in enumerate(order)}
    assert abs(places[1] - places[3]) == 1, "the two small ones, although the large ones have the same centre"
    assert curve_order(first[:0], last[:0]).tolist() == []


def test_what_cannot_be_stored_is_refused() -> None:
    with pytest.raises(ValueError, match="as many"):
        build(Boxes([1, 2], [[0.0]], [[1.0]]), 1)
    with pytest.raises(ValueError, match="whole number"):
        build(Boxes([-1], [[0.0]], [[1.0]]), 1)
    with pytest.raises(ValueError, match="whole number"):
        build(Boxes([MAX_ID + 1], [[0.0]], [[1.0]]), 1)
    assert build(NO_BOXES, 4).used == 0


def test_memory_is_what_the_issue_allows() -> None:
    count = 50_000
    for dimensions, most in ((2, 52), (3, 77), (6, 149)):
        lo = np.random.default_rng(2).random((count, dimensions))
        index = VectorIndex(dimensions, Boxes(np.arange(count), lo, lo + 0.1))
        # 8 bytes for links, which make several boxes per id and compact removal possible, and one chunk to spare
        assert index.memory() / count < (most + 8) * 1.07


def test_wear() -> None:
    index = VectorIndex(1)
    wear = [index.is_worn]
    for id in range(1200):
        index.add(id, Box((float(id),), (id + 1.0,)))
    wear.append(index.is_worn)
    assert wear == [False, True], "the buckets were cut for nothing at all"
    index = VectorIndex(1, Boxes(np.arange(30_000), np.arange(30_000.0)[:, None], np.arange(30_000.0)[:, None] + 1))
    wear = [index.is_worn]
    for id in range(8_000):
        index.remove(id)
    wear.append(index.is_worn)
    assert wear == [False, True], "a quarter of the slots is empty"
    for id in range(8_000):
        index.add(id, Box((float(id),), (id + 1.0,)))
    assert index.is_worn and not VectorIndex(1, index.snapshot()()).is_worn, "a quarter of the boxes is out of order"
