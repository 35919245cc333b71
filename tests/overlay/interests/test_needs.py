"""What is said of what is needed: the fewest entries, never too few, also in between, against brute force."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kits.examples import examples
from tieline.match.cover.filters import covers
from tieline.overlay.interests.entries import Entries, Entry, Terms
from tieline.overlay.interests.needs import Needs

FILTERS = ("a", "b", "a/b", "a/+", "a/#", "+", "+/b", "#", "a/b/c", "a/+/c", "$x/a", "$x/#")
ENTRIES = st.builds(
    Entry,
    st.sampled_from(FILTERS),
    st.sampled_from(("", "", "", "g")),
    st.sampled_from(("", "", "v > 1")),
    st.just(0),
)
#: Subscribe with a QoS, unsubscribe the n-th; say what has grown, say everything, or some of what has grown or of all.
STEPS = st.lists(
    st.one_of(
        st.tuples(ENTRIES, st.integers(0, 2)),
        st.tuples(st.just("end"), st.integers(0, 20)),
        st.tuples(st.just("say"), st.integers(0, 3)),
    ),
    max_size=40,
)


def _brings(entries: Entries, wanted: Entry, qos: int) -> bool:
    if wanted in entries and entries[wanted].qos >= qos:
        return True
    return not wanted.share and any(
        one.is_plain and terms.qos >= qos and covers(one.filter, wanted.filter) for one, terms in entries.items()
    )


def _fewest(held: list[tuple[Entry, int]]) -> dict[Entry, Terms]:
    """Everything that nothing else covers, by comparing all with all."""
    terms: dict[Entry, Terms] = {}
    for entry, qos in held:
        before = terms.get(entry, Terms(0, 0))
        terms[entry] = Terms(max(qos, before.qos), before.members + 1 if entry.share else 0)
    return {
        entry: own
        for entry, own in terms.items()
        if not _brings({one: its for one, its in terms.items() if one != entry}, entry, own.qos)
    }


@examples(400)
@given(STEPS, st.booleans())
def test_what_was_said_covers_what_was_granted_and_comes_down_to_the_fewest(
    steps: list[tuple[Entry | str, int]], optimally: bool
) -> None:
    needs = Needs()
    needs.cover(optimally=optimally)
    held: list[tuple[Entry, int]] = []
    known: dict[Entry, Terms] = {}
    #: What others have to know by now.
    heard_of: list[tuple[Entry, int]] = []
    for what, number in [*steps, ("say", 1)]:
        if isinstance(what, Entry):
            held.append((what, number))
            if not needs.add(what, number):
                heard_of.append((what, number))
                assert _brings(needs.said, what, number), "nobody waits for what others know"
        elif what == "end":
            if held:
                gone = held.pop(number % len(held))
                needs.remove(*gone)
                if gone in heard_of:
                    heard_of.remove(gone)
        else:
            step = needs.step(is_shrinking=bool(number & 1), most=1 if number & 2 else 1_000_000)
            if step is not None:
                known = {**known, **step.added}
                for entry in step.removed:
                    del known[entry]
                    assert optimally or entry not in {one for one, _ in held}, "nothing is taken back that is needed"
                assert number & 1 or not step.removed
            if not needs.is_grown:
                heard_of = list(held)
            if number & 1 and not needs.is_shrunk:
                fewest = _fewest(held)
                assert fewest.items() <= known.items() and known.keys() <= {one for one, _ in held}
                assert not optimally or known == fewest
        needs.cover(optimally=True)
        while (needs.is_shrunk or needs.is_grown) and held:
            step = needs.step(is_shrinking=True)
            if step is not None:
                known = {entry: its for entry, its in {**known, **step.added}.items() if entry not in step.removed}
        assert known == needs.said
        for entry, qos in heard_of:
            assert _brings(known, entry, qos)
        needs.check()


def test_what_a_wider_one_covered_comes_back_in_the_step_in_which_it_goes() -> None:
    needs = Needs()
    for filter in ("a/b", "a/c", "a/#"):
        needs.add(Entry(filter), 1)
    assert needs.step(is_shrinking=False) == ({Entry("a/#"): Terms(1)}, frozenset())
    assert needs.step(is_shrinking=True) is None
    needs.remove(Entry("a/#"), 1)
    assert needs.step(is_shrinking=False) is None
    assert needs.step(is_shrinking=True) == (
        {Entry("a/b"): Terms(1), Entry("a/c"): Terms(1)},
        frozenset({Entry("a/#")}),
    )


def test_suboptimal_covering_takes_back_only_what_has_ended() -> None:
    needs = Needs()
    needs.cover(optimally=False)
    needs.add(Entry("a/b"), 1)
    needs.step(is_shrinking=True)
    needs.add(Entry("a/#"), 1)
    assert needs.step(is_shrinking=True) == ({Entry("a/#"): Terms(1)}, frozenset())
    assert not needs.add(Entry("a/c"), 1), "what is covered is not told"
    assert needs.step(is_shrinking=True) is None
    needs.remove(Entry("a/#"), 1)
    assert needs.step(is_shrinking=True) == ({Entry("a/c"): Terms(1)}, frozenset({Entry("a/#")}))
    needs.remove(Entry("a/b"), 1)
    assert needs.step(is_shrinking=True) == ({}, frozenset({Entry("a/b")}))


def test_a_lower_qos_covers_no_higher_one_and_a_condition_covers_nothing() -> None:
    needs = Needs()
    assert needs.add(Entry("a/#"), 0)
    assert needs.add(Entry("a/b"), 1)
    assert needs.add(Entry("a/b", "", "v > 1", 5), 1)
    step = needs.step(is_shrinking=True)
    assert step is not None
    assert step.added == {Entry("a/#"): Terms(0), Entry("a/b"): Terms(1)}


def test_members_are_counted_and_nobody_waits_for_their_number() -> None:
    needs, entry = Needs(), Entry("a", "g")
    assert needs.add(entry, 1)
    assert needs.step(is_shrinking=False) == ({entry: Terms(1, 1)}, frozenset())
    assert not needs.add(entry, 0)
    assert needs.step(is_shrinking=False) == ({entry: Terms(1, 2)}, frozenset())
    needs.remove(entry, 1)
    assert needs.step(is_shrinking=True) == ({entry: Terms(0, 1)}, frozenset())


def test_what_was_never_needed_cannot_end() -> None:
    needs = Needs()
    needs.add(Entry("a"), 1)
    for entry, qos in ((Entry("b"), 1), (Entry("a"), 0)):
        with pytest.raises(KeyError):
            needs.remove(entry, qos)
