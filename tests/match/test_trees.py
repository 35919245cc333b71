from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TypeVar

from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from tests.match.topics import filters, names
from tieline.match.trees import PAUSE, FilterTree, NameTree
from tieline.wire.topics import matches


class Filters(RuleBasedStateMachine):
    """A tree beside a dictionary that is searched by brute force."""

    def __init__(self) -> None:
        super().__init__()
        self.tree: FilterTree[int] = FilterTree()
        self.model: dict[str, int] = {}
        self.puts = 0

    @rule(filter_=filters)
    def put(self, filter_: str) -> None:
        self.puts += 1
        self.tree.put(filter_, self.puts)
        self.model[filter_] = self.puts

    @rule(filter_=filters)
    def remove(self, filter_: str) -> None:
        self.tree.remove(filter_)
        self.model.pop(filter_, None)

    @rule(data=st.data())
    def remove_one_that_is_there(self, data: st.DataObject) -> None:
        if self.model:
            self.remove(data.draw(st.sampled_from(sorted(self.model))))

    @rule(filter_=filters)
    def get(self, filter_: str) -> None:
        assert self.tree.get(filter_) == self.model.get(filter_)

    @rule(topic=names)
    def match(self, topic: str) -> None:
        wanted = sorted(value for filter_, value in self.model.items() if matches(filter_, topic))
        assert sorted(self.tree.match(topic)) == wanted

    @invariant()
    def it_knows_its_size(self) -> None:
        assert len(self.tree) == len(self.model)

    def teardown(self) -> None:
        for filter_ in self.model:
            self.tree.remove(filter_)
        assert not self.tree._root.children, "nodes were left behind"


TestFilters = Filters.TestCase


@given(st.lists(filters, max_size=20), names)
def test_every_filter_is_found_once(stored: list[str], topic: str) -> None:
    tree: FilterTree[str] = FilterTree()
    for filter_ in stored:
        tree.put(filter_, filter_)
    assert sorted(tree.match(topic)) == sorted(filter_ for filter_ in set(stored) if matches(filter_, topic))


def test_the_multi_level_wildcard_includes_its_parent() -> None:
    tree: FilterTree[str] = FilterTree()
    tree.put("sport/tennis/#", "tennis")
    assert tree.match("sport/tennis") == ["tennis"]
    assert tree.match("sport/tennis/player1") == ["tennis"]
    assert tree.match("sport/tennis2") == []


def test_leading_wildcards_do_not_see_dollar_topics() -> None:
    tree: FilterTree[str] = FilterTree()
    for filter_ in ("#", "+/a", "+/#", "$SYS/#", "$SYS/+"):
        tree.put(filter_, filter_)
    assert sorted(tree.match("$SYS/a")) == ["$SYS/#", "$SYS/+"]
    assert sorted(tree.match("b/a")) == ["#", "+/#", "+/a"]
    assert sorted(tree.match("b/$SYS")) == ["#", "+/#"]


def test_empty_levels_are_levels() -> None:
    tree: FilterTree[str] = FilterTree()
    for filter_ in ("/", "+/+", "/+", "+", "a//b"):
        tree.put(filter_, filter_)
    assert sorted(tree.match("/")) == ["+/+", "/", "/+"]
    assert tree.match("a//b") == ["a//b"]


T = TypeVar("T")


def values(tree: NameTree[T], filter_: str) -> Iterator[T]:
    """What a walk finds, without its pauses."""
    return (value for value in tree.match(filter_) if value is not None)


class Walk:
    """One lazy walk, and what it may and must still yield."""

    def __init__(self, filter_: str, found: Iterator[int]) -> None:
        self.filter = filter_
        self.values = found
        #: Names that match and have been there, whatever their value, since the walk began.
        self.must: set[str] = set()
        self.seen: Counter[str] = Counter()


class Names(RuleBasedStateMachine):
    """A tree beside a dictionary that is searched by brute force, with walks that go on while the tree changes."""

    def __init__(self) -> None:
        super().__init__()
        self.tree: NameTree[int] = NameTree()
        self.model: dict[str, int] = {}
        #: Under which name each value was stored.
        self.named: list[str] = []
        self.walks: list[Walk] = []

    @rule(name=names)
    def put(self, name: str) -> None:
        value = len(self.named)
        self.named.append(name)
        self.tree.put(name, value)
        self.model[name] = value

    @rule(name=names)
    def remove(self, name: str) -> None:
        assert self.tree.remove(name) == self.model.pop(name, None)
        for walk in self.walks:
            walk.must.discard(name)

    @rule(data=st.data())
    def remove_one_that_is_there(self, data: st.DataObject) -> None:
        if self.model:
            self.remove(data.draw(st.sampled_from(sorted(self.model))))

    @rule(name=names)
    def get(self, name: str) -> None:
        assert self.tree.get(name) == self.model.get(name)

    @rule(filter_=filters)
    def match(self, filter_: str) -> None:
        wanted = sorted(value for name, value in self.model.items() if matches(filter_, name))
        assert sorted(values(self.tree, filter_)) == wanted

    @rule()
    def clear(self) -> None:
        self.tree.clear()
        self.model.clear()
        # nobody promises anything about a walk through a tree that was cut down
        self.walks.clear()

    @rule(filter_=filters)
    def begin_a_walk(self, filter_: str) -> None:
        walk = Walk(filter_, values(self.tree, filter_))
        walk.must.update(name for name in self.model if matches(filter_, name))
        self.walks.append(walk)

    @rule(data=st.data(), steps=st.integers(1, 5))
    def go_on_with_a_walk(self, data: st.DataObject, steps: int) -> None:
        if not self.walks:
            return
        walk = data.draw(st.sampled_from(self.walks))
        for _ in range(steps):
            value = next(walk.values, None)
            if value is None:
                self.end(walk)
                return
            self.look_at(walk, value)

    def look_at(self, walk: Walk, value: int) -> None:
        name = self.named[value]
        assert matches(walk.filter, name)
        assert self.model.get(name) == value, "a value that was replaced or removed is not read any more"
        walk.seen[name] += 1

    def end(self, walk: Walk) -> None:
        self.walks.remove(walk)
        assert walk.must <= walk.seen.keys(), "what was there all the time was left out"

    @invariant()
    def it_knows_its_size(self) -> None:
        assert len(self.tree) == len(self.model)

    def teardown(self) -> None:
        for walk in list(self.walks):
            for value in walk.values:
                self.look_at(walk, value)
            self.end(walk)
        for name in self.model:
            self.tree.remove(name)
        assert not self.tree._root.children, "nodes were left behind"


TestNames = Names.TestCase


@given(st.lists(names, max_size=20), filters)
def test_every_name_is_found_once(stored: list[str], filter_: str) -> None:
    tree: NameTree[str] = NameTree()
    for name in stored:
        tree.put(name, name)
    assert sorted(values(tree, filter_)) == sorted(name for name in set(stored) if matches(filter_, name))


def test_a_walk_reads_values_when_it_yields_them() -> None:
    tree: NameTree[str] = NameTree()
    for name in ("a", "b", "c"):
        tree.put(name, "old")
    walk = tree.match("+")
    assert next(walk) == "old"
    tree.put("b", "new")
    tree.put("c", "new")
    assert list(walk) == ["new", "new"]


def test_what_is_removed_is_not_yielded_any_more() -> None:
    tree: NameTree[str] = NameTree()
    for name in ("a/b", "a/c", "a"):
        tree.put(name, name)
    walk = tree.match("#")
    first = next(walk)
    for name in {"a/b", "a/c", "a"} - {first}:
        tree.remove(name)
    assert list(walk) == []


def test_names_come_in_the_order_in_which_they_were_stored() -> None:
    tree: NameTree[str] = NameTree()
    stored = ["b", "a/z", "a/y", "c"]
    for name in stored:
        tree.put(name, name)
    assert list(tree.match("#")) == ["b", "a/z", "a/y", "c"]


def test_a_long_search_pauses_now_and_then() -> None:
    tree: NameTree[int] = NameTree()
    for number in range(3_000):
        tree.put(f"a/{number}", number)
    in_vain = list(tree.match("+/+/x"))
    assert set(in_vain) == {None}
    assert len(in_vain) == 3_000 // PAUSE
    found = list(tree.match("#"))
    assert [value for value in found if value is not None] == list(range(3_000))
    assert found.count(None) == 3_000 // PAUSE
    assert next(tree.match("a/2999")) == 2_999, "what is found at once is found at once"
