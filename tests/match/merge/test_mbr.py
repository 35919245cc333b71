from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.match.cover.interests import boxes
from tieline.match.box import Box
from tieline.match.merge.mbr import Augmented, bounding
from tieline.match.space import Space


@given(st.lists(boxes(3), min_size=1, max_size=6))
def test_the_bounding_box_is_the_least_that_covers_all(given: list[Box]) -> None:
    around = bounding(given)
    assert all(around.covers(box) for box in given)
    for axis in range(3):
        # No side can be moved inward: some box reaches it.
        assert any(box.lo[axis] == around.lo[axis] for box in given)
        assert any(box.hi[axis] == around.hi[axis] for box in given)


@given(st.data())
def test_it_says_when_to_announce(data: st.DataObject) -> None:
    merged = Augmented()
    held: Counter[tuple[str, Box]] = Counter()
    for _ in range(data.draw(st.integers(1, 15))):
        before = {event: merged.get(event) for event in ("a", "b")}
        live = sorted(held.elements())
        is_leaving = data.draw(st.booleans())
        if live and is_leaving:
            event, box = live[data.draw(st.integers(0, len(live) - 1))]
            held[event, box] -= 1
            says = merged.remove(event, box)
        else:
            event, box = data.draw(st.sampled_from("ab")), data.draw(boxes(2))
            held[event, box] += 1
            says = merged.add(event, box)
        for one in ("a", "b"):
            mine = [box for kind, box in held.elements() if kind == one]
            assert merged.get(one) == (bounding(mine) if mine else None)
        assert says == (merged.get(event) != before[event])


def test_a_box_that_nobody_holds_cannot_go() -> None:
    merged = Augmented()
    merged.add("a", Box((0.0,), (1.0,)))
    with pytest.raises(KeyError):
        merged.remove("a", Box((0.0,), (2.0,)))
    with pytest.raises(KeyError):
        merged.remove("b", Box((0.0,), (1.0,)))


def test_figure_6_of_the_ring_paper() -> None:
    """Three subscriptions become the cells 4..11 and 52..59 of the third-order grid, one cell per unit here."""
    space = Space([(0.0, 8.0), (0.0, 8.0)], order=3)
    merged = Augmented()
    assert merged.add("s", Box((2.3, 0.4), (3.6, 1.5)))
    assert merged.add("s", Box((4.1, 1.2), (5.5, 2.8)))
    assert merged.add("s", Box((2.8, 2.5), (4.5, 3.2)))
    around = merged.get("s")
    assert around is not None
    assert space.box_cells(around) == ((2, 0), (5, 3))
    assert space.box_ranges(around) == [(4, 11), (52, 59)]
    assert not merged.add("s", Box((3.0, 1.0), (5.0, 3.0))), "a subscription inside S_aug is not announced"
