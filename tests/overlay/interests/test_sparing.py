"""What is not told to others, since nothing that meets it is published at them: and in which order that changes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from hypothesis import given
from hypothesis import strategies as st

from tieline.core.timers import Timers
from tieline.match.cover.filters import overlap
from tieline.overlay.interests.entries import Entry
from tieline.overlay.interests.marks import is_mark, knowledge
from tieline.overlay.interests.sparing import Change, Sparing

FILTERS = ("a", "a/b", "a/#", "+", "#", "b/+", "b/c", "c")
DECLARED = (frozenset({"a/#"}), frozenset({"b/c"}), frozenset({"+"}), frozenset[str](), None)


class _Network:
    """Others, who are told at once and know a while later; marks and wants that are withdrawn go still later."""

    def __init__(self) -> None:
        self.timers = Timers()
        self.sparing = Sparing(self, self.timers)
        self.now = 0.0
        self.told: dict[Entry, int] = {}
        self._said: set[Entry] = set()
        self._number = 0
        self._waiting: list[tuple[float, Callable[[], None]]] = []
        #: What others have declared, as this broker knows it, and whether it spares something wrongly at any time.
        self.wanted: dict[Entry, int] = {}

    def tell(self, changes: list[Change], now: float) -> set[int]:
        numbers = set()
        for entry, is_new in changes:
            self.told[entry] = self.told.get(entry, 0) + (1 if is_new else -1)
            assert self.told[entry] >= 0, f"{entry} is withdrawn more often than it was told"
            if is_new:
                self._said.add(entry)
                self._number += 1
                numbers.add(self._number)
        return numbers

    def when_known(self, numbers: Iterable[int], then: Callable[[], None]) -> None:
        assert set(numbers)
        self._waiting.append((self.now + 0.03, then))

    @property
    def said(self) -> Collection[Entry]:
        return self._said

    @property
    def is_growing(self) -> bool:
        return False

    def want(self, filter_: str, *, is_new: bool) -> None:
        entry = Entry(filter_)
        count = self.wanted.get(entry, 0)
        if not is_new and not count:
            return
        self.wanted[entry] = count + (1 if is_new else -1)
        self.tell(self.sparing.sort([(entry, is_new)]), self.now)

    def run(self, seconds: float) -> None:
        """Let time pass; what was withdrawn is no longer said after some of it."""
        end = self.now + seconds
        while self.now < end:
            self.now += 0.01
            due = [then for at, then in self._waiting if at <= self.now]
            self._waiting = [each for each in self._waiting if each[0] > self.now]
            for then in due:
                then()
            self.timers.fire(self.now)
            if round(self.now * 100) % 40 == 0:
                self._said = {entry for entry in self._said if self.told.get(entry)}
            self.check()

    def check(self) -> None:
        """Whoever finds its mark is told everything that it may meet."""
        marks = [entry for entry in self._said if is_mark(entry)]
        for declared in DECLARED:
            if knowledge("b", declared) not in marks:
                continue
            for entry, count in self.wanted.items():
                is_met = declared is None or any(overlap(entry.filter, each) for each in declared)
                assert not (count and is_met) or entry in self._said, (entry, declared)
        if not marks:
            assert all(entry in self._said for entry, count in self.wanted.items() if count)


_steps = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(FILTERS), st.booleans()),
        st.tuples(st.just("declare"), st.sampled_from(DECLARED)),
        st.tuples(st.just("run"), st.sampled_from([0.01, 0.05, 0.7, 3.0])),
    ),
    max_size=25,
)


@given(_steps)
def test_whoever_finds_its_mark_is_told_everything_it_may_meet(
    steps: list[tuple[str, bool | frozenset[str] | float | None]],
) -> None:
    network = _Network()
    for what, value in steps:
        if what == "declare":
            assert value is None or isinstance(value, frozenset)
            network.sparing.declare({"b": value})
        elif what == "run":
            assert isinstance(value, float)
            network.run(value)
        else:
            network.want(what, is_new=bool(value))
    network.run(6.0)
    # in the end nothing is told in vain, and nothing is spared that is not wanted
    told = {entry for entry, count in network.told.items() if count and not is_mark(entry)}
    spared = set(network.sparing.spared)
    assert told | spared == {entry for entry, count in network.wanted.items() if count}
    assert not told & spared
    last = next((value for what, value in reversed(steps) if what == "declare"), None)
    assert isinstance(last, frozenset) or not spared
    if isinstance(last, frozenset):
        assert all(any(overlap(entry.filter, each) for each in last) for entry in told)
        assert not any(overlap(entry.filter, each) for entry in spared for each in last)


def test_groups_and_topics_of_brokers_are_never_spared() -> None:
    network = _Network()
    network.sparing.declare({"b": frozenset()})
    network.run(3.0)
    changes = [(Entry("a", "g"), True), (Entry("$x/a"), True), (Entry("a"), True)]
    assert network.sparing.sort(changes) == changes[:2]


def test_everybody_has_to_declare_something() -> None:
    network = _Network()
    network.want("c", is_new=True)
    network.sparing.declare({"b": frozenset({"a"}), "c": None})
    network.run(3.0)
    assert not network.sparing.spared
    network.sparing.declare({"b": frozenset({"a"}), "c": frozenset()})
    network.run(3.0)
    assert list(network.sparing.spared) == [Entry("c")]
