from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.match.cover.interests import FILTERS, NAMES
from tests.match.topics import filters
from tieline.match.cover.filters import CoverTree, OverlapTree, canonical, covers, overlap
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


def test_a_tree_of_filters_says_whether_one_of_them_overlaps() -> None:
    plain = [filter for filter in FILTERS if not filter.startswith("$")]
    for one, other, third in itertools.product(plain, plain[:8], plain):
        tree = OverlapTree.of((one, other))
        assert tree.meets(third) == (overlap(one, third) or overlap(other, third)), (one, other, third)
    assert not OverlapTree.of(()).meets("#")


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


def planted(stored: list[str]) -> tuple[CoverTree[str], set[str]]:
    tree: CoverTree[str] = CoverTree()
    for filter in stored:
        tree.put(filter, canonical(filter))
    return tree, {canonical(filter) for filter in stored}


def test_among_all_short_filters() -> None:
    tree, kept = planted(FILTERS)
    for filter in FILTERS:
        assert sorted(tree.coverers(filter)) == sorted(one for one in kept if covers(one, filter)), filter
        assert sorted(tree.covered(filter)) == sorted(one for one in kept if covers(filter, one)), filter


@given(st.lists(filters, max_size=25), filters)
def test_coverers_are_all_that_cover(stored: list[str], filter: str) -> None:
    tree, kept = planted(stored)
    assert sorted(tree.coverers(filter)) == sorted(one for one in kept if covers(one, filter))


@given(st.lists(filters, max_size=25), filters)
def test_covered_are_all_that_are_covered(stored: list[str], filter: str) -> None:
    tree, kept = planted(stored)
    assert sorted(tree.covered(filter)) == sorted(one for one in kept if covers(filter, one))


@given(st.lists(filters, min_size=1, max_size=10))
def test_what_is_removed_is_not_found(stored: list[str]) -> None:
    tree, kept = planted(stored)
    gone = canonical(stored[0])
    assert tree.get(stored[0]) == gone
    assert tree.remove(stored[0]) == gone
    assert tree.get(stored[0]) is None
    assert gone not in set(tree.coverers(stored[0])) | set(tree.covered(stored[0]))
    assert len(tree) == len(kept) - 1


def test_two_spellings_are_one_filter() -> None:
    tree: CoverTree[str] = CoverTree()
    tree.put("#", "first")
    tree.put("+/#", "second")
    tree.put("/#", "third")
    assert len(tree) == 2
    assert tree.get("#") == "second"
    assert tree.remove("/+/#") == "third"
