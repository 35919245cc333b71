from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tieline.sim import clock as module
from tieline.sim.clock import GENESIS, Clock, Stuck


@given(st.lists(st.sampled_from((0.0, 0.5, 0.5, 1.0, 7.25)), max_size=30))
def test_everything_happens_at_its_time_and_ties_in_the_order_in_which_they_were_set(delays: list[float]) -> None:
    clock = Clock()
    happened: list[tuple[float, int]] = []
    for number, delay in enumerate(delays):
        clock.after(delay, lambda now, number=number: happened.append((now, number)))  # type: ignore[misc]
    clock.run_for(10)
    assert happened == sorted((GENESIS + delay, number) for number, delay in enumerate(delays))
    assert clock.now == GENESIS + 10
    assert clock.next is None


def test_what_happens_at_a_moment_may_cause_more_at_the_same_moment_and_that_comes_after_it() -> None:
    clock = Clock()
    said: list[str] = []

    def cause(now: float) -> None:
        said.append("cause")
        clock.at(now, lambda now: said.append("effect"))

    clock.after(1, cause)
    clock.after(1, lambda now: said.append("other"))
    clock.run_until(GENESIS + 1)
    assert said == ["cause", "other", "effect"]


def test_time_is_that_of_what_happens() -> None:
    clock = Clock(5.0)
    seen: list[tuple[float, float]] = []
    clock.after(2.5, lambda now: seen.append((now, clock.now)))
    assert clock.next == 7.5
    assert clock.step()
    assert seen == [(7.5, 7.5)]
    assert not clock.step()
    assert clock.now == 7.5


def test_nothing_is_set_for_a_time_that_is_over() -> None:
    clock = Clock()
    with pytest.raises(ValueError, match="is over"):
        clock.at(GENESIS - 0.001, print)
    with pytest.raises(ValueError, match="is over"):
        clock.after(float("nan"), print)
    with pytest.raises(ValueError, match="is over"):
        clock.run_until(GENESIS - 1)


def test_what_is_cancelled_does_not_happen() -> None:
    clock = Clock()
    happened: list[float] = []
    clock.cancel(clock.after(1, happened.append))
    clock.cancel(None)
    clock.run_for(2)
    assert not happened


def test_a_world_in_which_no_time_passes_is_stuck(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PATIENCE", 100)
    clock = Clock()

    def again(now: float) -> None:
        clock.at(now, again)

    clock.after(1, again)
    with pytest.raises(Stuck):
        clock.run_for(2)


def test_the_kernel_needs_none_of_what_the_worlds_need() -> None:
    """Nor anything that could read the real time or open a socket: its modules are all that a process has to load."""
    names = (
        "pandapower",
        "pandas",
        "pyarrow",
        "numba",
        "scipy",
        "asyncio",
        "select",
        "tieline.net",
        "tieline.sim.microgrid",
    )
    code = f"import sys, tieline.sim.client, tieline.sim.node; print([n for n in {names} if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
