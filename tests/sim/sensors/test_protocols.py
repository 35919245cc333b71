"""Every protocol, by its name: what must hold whatever it does."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.sim.sensors.worlds import DYING, SMALL
from tieline.sim.sensors.air import CONTROL, KIND
from tieline.sim.sensors.protocols import PROTOCOLS, simulate, simulation
from tieline.sim.sensors.simulation import Simulation
from tieline.sim.sensors.tables import link_of_sink
from tieline.sim.sensors.world import World

NAMES = sorted(PROTOCOLS)


def check_energy(run: Simulation) -> None:
    """What was spent and what is left are what was given, sensor by sensor, and nobody owes."""
    sensors = run.radio.sensors
    spent, left = run.radio.air.spent[:sensors].sum(axis=1), run.radio.air.left[:sensors]
    np.testing.assert_allclose(spent + left, run.parameters.battery_j, rtol=0, atol=1e-12)
    assert (left >= 0).all()
    assert ((left == 0) == (run.radio.air.alive[:sensors] == 0)).all()


@pytest.mark.parametrize("name", NAMES)
def test_energy_is_conserved_and_the_seed_decides_everything(name: str) -> None:
    first, second = (simulation(name, World(DYING, 3)) for _ in range(2))
    assert first.run() == second.run()
    assert (first.radio.air.received == second.radio.air.received).all()
    check_energy(first)
    assert first.living[-1] < DYING.nodes, "the test is about networks in which sensors die"


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_delivered_before_it_happens_or_to_nobody(name: str) -> None:
    run = simulation(name, World(SMALL, 1))
    outcome = run.run()
    air = run.radio.air
    for event, sink in zip(*np.nonzero(air.received >= 0), strict=True):
        assert air.received[event, sink] >= run.parameters.slots(float(run.world.event_second[event]))
        assert int(event) in run.wanted
    assert 0 <= outcome.delivered <= outcome.wanted
    assert outcome.success > {"cetp-carry": 0.0, "flooding": 0.5}.get(name, 0.8)


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith("rpcp") or name == "central"])
def test_without_loss_and_change_brokers_deliver_everything_once(name: str) -> None:
    still = replace(
        SMALL, loss=0.0, slowest_mps=0.01, fastest_mps=0.02, events_per_100s=60.0, change_s=1000.0, settle_s=20.0
    )
    run = simulation(name, World(still, 2))
    outcome = run.run()
    assert outcome.success == 1.0
    assert outcome.counters["received_twice"] == 0
    for event, sink in zip(*np.nonzero(run.radio.air.received >= 0), strict=True):
        assert int(sink) in run.wanted[int(event)], "content is matched exactly"


@pytest.mark.parametrize("name", ["rpcp-filter", "rpcp-peer"])
def test_lost_subscriptions_are_said_again(name: str) -> None:
    hard = replace(SMALL, loss=0.2, retries=0, events_per_100s=20.0, range_m=70.0, settle_s=60.0, duration_s=40.0,
                   slowest_mps=0.01, fastest_mps=0.02, change_s=1000.0)  # fmt: skip

    def known(periods_s: float) -> float:
        """The share of what sinks hold that their heads know in the end."""
        run = simulation(name, World(replace(hard, election_s=periods_s), 4))
        run.run()
        assert run.radio.air.counters[4] > 0, "frames were given up"
        protocol = run.protocol
        at = protocol._upkeep.registered  # type: ignore[attr-defined]
        tables = protocol.backbone.tables  # type: ignore[attr-defined]
        held = [(tables[at[sink]].held(link_of_sink(sink)), holds) for sink, holds in enumerate(run.holds)]
        return sum(len(knows & holds) for knows, holds in held) / sum(len(holds) for _, holds in held)

    assert known(10_000.0) < 0.8, "without digests what is lost stays lost"
    assert known(5.0) >= 0.9


def test_a_cluster_that_dies_is_gone_around() -> None:
    world = World(replace(SMALL, nodes=100, clusters=12, range_m=45.0, change_s=1000.0, duration_s=60.0), 5)
    run = simulation("rpcp-filter", world)
    protocol = run.protocol
    clusters = protocol.backbone.clusters  # type: ignore[attr-defined]
    inner = next(one for one in range(len(clusters)) if clusters.parent[one] >= 0 and clusters.children(one))
    orphans = clusters.children(inner)

    def die() -> None:
        run.radio.air.left[clusters.members[inner]] = 1e-12

    run.after(run.parameters.slots(15.0), die)
    outcome = run.run()
    assert clusters.head[inner] == -1
    assert all(clusters.parent[orphan] not in (-1, inner) or orphan == clusters.core for orphan in orphans)
    late = [event for event, second in enumerate(world.event_second) if second > 45.0 and event in run.wanted]
    wanted = [(event, sink) for event in late for sink in run.wanted[event]]
    got = sum(run.radio.air.received[event, sink] >= 0 for event, sink in wanted)
    assert got >= 0.9 * len(wanted) > 0
    assert outcome.tables[inner] == 0


def test_heads_rotate_and_take_their_tables_along() -> None:
    short = replace(SMALL, battery_j=0.15, election_s=5.0, duration_s=60.0, idle_mw=0.1)
    run = simulation("rpcp-filter", World(short, 6))
    heads = list(run.protocol.backbone.clusters.head)  # type: ignore[attr-defined]
    outcome = run.run()
    assert run.protocol.backbone.clusters.head != heads  # type: ignore[attr-defined]
    assert outcome.success > 0.95


def test_fusion_passes_one_of_several_reports_on() -> None:
    several = replace(SMALL, witnesses=3, events_per_100s=60.0)
    plain, fused = (simulate(name, several, 7) for name in ("rpcp-filter", "rpcp-filter-fusion"))
    assert fused.counters["sent_data"] < 0.75 * plain.counters["sent_data"]
    assert fused.success == plain.success == 1.0


def test_advertisements_keep_subscriptions_where_nothing_can_be_sensed() -> None:
    regional = replace(SMALL, sensing_m=30.0, events_per_100s=60.0)
    plain, advertised = (simulate(name, regional, 8) for name in ("rpcp-peer", "rpcp-peer-advertised"))
    assert sum(advertised.tables.values()) < sum(plain.tables.values())
    assert advertised.success > 0.95


def test_a_full_queue_gives_up_the_longest_way() -> None:
    run = simulation("psm", World(replace(SMALL, queue=3, events_per_100s=3000.0), 9))
    radio = run.radio
    run.run()
    assert radio.air.counters[3] > 0
    assert (radio.air.length <= 3).all()
    assert (radio.air.queue[:, :, KIND] <= CONTROL).all()
