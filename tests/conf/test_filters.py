"""Two filters overlap exactly if some topic matches both."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given

from tests.match.topics import filters
from tieline.conf.filters import flaw, overlap
from tieline.wire.errors import Violation
from tieline.wire.topics import check_filter, matches

#: Every name of up to five levels that filters made of these levels can tell apart.
NAMES = ["/".join(levels) for depth in range(1, 6) for levels in product(("a", "b", "", "$a", "$SYS"), repeat=depth)]


@given(filters, filters)
def test_two_filters_overlap_exactly_if_a_topic_matches_both(one: str, other: str) -> None:
    assert overlap(one, other) == any(matches(one, name) and matches(other, name) for name in NAMES if name)
    assert overlap(one, other) == overlap(other, one)


@pytest.mark.parametrize(
    ("one", "other", "is_overlap"),
    [
        ("a/#", "a", True),
        ("a/+/#", "a", False),
        ("a/+/#", "a/b", True),
        ("+", "a", True),
        ("+/b", "a/+", True),
        ("+/b", "a/c", False),
        ("#", "$SYS/load", False),
        ("+/load", "$SYS/load", False),
        ("$SYS/+", "$SYS/#", True),
        ("a/$b", "a/+", True),
    ],
)
def test_examples(one: str, other: str, is_overlap: bool) -> None:
    assert overlap(one, other) == overlap(other, one) == is_overlap


@pytest.mark.parametrize("filter_", ["", "#/a", "a#", "a/#/b", "a+", "+a/b", "a/+", "#", "+", "/", "a//b", "##", "++"])
def test_a_flaw_is_what_the_specification_refuses(filter_: str) -> None:
    try:
        check_filter(filter_, 128)
    except Violation:
        assert flaw(filter_) is not None
    else:
        assert flaw(filter_) is None
