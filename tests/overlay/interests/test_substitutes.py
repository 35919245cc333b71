"""What stands for needs wants no less than they do, fits, and goes when it is not needed any more."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.kits.examples import examples
from tieline.match.cover.filters import covers
from tieline.match.where import parse
from tieline.match.where.terms import Value
from tieline.overlay.interests.digests import is_digest, read_digest
from tieline.overlay.interests.entries import Entry, entry_of, size_of
from tieline.overlay.interests.needs import Needs
from tieline.overlay.interests.substitutes import Substitutes

ENTRIES, SIZE, CONDITION_SIZE = 12, 2_000, 150
VALUES = (-100.0, -3.0, 0.0, 0.5, 3.0, 7.25, 100.0)

levels = st.sampled_from(["a", "b", "c", "d", "+"])
filters = st.builds(
    lambda names, rest: "/".join(names) + rest, st.lists(levels, min_size=1, max_size=4), st.sampled_from(["", "/#"])
)
numbers = st.integers(-5, 9)
conditions = st.one_of(
    st.builds("{0} <= v <= {1}".format, numbers, numbers),
    st.builds("{0} <= v <= {1} and w > {2}".format, numbers, numbers, numbers),
    st.builds("v = {0} or v > {1}".format, numbers, numbers),
    st.builds('mode = "x" and v < {0}'.format, numbers),
    st.builds("not v > {0}".format, numbers),
    st.builds("changed(w) and w > {0}".format, numbers),
)
entries = st.one_of(
    st.builds(entry_of, filters),
    st.builds(
        lambda filter, condition: entry_of(filter, condition=condition, fingerprint=1),
        st.sampled_from(["a/+", "b"]),
        conditions,
    ),
    st.builds(lambda filter: entry_of(filter, share="g"), filters),
)
changes = st.lists(st.tuples(entries, st.integers(0, 2), st.booleans()), max_size=120)


def _wants(wide: Entry, narrow: Entry) -> bool:
    """Whether one entry wants whatever another one does."""
    if wide == narrow:
        return True
    if wide.share or narrow.share or not covers(wide.filter, narrow.filter):
        return False
    if not wide.condition:
        return True
    if wide.filter != narrow.filter or wide.fingerprint != narrow.fingerprint or not is_digest(wide.condition):
        return False
    digest, condition = read_digest(wide.condition), parse(narrow.condition)
    for v in (None, *VALUES):
        for w in (None, *VALUES):
            for mode in ("x", "y"):
                get = {"v": v, "w": w, "mode": mode}.get
                if condition.holds(get) and not digest.holds(get):
                    return False
    return True


class _Said:
    """Needs and what stands for them, as a broker has both."""

    def __init__(self) -> None:
        self.substitutes = Substitutes(entries=ENTRIES, size=SIZE, condition_size=CONDITION_SIZE)
        self.needs = Needs()
        self.held: list[tuple[Entry, int]] = []

    def change(self, entry: Entry, qos: int, *, is_new: bool) -> None:
        if is_new:
            self.held.append((entry, qos))
            self.needs.add(self.substitutes.enter(entry, qos), qos)
            moves = self.substitutes.fit(entry)
        elif (entry, qos) in self.held:
            self.held.remove((entry, qos))
            stood = self.substitutes.leave(entry, qos)
            self.needs.remove(stood, qos)
            moves = self.substitutes.relax(stood)
        else:
            return
        for move in moves:
            self.needs.move(*move)

    def check(self) -> None:
        self.substitutes.check()
        self.needs.check()
        for entry, qos in self.held:
            said = self.needs.said.items()
            assert any(_wants(wide, entry) and terms.qos >= qos for wide, terms in said), f"{entry} is not said"


@examples(150)
@given(changes, st.integers(1, 7))
def test_what_is_said_wants_all_that_is_needed_and_fits(steps: list[tuple[Entry, int, bool]], every: int) -> None:
    said = _Said()
    for number, (entry, qos, is_new) in enumerate(steps):
        said.change(entry, qos, is_new=is_new)
        assert len(said.substitutes) <= ENTRIES
        if number % every == 0:
            said.needs.step(is_shrinking=True)
            said.check()
            assert sum(not each.share for each in said.needs.said) <= ENTRIES
    for entry, qos in list(said.held):
        said.change(entry, qos, is_new=False)
    said.needs.step(is_shrinking=True)
    said.check()
    assert not said.needs.said
    assert len(said.substitutes) == said.substitutes.size == 0


def test_a_growing_step_alone_never_says_too_little() -> None:
    said = _Said()
    for number in range(3 * ENTRIES):
        said.change(entry_of(f"site/{number}/v"), 1, is_new=True)
        said.needs.step(is_shrinking=False)
        said.check()


def test_the_largest_group_is_widened_and_others_stay_as_they_are() -> None:
    said = _Said()
    said.change(entry_of("alarm/fire"), 2, is_new=True)
    for number in range(ENTRIES):
        said.change(entry_of(f"site/{number}"), 1, is_new=True)
    said.needs.step(is_shrinking=True)
    assert set(said.needs.said) == {Entry("alarm/fire"), Entry("site/#")}
    for number in range(3, ENTRIES):
        said.change(entry_of(f"site/{number}"), 1, is_new=False)
    said.needs.step(is_shrinking=True)
    assert set(said.needs.said) == {Entry("alarm/fire"), *(Entry(f"site/{number}") for number in range(3))}


def test_conditions_are_said_exactly_until_they_take_too_much_and_again_when_few_are_left() -> None:
    said = _Said()
    texts = [f"{number} <= v <= {number + 0.5}" for number in range(40)]
    taken = 0
    for number, text in enumerate(texts):
        said.change(entry_of("grid/+/v", condition=text, fingerprint=7), 1, is_new=True)
        said.needs.step(is_shrinking=True)
        said.check()
        taken += size_of(Entry("grid/+/v", "", text, 7))
        assert any(is_digest(each.condition) for each in said.needs.said) is (taken > CONDITION_SIZE), number
    (digest,) = [read_digest(each.condition) for each in said.needs.said if is_digest(each.condition)]
    said_of: list[dict[str, Value]] = [{"v": 3.2}, {"v": 3.9}, {"v": "3.2"}, {"v": True}, {}]
    assert [digest.holds(values.get) for values in said_of] == [True, False, False, False, False]
    for text in texts[2:]:
        said.change(entry_of("grid/+/v", condition=text, fingerprint=7), 1, is_new=False)
        said.needs.step(is_shrinking=True)
        said.check()
    assert {each.condition for each in said.needs.said} == set(texts[:2])


def test_very_many_filters_of_any_shape_are_widened_in_a_moment() -> None:
    substitutes = Substitutes(entries=1_000)
    for number in range(1_500):
        entry = entry_of("/".join(map(str, (number, *range(number % 60)))))
        substitutes.enter(entry, 0)
        substitutes.fit(entry)
    assert len(substitutes) <= 1_000
    substitutes.check()
