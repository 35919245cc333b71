from __future__ import annotations

import itertools

import pytest

from tests.match.cover.interests import FILTERS, NAMES
from tieline.match.cover.filters import canonical, covers, overlap
from tieline.wire.topics import matches

#: Names with one level more than any filter, so that what only a # reaches is among them.
LONG = [f"{name}/{level}" for name in NAMES for level in ("a", "")]
MATCHED = {filter: frozenset(name for name in NAMES + LONG if matches(filter, name)) for filter in FILTERS}


def test_covering_is_inclusion_of_the_names() -> None:
    for one, other in itertools.product(FILTERS, repeat=2):
        assert covers(one, other) == (MATCHED[one] >= MATCHED[other]), (one, other)


def test_overlap_is_a_name_in_common() -> None:
    for one, other in itertools.product(FILTERS, repeat=2):
        assert overlap(one, other) == bool(MATCHED[one] & MATCHED[other]), (one, other)


def test_filters_with_the_same_names_have_one_canonical_form() -> None:
    for one, other in itertools.product(FILTERS, repeat=2):
        assert (canonical(one) == canonical(other)) == (MATCHED[one] == MATCHED[other]), (one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("sport/#", "sport"),
        ("sport/#", "sport/+/score"),
        ("#", "+/+"),
        ("+/#", "#"),
        ("/+/#", "/#"),
        ("+/+", "/a"),
        ("$SYS/#", "$SYS/broker/+"),
        ("microgrid/+/pcc", "microgrid/7/pcc"),
    ],
)
def test_covers(one: str, other: str) -> None:
    assert covers(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("sport/+", "sport"),
        ("sport/+/#", "sport/#"),
        ("#", "$SYS/#"),
        ("+/a", "$SYS/a"),
        ("a/b", "a/+"),
        ("+", "#"),
        ("microgrid/7/pcc", "microgrid/+/pcc"),
    ],
)
def test_does_not_cover(one: str, other: str) -> None:
    assert not covers(one, other)
