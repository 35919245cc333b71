from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tests.match.cover.interests import MESSAGES, crowded, interests, nested, wants
from tieline.match.box import Box
from tieline.match.cover.forest import NOTHING, Changes, Forest, Mode
from tieline.match.cover.interest import Interest

SAMPLE = MESSAGES[::13]
any_interest = st.one_of(nested, nested, crowded, interests)


class Forests(RuleBasedStateMachine):
    """A forest beside a dictionary of what is held and the set that upstream was told."""

    @initialize(mode=st.sampled_from(("optimal", "suboptimal")))
    def begin(self, mode: Mode) -> None:
        self.forest = Forest(mode)
        self.held: dict[int, Interest] = {}
        self.upstream: set[Interest] = set()
        self.ids = 0

    @rule(interest=any_interest)
    def add(self, interest: Interest) -> None:
        self.ids += 1
        self.put(self.ids, interest)

    @rule(interest=any_interest, data=st.data())
    def replace(self, interest: Interest, data: st.DataObject) -> None:
        if self.held:
            self.put(data.draw(st.sampled_from(sorted(self.held))), interest)

    @rule(data=st.data())
    def add_one_that_is_there(self, data: st.DataObject) -> None:
        if self.held:
            self.add(self.held[data.draw(st.sampled_from(sorted(self.held)))])

    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        if self.held:
            id = data.draw(st.sampled_from(sorted(self.held)))
            gone = self.held.pop(id)
            self.apply(self.forest.remove(id))
            if any(other.canonical == gone.canonical for other in self.held.values()):
                assert self.covered(gone)

    @rule(data=st.data())
    def remove_one_that_is_forwarded(self, data: st.DataObject) -> None:
        if self.held:
            interest = data.draw(st.sampled_from(sorted(self.upstream, key=repr)))
            for id in [id for id, held in self.held.items() if held.canonical == interest.canonical]:
                del self.held[id]
                self.apply(self.forest.remove(id))
            assert interest not in self.upstream, "garbage was left upstream"

    def put(self, id: int, interest: Interest) -> None:
        is_new = id not in self.held
        changes = self.forest.add(id, interest)
        self.held[id] = interest
        self.apply(changes)
        if is_new and self.forest.mode == "suboptimal":
            assert not changes.cancel, "suboptimal covering withdraws nothing"

    def apply(self, changes: Changes) -> None:
        """Tell upstream one thing after the other; nothing may be missing at any time."""
        for interest in changes.forward:
            assert interest not in self.upstream, "upstream was told twice"
            self.upstream.add(interest)
        for interest in changes.cancel:
            assert interest in self.upstream, "upstream was told to forget what it never knew"
            self.upstream.remove(interest)
            assert all(self.covered(held) for held in self.held.values()), "a loss window"

    def covered(self, interest: Interest) -> bool:
        return any(known.covers(interest) for known in self.upstream)

    @invariant()
    def upstream_wants_exactly_what_is_wanted_here(self) -> None:
        assert set(self.forest.forwarded) == self.upstream
        assert all(self.covered(held) for held in self.held.values())
        spellings = {held.canonical for held in self.held.values()}
        assert all(known.canonical in spellings for known in self.upstream)
        for message in SAMPLE:
            here = any(wants(held, message) for held in self.held.values())
            assert here == any(wants(known, message) for known in self.upstream)

    @invariant()
    def optimal_is_the_maximal_ones(self) -> None:
        if self.forest.mode != "optimal":
            return
        distinct = {held.canonical for held in self.held.values()}
        maximal = {one for one in distinct if not any(other != one and other.covers(one) for other in distinct)}
        assert {known.canonical for known in self.upstream} == maximal

    @invariant()
    def it_is_in_order(self) -> None:
        self.forest.check()
        assert len(self.forest) == len(self.held)
        assert self.forest.distinct == len({held.canonical for held in self.held.values()})

    def teardown(self) -> None:
        if not hasattr(self, "forest"):
            return
        for id in list(self.held):
            del self.held[id]
            self.apply(self.forest.remove(id))
        assert not self.upstream, "garbage was left upstream"
        assert not self.forest._roots._groups._root.children
        assert not self.forest.distinct


TestForests = Forests.TestCase
TestForests.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)


def voltage(lo: float, hi: float) -> Interest:
    return Interest("microgrid/+/pcc", "pcc", Box((lo,), (hi,)))


@pytest.mark.parametrize("mode", ["optimal", "suboptimal"])
def test_a_covered_interest_is_not_forwarded(mode: Mode) -> None:
    forest = Forest(mode)
    assert forest.add(1, voltage(0, 9)) == Changes(forward=(voltage(0, 9),))
    assert forest.add(2, voltage(1, 5)) == NOTHING
    assert forest.remove(2) == NOTHING
    assert forest.remove(1) == Changes(cancel=(voltage(0, 9),))


@pytest.mark.parametrize("mode", ["optimal", "suboptimal"])
def test_cancelling_exposes_what_was_covered_and_only_its_largest(mode: Mode) -> None:
    forest = Forest(mode)
    forest.add("all", voltage(0, 9))
    forest.add("wide", voltage(1, 5))
    forest.add("narrow", voltage(2, 3))
    assert forest.remove("all") == Changes(forward=(voltage(1, 5),), cancel=(voltage(0, 9),))


def test_a_larger_one_later() -> None:
    optimal, suboptimal = Forest("optimal"), Forest("suboptimal")
    for forest in (optimal, suboptimal):
        forest.add("narrow", voltage(2, 3))
    assert optimal.add("wide", voltage(1, 5)) == Changes(forward=(voltage(1, 5),), cancel=(voltage(2, 3),))
    assert suboptimal.add("wide", voltage(1, 5)) == Changes(forward=(voltage(1, 5),))
    assert optimal.remove("wide") == Changes(forward=(voltage(2, 3),), cancel=(voltage(1, 5),))
    assert suboptimal.remove("wide") == Changes(cancel=(voltage(1, 5),))


@pytest.mark.parametrize("mode", ["optimal", "suboptimal"])
def test_removing_from_the_middle_leaves_no_gap(mode: Mode) -> None:
    forest = Forest(mode)
    for radius in (1, 2, 3):
        forest.add(radius, voltage(-radius, radius))
    assert forest.remove(2).forward == ()
    forest.check()
    changes = forest.remove(3)
    assert changes.cancel == (voltage(-3, 3),)
    assert list(forest.forwarded) == [voltage(-1, 1)]


@pytest.mark.parametrize(("mode", "exposed"), [("optimal", [(-2, 2)]), ("suboptimal", [(-1, 1), (-2, 2)])])
def test_of_what_is_exposed_the_optimal_mode_forwards_the_largest(mode: Mode, exposed: list[tuple[int, int]]) -> None:
    forest = Forest(mode)
    forest.add("all", voltage(-9, 9))
    forest.add("narrow", voltage(-1, 1))
    forest.add("wide", voltage(-2, 2))
    assert forest.remove("all").forward == tuple(voltage(lo, hi) for lo, hi in exposed)
    forest.check()


def test_an_interest_without_a_condition_withdraws_all_below_its_filter() -> None:
    forest = Forest("optimal")
    boxed = [
        voltage(0, 1),
        Interest("microgrid/7/pcc", "other", Box((0.0, 0.0), (1.0, 1.0))),
        Interest("microgrid/8/pcc"),
    ]
    for id, interest in enumerate(boxed):
        forest.add(id, interest)
    forest.add("elsewhere", Interest("microgrid/7"))
    changes = forest.add("all", Interest("microgrid/+/pcc"))
    assert changes == Changes((Interest("microgrid/+/pcc"),), tuple(boxed))
    assert set(forest.remove("all").forward) == set(boxed)


@pytest.mark.parametrize("mode", ["optimal", "suboptimal"])
def test_upstream_does_not_hear_who_holds_an_interest(mode: Mode) -> None:
    forest = Forest(mode)
    forest.add("first", Interest("#"))
    assert forest.add("second", Interest("+/#")) == NOTHING
    assert forest.remove("first") == NOTHING
    assert list(forest.forwarded) == [Interest("#")]
    assert forest.remove("second") == Changes(cancel=(Interest("#"),)), "cancelled as it was spelt when forwarded"


@pytest.mark.parametrize("mode", ["optimal", "suboptimal"])
def test_an_id_that_changes_its_mind_leaves_no_gap(mode: Mode) -> None:
    forest = Forest(mode)
    forest.add(1, voltage(0, 4))
    forest.add(2, voltage(1, 2))
    assert forest.add(1, voltage(3, 9)) == Changes(forward=(voltage(3, 9), voltage(1, 2)), cancel=(voltage(0, 4),))
    assert forest.add(1, voltage(3, 9)) == NOTHING


def test_removing_what_is_not_held() -> None:
    with pytest.raises(KeyError):
        Forest().remove(1)


def test_it_says_how_it_is() -> None:
    forest = Forest("suboptimal")
    forest.add(1, Interest("a"))
    forest.add(2, Interest("a"))
    forest.add(3, Interest("#"))
    assert repr(forest) == "<Forest suboptimal: 3 held, 2 distinct, 2 forwarded>"
