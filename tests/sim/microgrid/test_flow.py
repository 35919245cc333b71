"""The power flow for many steps at once agrees with pandapower's, step by step."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

from tests.sim.microgrid.conftest import START_S
from tieline.sim.microgrid.disturbance import left_by_fault
from tieline.sim.microgrid.extra import Unbuildable
from tieline.sim.microgrid.flow import STEP_S, PowerFlow, read_profiles, rows_at, sensitivity
from tieline.sim.microgrid.network import PowerNetwork, _cigre_lv, build, solve
from tieline.sim.microgrid.network_cache import keep


def test_solved_steps_are_what_newton_finds() -> None:
    import pandapower
    from pandapower import networks

    network = build("cigre_lv")
    net = _cigre_lv(networks)
    # the same injections at the same buses, as constant powers of one element each
    net.load.drop(net.load.index, inplace=True)
    net.sgen.drop(net.sgen.index, inplace=True)
    buses = {name.removeprefix("Bus "): bus for bus, name in net.bus["name"].items()}
    for node in network.nodes:
        pandapower.create_sgen(net, buses[node], p_mw=0.0, q_mvar=0.0)
    voltage, power = PowerFlow(network).between(int(START_S // STEP_S), 96)
    for step in (0, 37, 72):
        net.sgen["p_mw"] = power[step].real / 1_000
        net.sgen["q_mvar"] = power[step].imag / 1_000
        pandapower.runpp(net, numba=False)
        solved = [net.res_bus.vm_pu[buses[node]] for node in network.nodes]
        assert voltage[step] == pytest.approx(solved, abs=1e-7)


def test_both_networks_of_cigre_are_what_they_are() -> None:
    low, medium = keep("cigre_lv", build), keep("cigre_mv", build)
    assert (len(low.nodes), set(low.feeders)) == (15, {"R1", "I2", "C1"})
    assert set(low.kilovolts) == {0.4} and set(medium.kilovolts) == {20.0}
    assert len(set(medium.feeders)) == 2 and len(medium.nodes) == 13


@pytest.mark.parametrize("node", range(15))
@pytest.mark.parametrize("kind", ["kW", "kvar"])
def test_the_sensitivity_is_the_slope_of_the_flow(node: int, kind: str) -> None:
    """A tangent misses its curve by no more than the second order, whose size follows from the equation solved.

    Seen from the voltage without load, which is 1, the equation is ``v = 1 + Z·conj(s / v)``.  Where ``s`` is injected,
    ``w = v - 1`` satisfies ``|w| <= b / (1 - |w|)`` with ``b = |Z·s|`` of that node, so ``|w| <= r``, the smaller root.
    Elsewhere, with ``a = |Z·s|`` between the two nodes, ``Z·conj(s / v)`` is off ``Z·conj(s)`` by ``a·r / (1 - r)`` at
    most, and ``|1 + w|`` lies above ``1 + Re w`` by ``|w|² / 2(1 - |w|)`` at most.
    """
    network = keep("cigre_lv", build)
    assert network.idle == pytest.approx(network.idle[0]) and abs(network.idle[0]) == pytest.approx(1.0)
    amounts = np.linspace(-20.0, 20.0, 4_001)
    power = np.zeros((len(amounts), len(network.idle)), complex)
    power[:, network.buses[node]] = amounts * (1 if kind == "kW" else 1j) / network.base_kw
    change = np.abs(solve(network, power)[:, network.buses]) - np.abs(network.idle[network.buses])
    predicted = np.outer(amounts, sensitivity(network)[("kW", "kvar").index(kind)][:, node])

    impedance = np.abs(network.impedance[network.buses, network.buses[node]])
    across = np.outer(np.abs(amounts) / network.base_kw, impedance)
    away = (1 - np.sqrt(1 - 4 * across[:, [node]])) / 2
    moved = across / (1 - away)
    second_order = across * away / (1 - away) + moved**2 / (2 * (1 - moved))
    second_order += 1e-9  # the solver stops when a round changes less
    assert (np.abs(change - predicted) <= second_order).all()
    assert (np.abs(change - 1.01 * predicted) > second_order).any(), "a slope that is wrong by a hundredth is seen"


def test_an_impossible_load_is_refused() -> None:
    network = keep("cigre_lv", build)
    with pytest.raises(Unbuildable, match="does not converge"):
        solve(network, np.full((1, len(network.idle)), -10.0 + 0j))


@pytest.mark.parametrize(
    ("name", "sentence"),
    [("cigre_hv", 'there is no network "cigre_hv"'), ("1-XV-rural9--0-sw", 'SimBench has no network "1-XV-rural9')],
)
def test_an_unknown_network_is_refused(name: str, sentence: str) -> None:
    with pytest.raises(Unbuildable, match=sentence):
        build(name)


def test_a_fault_takes_most_from_where_it_is_and_least_from_other_feeders() -> None:
    network = keep("cigre_lv", build)
    place = network.nodes.index("R16")
    left, current = left_by_fault(network, place, 0.01)
    assert left.argmin() == place and left[place] < 0.5
    others = [left[node] for node, feeder in enumerate(network.feeders) if feeder != "R1"]
    assert min(others) > 0.8 and 500 < current < 20_000


def test_profiles_repeat_week_by_week_and_keep_their_weekday() -> None:
    year = 52 * 7 * 96
    assert (rows_at(0, 500) == rows_at(year, 500)).all()
    profile = read_profiles(["G3-A_pload"])["G3-A_pload"]
    friday = 1_451_606_400 // STEP_S  # 2016-01-01
    days = profile[rows_at(friday + 10 * year, year)].reshape(52, 7, 96).mean(axis=(0, 2))
    assert days.argmin() == 2  # a workshop rests on Sunday


def test_an_unknown_profile_is_named() -> None:
    with pytest.raises(Unbuildable, match="no profile called H9-X_pload"):
        read_profiles(["H9-X_pload"])


def test_a_kept_network_is_the_one_that_was_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    built = keep("cigre_lv", build)

    def never(name: str) -> PowerNetwork:
        raise AssertionError(name)

    kept = keep("cigre_lv", never)
    for field in fields(PowerNetwork):
        assert np.array_equal(getattr(kept, field.name), getattr(built, field.name)), field.name
    [file] = (tmp_path / "tieline").iterdir()
    file.write_bytes(file.read_bytes()[:100])
    with pytest.raises(AssertionError, match="cigre_lv"):
        keep("cigre_lv", never)
