from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.match.cover.interests import boxes
from tieline.match.box import ANY, Box
from tieline.match.cover.shelf import Scan, Shelf


class Dense(Scan):
    """An index that wants small ids, as those for many boxes do."""

    def add(self, id: int, box: Box) -> None:
        assert id == 0 or id <= len(self._boxes), "ids are dense and used again"
        super().add(id, box)


@given(st.lists(boxes(2), max_size=12), boxes(2), st.booleans(), st.data())
def test_both_questions_of_covering(stored: list[Box], box: Box, is_mirrored: bool, data: st.DataObject) -> None:
    shelf = Shelf(2, Dense, is_mirrored=is_mirrored)
    kept: dict[int, Box] = {}
    for key, one in enumerate(stored, start=1_000):
        shelf.add(key, one)
        kept[key] = one
        if data.draw(st.booleans()):
            gone = data.draw(st.sampled_from(sorted(kept)))
            shelf.remove(gone)
            del kept[gone]
    assert sorted(shelf.coverers(box)) == [key for key, one in kept.items() if one.covers(box)]
    assert sorted(shelf.covered(box)) == [key for key, one in kept.items() if box.covers(one)]
    assert list(shelf) == list(kept)
    assert len(shelf) == len(kept)


def test_a_number_is_not_any_value() -> None:
    # The mirror cannot tell the two apart: the least number stands for no bound.
    shelf = Shelf(1, Scan, is_mirrored=True)
    shelf.add(1, Box((ANY[0],), (1.0,)))
    assert shelf.covered(Box((-1.7976931348623157e308,), (1.0,))) == []
    assert shelf.covered(Box((ANY[0],), (1.0,))) == [1]


def test_a_box_over_no_attribute() -> None:
    shelf = Shelf(0, _no_index, is_mirrored=True)
    shelf.add(7, Box((), ()))
    assert shelf.coverers(Box((), ())) == shelf.covered(Box((), ())) == [7]


def _no_index(dimensions: int) -> Scan:
    raise AssertionError("an index of no attributes was asked for")
