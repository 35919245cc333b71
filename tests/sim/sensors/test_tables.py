"""Tables of cluster heads: the paper's figures, and any tree against what a reader without tables would say."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tieline.match.box import Box
from tieline.match.cover.interests import Interest
from tieline.sim.sensors.tables import Covering, HeadTable, link_of_sink


def temperature(lo: float, hi: float) -> Interest:
    return Interest("air", "reading", Box((lo,), (hi,)))


class Tree:
    """Tables on a tree whose frames arrive at once; node 0 is the core."""

    def __init__(self, parents: list[int], covering: Covering, interests: list[Interest], *, peer: bool) -> None:
        self.parents = parents
        self.peer = peer
        self.tables = [HeadTable(covering, interests) for _ in range(len(parents) + 1)]
        #: Everything said between heads, in order.
        self.said: list[tuple[int, int, bool, int]] = []
        for child, parent in enumerate(parents, start=1):
            self.tables[child].open(parent, tells=True)
            self.tables[parent].open(child, tells=peer)

    def subscribe(self, head: int, sink: int, interest: int) -> None:
        self.tables[head].open(link_of_sink(sink), tells=False)
        self._say(head, self.tables[head].add(link_of_sink(sink), interest))

    def cancel(self, head: int, sink: int, interest: int) -> None:
        self._say(head, self.tables[head].cancel(link_of_sink(sink), interest))

    def _say(self, head: int, tellings: list) -> None:  # type: ignore[type-arg]
        for link, is_new, interest in tellings:
            self.said.append((head, link, is_new, interest))
            other = self.tables[link]
            self._say(link, other.add(head, interest) if is_new else other.cancel(head, interest))

    def reached(self, origin: int, matching: frozenset[int]) -> set[tuple[int, int]]:
        """The heads and sinks that an event reaches from a head."""
        found: set[tuple[int, int]] = set()
        line: list[tuple[int, int | None]] = [(origin, None)]
        while line:
            head, before = line.pop()
            wanting = self.tables[head].wanting(matching)
            found |= {(head, link) for link in wanting if link < 0}
            heads = {link for link in wanting if link >= 0}
            if not self.peer and head:
                heads.add(self.parents[head - 1])
            line += [(other, head) for other in sorted(heads) if other != before]
        return found


#: Figure 2: R1 and R2 are below R3.  S1 covers S2, and S3 covers S4.
FIGURE_2 = [temperature(0, 50), temperature(10, 20), temperature(60, 90), temperature(70, 80)]
S1, S2, S3, S4 = range(4)
R3, R1, R2 = range(3)


@pytest.mark.parametrize("covering", ["suboptimal", "optimal"])
def test_figure_2_what_is_covered_stays_at_the_first_head(covering: Covering) -> None:
    tree = Tree([R3, R3], covering, FIGURE_2, peer=False)
    tree.subscribe(R1, 1, S1)
    tree.subscribe(R1, 2, S2)
    tree.subscribe(R2, 3, S3)
    tree.subscribe(R2, 4, S4)
    assert tree.said == [(R1, R3, True, S1), (R2, R3, True, S3)]
    assert tree.tables[R1].held(link_of_sink(2)) == {S2}
    assert tree.tables[R3].held(R1) == {S1}
    assert tree.tables[R3].held(R2) == {S3}


def test_without_covering_everything_goes_up() -> None:
    tree = Tree([R3, R3], "none", FIGURE_2, peer=False)
    for sink, interest in enumerate((S1, S2)):
        tree.subscribe(R1, sink, interest)
    assert tree.tables[R3].held(R1) == {S1, S2}


#: Figure 3: S2 covers S1, S3 covers S1, S4 covers S3.
FIGURE_3 = [temperature(4, 6), temperature(0, 6), temperature(4, 10), temperature(3, 11)]


def test_figure_3_a_cancelled_subscription_leaves_no_garbage_upstream() -> None:
    core, middle, lowest = range(3)
    tree = Tree([core, middle], "suboptimal", FIGURE_3, peer=False)
    for sink in (S1, S2, S3, S4):
        tree.subscribe(lowest, sink, sink)
    # nothing is withdrawn because something larger comes later
    assert tree.tables[core].held(middle) == {S1, S2, S3, S4} - set()
    tree.cancel(lowest, S4, S4)
    assert tree.tables[core].held(middle) == tree.tables[middle].held(lowest) == {S1, S2, S3}
    tree.cancel(lowest, S1, S1)
    assert tree.tables[core].held(middle) == {S2, S3}


def test_figure_3_in_the_other_order_what_was_covered_comes_up() -> None:
    core, middle, lowest = range(3)
    tree = Tree([core, middle], "suboptimal", FIGURE_3, peer=False)
    for sink in (S4, S3, S1):
        tree.subscribe(lowest, sink, sink)
    assert tree.tables[core].held(middle) == {S4}
    tree.cancel(lowest, S3, S3)
    assert tree.tables[core].held(middle) == {S4}, "upstream never knew S3"
    tree.cancel(lowest, S4, S4)
    assert tree.tables[core].held(middle) == {S1}


#: A tree, who is a sink's head, what sinks want and stop wanting.
trees = st.integers(1, 6).flatmap(lambda count: st.tuples(*[st.integers(0, child) for child in range(count)]))
bounds = st.tuples(st.integers(0, 8), st.integers(0, 8)).map(sorted)


@settings(max_examples=150)
@given(
    parents=trees,
    wishes=st.lists(st.tuples(st.integers(0, 6), st.integers(0, 3), bounds), min_size=1, max_size=12),
    cancelled=st.sets(st.integers(0, 11)),
    covering=st.sampled_from(["none", "suboptimal", "optimal"]),
    peer=st.booleans(),
)
def test_events_reach_exactly_the_sinks_that_want_them(
    parents: tuple[int, ...],
    wishes: list[tuple[int, int, list[int]]],
    cancelled: set[int],
    covering: Covering,
    peer: bool,
) -> None:
    interests = [temperature(low, high) for _, _, (low, high) in wishes]
    tree = Tree(list(parents), covering, interests, peer=peer)
    # equal interests have one number on the air
    number = [interests.index(interest) for interest in interests]
    held: set[tuple[int, int, int]] = set()
    for which, (place, sink, _) in enumerate(wishes):
        head = place % (len(parents) + 1)
        tree.subscribe(head, 10 * head + sink, number[which])
        held.add((head, 10 * head + sink, number[which]))
    for which in sorted(cancelled):
        if which < len(wishes):
            place, sink, _ = wishes[which]
            head = place % (len(parents) + 1)
            if (head, 10 * head + sink, number[which]) in held:
                tree.cancel(head, 10 * head + sink, number[which])
                held.remove((head, 10 * head + sink, number[which]))
    for value in range(9):
        matching = frozenset(
            id for id, one in enumerate(interests) if one.box is not None and one.box.contains((value,))
        )
        wanted = {(head, link_of_sink(sink)) for head, sink, interest in held if interest in matching}
        for origin in range(len(parents) + 1):
            assert tree.reached(origin, matching) == wanted


def test_an_advertised_topic_brings_what_was_withheld() -> None:
    table = HeadTable("suboptimal", FIGURE_2)
    table.open(7, tells=True, topics=frozenset())
    table.open(link_of_sink(0), tells=False)
    assert table.add(link_of_sink(0), S1) == []
    assert table.add(link_of_sink(0), S2) == []
    assert table.cancel(link_of_sink(0), S2) == []
    assert [(one.link, one.is_new, one.interest) for one in table.advertise(7, frozenset({"air"}))] == [(7, True, S1)]
    assert table.told(7) == [S1]


def test_closing_a_link_takes_back_what_came_over_it() -> None:
    table = HeadTable("suboptimal", FIGURE_2)
    table.open(7, tells=True)
    table.open(3, tells=False)
    table.add(3, S1)
    table.add(3, S2)
    assert {(one.is_new, one.interest) for one in table.close(3)} >= {(False, S1)}
    assert table.told(7) == [] and len(table) == 0 and table.links == [7]
