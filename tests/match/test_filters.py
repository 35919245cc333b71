from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from tests.match.topics import filters, names
from tieline.match.filters import FilterTree
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
