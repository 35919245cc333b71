from __future__ import annotations

import pytest
from hypothesis import given

from tests.match.cover.interests import MESSAGES, crowded, interests, wants
from tieline.match.box import Box, everything
from tieline.match.cover.interests import Interest


@given(crowded, crowded)
def test_covering_is_sound(one: Interest, other: Interest) -> None:
    if one.covers(other):
        assert all(wants(one, message) for message in MESSAGES if wants(other, message))


@given(crowded, crowded)
def test_covering_is_complete(one: Interest, other: Interest) -> None:
    # The sample has a message on and beside every end that the boxes can have, so it tells all of them apart.
    if all(wants(one, message) for message in MESSAGES if wants(other, message)):
        assert one.covers(other)


@given(crowded, crowded)
def test_interests_without_overlap_want_no_message_in_common(one: Interest, other: Interest) -> None:
    assert one.overlaps(other) == other.overlaps(one)
    if any(wants(one, message) and wants(other, message) for message in MESSAGES):
        assert one.overlaps(other)
    elif one.event is None or other.event is None or one.event == other.event:
        assert not one.overlaps(other)


@given(interests, interests, interests)
def test_covering_is_a_partial_order(one: Interest, two: Interest, three: Interest) -> None:
    assert one.covers(one)
    if one.covers(two) and two.covers(three):
        assert one.covers(three)
    assert (one.covers(two) and two.covers(one)) == (one.canonical == two.canonical)


def test_a_box_without_a_condition_does_not_want_what_cannot_be_read() -> None:
    unreadable = ("a", None, ())
    plain, boxed = Interest("a"), Interest("a", "two", everything(2))
    assert wants(plain, unreadable) and not wants(boxed, unreadable)
    assert plain.covers(boxed) and not boxed.covers(plain)


def test_boxes_of_different_types_do_not_cover_each_other() -> None:
    assert not Interest("a", "one", everything(1)).covers(Interest("a", "other", everything(1)))


@pytest.mark.parametrize(("event", "box"), [("pcc", None), (None, everything(1)), ("pcc", Box((2.0,), (1.0,)))])
def test_half_an_interest_is_refused(event: str | None, box: Box | None) -> None:
    with pytest.raises(ValueError, match="interest"):
        Interest("a", event, box)
