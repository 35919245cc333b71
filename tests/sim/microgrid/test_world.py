"""What meters see: readings, incidents, protection and commands of one world, the same for the same seed."""

from __future__ import annotations

import json
from itertools import pairwise

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kits.examples import examples
from tests.sim.microgrid.conftest import START_S, quiet
from tieline.sim.microgrid import Fault, Islanding, Rates, Upset, World
from tieline.sim.microgrid.disturbance import Disturbance, apply, verdict
from tieline.sim.microgrid.extra import Unbuildable
from tieline.sim.microgrid.messages import LEVELS, Message
from tieline.sim.microgrid.rows import messages
from tieline.sim.microgrid.scenario import draw_day
from tieline.sim.microgrid.world import DEAD_V, Block, Fluctuation


def _said(world: World, duration_s: float) -> list[Message]:
    return [each for batch in messages(world, duration_s) for each in batch]


def _reports(said: list[Message], kind: str) -> list[dict[str, object]]:
    return [json.loads(each.payload) for each in said if each.kind == kind]


@pytest.fixture(name="hour", scope="module")
def _hour(eventful: World) -> Block:
    return next(eventful.blocks())


@pytest.fixture(name="said", scope="module")
def _told(eventful: World) -> list[Message]:
    return _said(eventful, 3_600)


def test_the_same_seed_gives_the_same_bytes_and_another_does_not() -> None:
    script = (Islanding(at_s=START_S + 60), Fault(at_s=START_S + 300, node="C14"))
    first, again, other = (_said(quiet(seed, script=script), 900) for seed in (3, 3, 4))
    assert first == again
    assert [each.payload for each in first] != [each.payload for each in other]


def test_how_a_world_is_consumed_changes_nothing(eventful: World, said: list[Message]) -> None:
    short = _said(eventful, 600)
    assert short[: len(short) - len(eventful.nodes)] == said[: len(short) - len(eventful.nodes)]
    # the readings of the last step leave their meters within the second after it
    assert {each.payload for each in short} <= {each.payload for each in said}


def test_messages_are_in_the_order_of_time_across_blocks() -> None:
    world = quiet(step_s=10.0)
    said = _said(world, 2.5 * 36_000)
    assert all(one.sent_s <= other.sent_s for one, other in pairwise(said))
    assert sum(each.kind == "reading" for each in said) == 9_000 * len(world.nodes)


def test_a_reading_says_what_the_arrays_hold(eventful: World, hour: Block, said: list[Message]) -> None:
    readings = [each for each in said if each.kind == "reading"]
    for each in readings[::997]:
        content = json.loads(each.payload)
        step, node = round(content["time"] - START_S) - 1, eventful.nodes.index(content["node"])
        assert each.topic == f"microgrid/cigre-lv/{content['node']}/reading"
        assert content["voltage"] == round(hour.voltage[step, node], 2)
        assert content["power"] == pytest.approx(hour.power[step, node], abs=6e-4)
        assert content["frequency"] is None or content["frequency"] == round(hour.frequency[step], 3)
        apparent = np.hypot(content["power"], content["reactive"])
        assert content["current"] == pytest.approx(apparent * 1_000 / (3 * max(content["voltage"], 1e-9)), abs=0.1)


def test_an_ordinary_day_stays_in_zone_1(calm: World) -> None:
    day = list(calm.blocks(86_400))
    voltage = np.concatenate([block.voltage for block in day])
    frequency = np.concatenate([block.frequency for block in day])
    assert voltage.min() > 207 and voltage.max() < 253
    assert frequency.min() > 49.8 and frequency.max() < 50.2
    assert not any(each.kind != "command" for block in day for each in block.messages)


def test_a_network_that_has_grown_draws_more_and_sags(calm: World) -> None:
    block, heavy = next(calm.blocks()), next(quiet(load=2.0).blocks())
    night = heavy.power.sum(axis=1) / block.power.sum(axis=1)  # no sun: nothing but loads
    assert night == pytest.approx(2.0)
    assert (heavy.voltage.mean(axis=0) < block.voltage.mean(axis=0)).all()


def test_a_separation_goes_through_the_zones_and_comes_back(hour: Block) -> None:
    before, alone, after = hour.voltage[:599], hour.voltage[600:780], hour.voltage[790:1_700]
    assert alone.min() < 195.5 and before.min() > 207 and after.min() > 207
    assert 42.5 < hour.frequency[600:780].min() < 49
    assert np.abs(hour.frequency[790:] - 50).max() < 0.2
    assert (hour.voltage[660:780] > 207).all()


def test_a_separation_is_told_in_its_order(said: list[Message]) -> None:
    acted = [(each["device"], each["action"]) for each in _reports(said, "protection")]
    assert acted[:2] == [("pcc", "trip"), ("pcc", "reclose")]
    orders = [(each["device"], each["action"]) for each in _reports(said, "command") if "source-" not in str(each)]
    assert orders.index(("pcc", "open")) < orders.index(("former", "setpoint")) < orders.index(("pcc", "close"))
    shed = [device for device, action in orders if action == "shed"]
    assert shed and shed == [device for device, action in orders if action == "restore"]
    dips = [each for each in _reports(said, "incident") if each["kind"] == "dip" and each["time"] == START_S + 600]
    assert len(dips) == 15


def test_a_shed_load_draws_nothing(eventful: World, hour: Block, said: list[Message]) -> None:
    shed = next(each for each in _reports(said, "command") if each["action"] == "shed")
    node = eventful.nodes.index(str(shed["device"]).removeprefix("load-"))
    assert (hour.power[602:640, node] == 0).all() and hour.power[590, node] != 0


def test_a_fault_interrupts_its_feeder_and_dips_no_other_too_far(
    eventful: World, hour: Block, said: list[Message]
) -> None:
    [fault] = _reports(said, "fault")
    assert fault["node"] == "R16"
    cut = [each for each in _reports(said, "incident") if each["kind"] == "interruption"]
    mine = {name for name, feeder in zip(eventful.nodes, eventful.network.feeders, strict=True) if feeder == "R1"}
    assert {each["node"] for each in cut} == mine
    assert all(each["duration"] == pytest.approx(5.25) for each in cut)
    columns = [index for index, name in enumerate(eventful.nodes) if name in mine]
    assert hour.voltage[1_801:1_805][:, columns].max() < DEAD_V
    assert hour.power[1_801:1_805][:, columns].max() == 0
    dead = [each for each in _reports(said, "reading") if each["voltage"] < DEAD_V]  # type: ignore[operator]
    assert dead and all(each["frequency"] is None and each["current"] == 0 for each in dead)
    trips = [(each["device"], each["action"]) for each in _reports(said, "protection")][2:]
    assert trips == [("breaker-R1", "trip"), ("breaker-R1", "reclose")]


def test_a_lasting_fault_locks_out_until_it_is_repaired() -> None:
    world = quiet(script=[Fault(at_s=START_S + 100.0, node="C20", repair_s=900.0)])
    said = _said(world, 1_800)
    acted = [each["action"] for each in _reports(said, "protection")]
    assert acted == ["trip", "reclose", "trip", "lockout"]
    assert [each["action"] for each in _reports(said, "command") if each["device"] == "breaker-C1"] == ["open", "close"]
    assert {each["duration"] for each in _reports(said, "incident") if each["kind"] == "interruption"} == {905.5}


@pytest.mark.parametrize(("factor", "kind"), [(0.5, "dip"), (0.001, "interruption"), (1.2, "swell"), (0.97, None)])
def test_an_upset_is_reported_by_the_meters_that_notice(factor: float, kind: str | None) -> None:
    world = quiet(script=[Upset(at_s=START_S + 30.3, node="C1", factor=factor, duration_s=0.4)])
    found = _reports(_said(world, 60), "incident")
    assert [(each["node"], each["kind"], each["duration"]) for each in found] == ([("C1", kind, 0.4)] if kind else [])
    step = next(world.blocks()).voltage[30, world.nodes.index("C1")]
    calm = next(quiet().blocks()).voltage[30, world.nodes.index("C1")]
    assert step == pytest.approx(calm * (1 - 0.4 * (1 - factor)))


@examples(100)
@given(st.floats(0, 20), st.floats(0.01, 12), st.floats(0, 1.3), st.sampled_from([0.5, 1.0, 3.0]))
def test_a_disturbance_counts_by_its_share_of_each_step(
    begin: float, length: float, factor: float, step: float
) -> None:
    times = np.arange(1, 41, dtype=np.float64) * step
    voltage, power = np.full((40, 1), 230.0), np.full((40, 1), 1 + 1j)
    apply([Disturbance(0, begin, begin + length, factor, is_cut_off=True)], times, step, voltage, power)
    for end, volts, drawn in zip(times, voltage[:, 0], power[:, 0], strict=True):
        share = max(0.0, min(end, begin + length) - max(end - step, begin)) / step
        assert volts == pytest.approx(230 * (1 - share * (1 - factor)))
        assert drawn == pytest.approx((1 + 1j) * (1 - share))


@pytest.mark.parametrize(
    ("volts", "kind"),
    [
        (0, "interruption"),
        (11.49, "interruption"),
        (11.5, "dip"),
        (206.9, "dip"),
        (207, None),
        (253, None),
        (253.1, "swell"),
    ],
)
def test_limits_of_the_verdict(volts: float, kind: str | None) -> None:
    assert verdict(volts) == kind


def test_happenings_come_at_their_rates() -> None:
    rates = Rates(islandings=1, faults=2, upsets=3, local_dips=0.5, local_swells=0.25)
    nodes = tuple("abcdefgh")
    days = [list(draw_day(day, seed=5, rates=rates, nodes=nodes)) for day in range(7 * 150)]
    drawn = [each for day in days for each in day]
    counts = [
        sum(isinstance(each, Islanding) for each in drawn),
        sum(isinstance(each, Fault) for each in drawn),
        sum(isinstance(each, Upset) and each.node is None for each in drawn),
        sum(isinstance(each, Upset) and each.node is not None for each in drawn),
    ]
    for count, expected in zip(counts, (150, 300, 450, 900), strict=True):
        assert abs(count - expected) < 5 * expected**0.5
    assert list(draw_day(3, seed=5, rates=rates, nodes=nodes)) == days[3]
    assert all(day * 86_400 <= each.at_s < (day + 1) * 86_400 for day, found in enumerate(days) for each in found)


def test_a_fluctuation_has_its_spread_and_its_memory_and_goes_on() -> None:
    def make() -> Fluctuation:
        return Fluctuation(np.random.default_rng(1), sigma=2.0, tau_s=30.0, step_s=1.0, width=400)

    values = make().next(1_200)
    assert values.std() == pytest.approx(2.0, rel=0.05)
    lagged = (values[:-30] * values[30:]).mean() / values.var()
    assert lagged == pytest.approx(np.exp(-1), abs=0.05)
    parts = make()
    assert np.allclose(np.concatenate([parts.next(500), parts.next(700)]), values)


def test_every_kind_has_its_level_and_every_payload_is_json(said: list[Message]) -> None:
    assert {each.kind for each in said} == set(LEVELS)
    for each in said:
        assert each.topic.rpartition("/")[2] == each.kind
        assert msgspec.json.decode(each.payload)["time"] <= each.sent_s + 1e-6


@pytest.mark.parametrize(
    ("wishes", "sentence"),
    [
        ({"load": 0}, "load of 0 is refused"),
        ({"step_s": 0}, "step of 0 s"),
        ({"script": [Upset(at_s=0, node="X", factor=1, duration_s=1)]}, 'no node "X"'),
    ],
)
def test_what_cannot_be_is_refused(wishes: dict[str, object], sentence: str) -> None:
    with pytest.raises(Unbuildable, match=sentence):
        quiet(**wishes)  # type: ignore[arg-type]
