"""The frequency of an island obeys its equations."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kits.examples import examples
from tieline.sim.microgrid.swing import NOMINAL_HZ, STEP_S, Machine, is_shed, separate

#: Droop alone: nothing is shed, nobody brings the frequency back.
_BARE = {"shed_hz": (), "secondary_per_s": 0.0}


@examples(40)
@given(
    deficit=st.floats(-0.5, 0.8),
    droop=st.floats(0.03, 0.1),
    damping=st.floats(0.0, 2.0),
    inertia=st.floats(1.5, 6.0),
)
def test_it_settles_where_droop_and_damping_say(deficit: float, droop: float, damping: float, inertia: float) -> None:
    machine = Machine(droop=droop, damping=damping, inertia_s=inertia, most=9.0, **_BARE)  # type: ignore[arg-type]
    settled = separate(machine, deficit=deficit, duration_s=120).hertz[-1]
    assert settled == pytest.approx(NOMINAL_HZ * (1 - deficit / (1 / droop + damping)), abs=0.01)


@examples(30)
@given(st.floats(0.05, 0.9), st.lists(st.tuples(st.floats(1, 50), st.floats(-0.2, 0.2)), max_size=3))
def test_the_frequency_falls_exactly_while_more_is_drawn_than_made(
    deficit: float, steps: list[tuple[float, float]]
) -> None:
    machine = Machine()
    found = separate(machine, deficit=deficit, duration_s=60, load_steps=steps)
    balance = found.generation - found.load
    slope = np.diff(found.hertz)
    assert slope == pytest.approx(balance[:-1] * STEP_S * NOMINAL_HZ / (2 * machine.inertia_s), abs=1e-9)
    # the energy that the masses gave up is what was missing
    taken = (balance[:-1] * STEP_S).sum()
    assert machine.inertia_s * 2 * (found.hertz[-1] / NOMINAL_HZ - 1) == pytest.approx(taken, abs=1e-6)


@pytest.mark.parametrize("deficit", [0.2, 0.4, 0.6, 0.8])
def test_secondary_control_brings_it_back(deficit: float) -> None:
    found = separate(Machine(), deficit=deficit, duration_s=600)
    assert found.hertz[-1] == pytest.approx(NOMINAL_HZ, abs=0.02)
    assert len(found.shed) == len(found.restored)


def test_a_larger_deficit_goes_deeper_and_sheds_more() -> None:
    found = [separate(Machine(), deficit=deficit, duration_s=30) for deficit in (0.2, 0.5, 0.9)]
    lowest = [float(each.hertz.min()) for each in found]
    assert lowest == sorted(lowest, reverse=True)
    assert [len(each.shed) for each in found] == [0, 1, 2]


def test_a_stage_is_off_from_its_shedding_to_its_restoration() -> None:
    found = separate(Machine(), deficit=0.6, duration_s=120)
    [(off_s, _)], [(on_s, _)] = found.shed, found.restored
    times = np.array([off_s - 0.1, off_s, on_s - 0.1, on_s])
    assert is_shed(found, 0, times).tolist() == [False, True, True, False]
    assert not is_shed(found, 1, times).any()
