from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.match.cover.interests import FILTERS
from tests.match.topics import filters
from tieline.match.cover.filters import canonical, covers
from tieline.match.cover.tree import CoverTree


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
