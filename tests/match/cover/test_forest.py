from __future__ import annotations

import random

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tests.kits.examples import examples
from tests.match.cover.interests import MESSAGES, crowded, interests, nested, wants
from tieline.match.box import Box
from tieline.match.cover import boxes
from tieline.match.cover.boxes import IndexFactory
from tieline.match.cover.forest import NOTHING, Changes, Forest, Mode
from tieline.match.cover.interests import Interest
from tieline.match.index.small import SmallIndex

SAMPLE = MESSAGES[::13]
any_interest = st.one_of(nested, nested, crowded, interests)


class Watched:
    """A forest beside a dictionary of what is held and the set that upstream was told, compared at each step."""

    def __init__(self, mode: Mode, make_index: IndexFactory | None = None) -> None:
        self.forest = Forest(mode, make_index)
        self.held: dict[int, Interest] = {}
        self.upstream: set[Interest] = set()
        self.ids = 0

    def add(self, interest: Interest) -> None:
        self.ids += 1
        self.held[self.ids] = interest
        changes = self.forest.add(self.ids, interest)
        self.apply(changes)
        if self.forest.mode == "suboptimal":
            assert not changes.cancel, "suboptimal covering withdraws nothing"

    def replace(self, number: int, interest: Interest) -> None:
        if self.held:
            id = sorted(self.held)[number % len(self.held)]
            self.held[id] = interest
            self.apply(self.forest.add(id, interest))

    def remove(self, number: int) -> None:
        if self.held:
            id = sorted(self.held)[number % len(self.held)]
            gone = self.held.pop(id)
            was_forwarded = any(gone.canonical == known.canonical for known in self.upstream)
            changes = self.forest.remove(id)
            self.apply(changes)
            if not was_forwarded:
                assert changes == NOTHING, "upstream never knew it"

    def apply(self, changes: Changes) -> None:
        """Tell upstream one thing after the other; nothing may be missing at any time."""
        for interest in changes.forward:
            assert interest not in self.upstream, "upstream was told twice"
            self.upstream.add(interest)
        for interest in changes.cancel:
            assert interest in self.upstream, "upstream was told to forget what it never knew"
            self.upstream.remove(interest)
            assert all(self.covered(held) for held in self.held.values()), "a loss window"
        self.verify()

    def covered(self, interest: Interest) -> bool:
        return any(known.covers(interest) for known in self.upstream)

    def verify(self) -> None:
        self.forest.check()
        distinct = {held.canonical for held in self.held.values()}
        assert len(self.forest) == len(self.held)
        assert self.forest.distinct == len(distinct)
        assert set(self.forest.forwarded) == self.upstream
        assert all(self.covered(held) for held in distinct), "something is lost"
        known = {interest.canonical for interest in self.upstream}
        assert known <= distinct, "upstream wants what nobody here wants"
        if self.forest.mode == "optimal":
            assert known == {
                one for one in distinct if not any(other != one and other.covers(one) for other in distinct)
            }

    def leave(self) -> None:
        while self.held:
            self.remove(0)
        assert not self.upstream, "garbage was left upstream"
        assert not self.forest.distinct
        assert not self.forest._roots._groups._root.children


class Forests(RuleBasedStateMachine):
    """Few steps of every kind, with interests of every kind."""

    @initialize(mode=st.sampled_from(("optimal", "suboptimal")))
    def begin(self, mode: Mode) -> None:
        self.watched = Watched(mode)

    @rule(interest=any_interest)
    def add(self, interest: Interest) -> None:
        self.watched.add(interest)

    @rule(interest=any_interest, number=st.integers(0, 9))
    def replace(self, interest: Interest, number: int) -> None:
        self.watched.replace(number, interest)

    @rule(number=st.integers(0, 9))
    def add_one_that_is_there(self, number: int) -> None:
        held = list(self.watched.held.values())
        if held:
            self.watched.add(held[number % len(held)])

    @rule(number=st.integers(0, 9))
    def remove(self, number: int) -> None:
        self.watched.remove(number)

    @invariant()
    def upstream_wants_exactly_the_messages_that_are_wanted_here(self) -> None:
        for message in SAMPLE:
            here = any(wants(held, message) for held in self.watched.held.values())
            assert here == any(wants(known, message) for known in self.watched.upstream)

    def teardown(self) -> None:
        if hasattr(self, "watched"):
            self.watched.leave()


TestForests = Forests.TestCase
TestForests.settings = examples(30, stateful_step_count=20)


@pytest.mark.parametrize("mode", ["optimal", "suboptimal"])
@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("make_index", [None, SmallIndex])
def test_a_long_walk_among_interests_that_cover_each_other(
    mode: Mode, seed: int, make_index: IndexFactory | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(boxes, "SCAN_TO", 2)
    rng = random.Random(seed)
    watched = Watched(mode, make_index)
    for step in range(300):
        # Grows to some dozens, then shrinks, again and again.
        is_growing = step % 100 < 60
        action = rng.random()
        if action < 0.1:
            watched.replace(rng.randrange(99), some_interest(rng))
        elif (action < 0.7) == is_growing:
            watched.add(some_interest(rng))
        else:
            watched.remove(rng.randrange(99))
    watched.leave()


def some_interest(rng: random.Random) -> Interest:
    filter = rng.choice(("a/b", "a/b", "a/+", "a/#", "+/b", "#", "+/#"))
    if rng.random() < 0.05:
        return Interest(filter)
    centre, reach = rng.choice((0.0, 0.0, 1.0)), float(rng.randrange(12))
    if rng.random() < 0.5:
        return Interest(filter, "one", Box((centre - reach,), (centre + reach,)))
    other = float(rng.randrange(4))
    return Interest(filter, "two", Box((centre - reach, -other), (centre + reach, other)))


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


def test_a_box_with_other_attributes_than_its_type_changes_nothing() -> None:
    forest = Forest()
    forest.add(1, voltage(0, 1))
    with pytest.raises(ValueError):
        forest.add(2, Interest("microgrid/+/pcc", "pcc", Box((0.0, 0.0), (1.0, 1.0))))
    forest.check()
    assert len(forest) == forest.distinct == 1


def test_removing_what_is_not_held() -> None:
    with pytest.raises(KeyError):
        Forest().remove(1)


def test_it_says_how_it_is() -> None:
    forest = Forest("suboptimal")
    forest.add(1, Interest("a"))
    forest.add(2, Interest("a"))
    forest.add(3, Interest("#"))
    assert repr(forest) == "<Forest suboptimal: 3 held, 2 distinct, 2 forwarded>"
