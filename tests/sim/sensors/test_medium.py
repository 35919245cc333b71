"""The medium by itself: ways, turns, energy and repetitions, against what can be worked out by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("scipy")

from scipy.sparse import csr_array
from scipy.sparse.csgraph import shortest_path

from tests.sim.sensors.worlds import SMALL
from tieline.sim.sensors.air import GAVE_UP, RECEIVE_DATA, SEND_CONTROL, SEND_DATA, SENT_DATA
from tieline.sim.sensors.radio import Arrival, Radio
from tieline.sim.sensors.world import World

_STILL = replace(SMALL, loss=0.0)


def placed(positions: list[tuple[float, float]], **more: float) -> Radio:
    """A radio whose sensors stand where one likes."""
    world = World(replace(_STILL, nodes=len(positions), clusters=1, **more), 1)  # type: ignore[arg-type]
    world.positions[:] = positions
    return Radio(world)


def test_ways_have_the_fewest_hops_and_lead_over_neighbours() -> None:
    world = World(SMALL, 3)
    radio = Radio(world)
    near = np.linalg.norm(world.positions[:, None] - world.positions[None], axis=2) <= SMALL.range_m
    np.fill_diagonal(near, val=False)
    hops = shortest_path(csr_array(near), unweighted=True)
    for destination in range(0, SMALL.nodes, 7):
        for node in range(SMALL.nodes):
            assert radio.hops(node, destination) == (
                hops[node, destination] if np.isfinite(hops[node, destination]) else -1
            )
        row = radio.air.row[destination]
        for node in range(SMALL.nodes):
            following = radio.air.next_hop[row, node]
            if node != destination and np.isfinite(hops[node, destination]):
                assert near[node, following] and hops[following, destination] == hops[node, destination] - 1


def test_a_frame_over_two_hops_costs_what_the_model_says() -> None:
    radio = placed([(0, 0), (50, 0), (100, 0)])
    radio.send(0, 2, 5, 9, event=0)
    (arrival,) = _until_arrival(radio)
    assert arrival == Arrival(node=2, tag=5, event=0, reference=9, source=0)
    # two data frames, one after the other
    assert radio.now == 8
    sent = 1024 * (50e-9 + 10e-12 * 50**2)
    np.testing.assert_allclose(radio.air.spent[:3, SEND_DATA], [sent, sent, 0])
    np.testing.assert_allclose(radio.air.spent[:3, RECEIVE_DATA], [0, 1024 * 50e-9, 1024 * 50e-9])


def test_far_heads_pay_by_the_fourth_power() -> None:
    radio = placed([(0, 0), (150, 0)])
    radio.send(0, 1, 0, boosted=True)
    assert len(_until_arrival(radio)) == 1
    assert radio.air.spent[0, SEND_CONTROL] == pytest.approx(256 * (50e-9 + 0.0013e-12 * 150**4))


def test_neighbours_take_turns_and_far_ones_do_not() -> None:
    near = placed([(0, 0), (50, 0), (100, 0), (110, 0)])
    near.send(0, 1, 0, event=0)
    near.send(3, 2, 0, event=0)
    assert len(_until_arrival(near)) == 1 and near.now == 4
    assert len(_until_arrival(near)) == 1 and near.now == 8
    far = placed([(0, 0), (50, 0), (300, 0), (310, 0)])
    far.send(0, 1, 0, event=0)
    far.send(3, 2, 0, event=0)
    assert len(_until_arrival(far)) == 2 and far.now == 4


def test_a_dead_receiver_is_tried_four_times() -> None:
    radio = placed([(0, 0), (50, 0)])
    radio.hops(0, 1)
    radio.air.alive[1] = 0
    radio.send(0, 1, 0, event=0)
    assert not list(radio.run(1000))
    assert radio.air.counters[SENT_DATA] == 4 and radio.air.counters[GAVE_UP] == 1
    assert radio.air.length[0] == 0


def test_an_event_for_several_sinks_travels_once_until_their_ways_part() -> None:
    radio = placed([(0, 0), (50, 0), (100, 30), (100, -30)], sinks=2)
    radio.move_sinks(np.array([[130.0, 60.0], [130.0, -60.0]]))
    for sink, node in ((0, 2), (1, 3)):
        radio.set_home(sink, node)
    radio.send_to_sinks(0, 0, [0, 1])
    assert not list(radio.run(1000)), "sinks are no protocol's business"
    assert (radio.air.received[0] >= 0).all()
    assert radio.air.counters[SENT_DATA] == 1 + 2 + 2


def _until_arrival(radio: Radio) -> list[Arrival]:
    return list(radio.run(radio.now + 1000))
