"""Rings in virtual time: put together or grown, by every way of dispatching, with a fifth of all brokers dead."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any  # Any: fields of a plan

import pytest

from tieline.overlay.ring.dispatch import DISPATCHES
from tieline.overlay.ring.merging import Rectangles
from tieline.overlay.ring.settings import RingSettings
from tieline.sim.ring.churn import churn, kill, wrong_fingers
from tieline.sim.ring.founding import RingPlan, found, make_node
from tieline.sim.ring.measure import publish, state_of
from tieline.sim.ring.network import Direct, Network, PlacedNode, random_links
from tieline.sim.ring.workload import Workload, paper, sparse

BROKERS = 60


def _ring(work: Workload, *, is_alive: bool = False, **changed: Any) -> tuple[RingPlan, Network, list[PlacedNode]]:
    plan = replace(RingPlan(subscriptions=work.subscriptions, spaces=work.spaces), **changed)
    network = Network(Direct(4 * len(work.subscriptions), Random(1)))
    return plan, network, found(plan, network, is_alive=is_alive)


@pytest.mark.parametrize("name", DISPATCHES)
def test_who_wants_a_publication_gets_it_but_by_the_letter_of_the_paper(name: str) -> None:
    work = sparse(BROKERS, Random(2))
    _, network, places = _ring(work, dispatch=name)
    spread = publish(places, network, work, Random(3), events=20)
    assert (spread.missed > 0.5) == (name == "circulation-literal")
    assert not spread.doubled
    others = BROKERS - 1
    assert (spread.messages == others) == (name == "partitioned")
    assert (spread.messages > 2 * others) == (name == "duplicating")


def test_arcs_visit_few_that_want_nothing() -> None:
    work = sparse(150, Random(4))
    _, network, places = _ring(work)
    spread = publish(places, network, work, Random(5), events=20)
    assert spread.missed == spread.doubled == 0
    assert spread.messages_per_receiver <= 3
    state = state_of(places)
    assert 5 < state.fingers < 10
    assert state.most_bytes < 60_000


@pytest.mark.parametrize("changed", [{"merging": Rectangles}, {"placed_by": "reading"}, {"dispatch": "partitioned"}])
def test_nobody_is_missed_however_wishes_are_merged_and_brokers_placed(changed: dict[str, Any]) -> None:
    work = paper(20, Random(6))
    _, network, places = _ring(work, **changed)
    assert publish(places, network, work, Random(7), events=10).missed == 0


def test_a_ring_that_has_grown_knows_what_one_that_was_put_together_knows() -> None:
    work = sparse(12, Random(8))
    plan, _, founded = _ring(work)
    network = Network(random_links(12, Random(9)))
    merging = plan.merging(plan.spaces)
    grown: list[PlacedNode] = []
    echoed: list[bool] = []
    for number, subscriptions in enumerate(work.subscriptions):
        place = network.enter(f"b{number}", lambda peer, world: make_node(plan, merging, peer, world))
        place.node.begin(grown[0].peer if grown else None, network.clock.now)
        for subscription in subscriptions:
            place.node.subscribe(subscription, lambda _now, is_echoed: echoed.append(is_echoed), network.clock.now)
        grown.append(place)
        network.clock.run_for(1.0)
    network.clock.run_for(40.0)
    assert echoed == [True] * 12 * 5
    assert wrong_fingers(grown) == 0
    assert all(place.node.upkeep.is_closed for place in grown)
    for one, other in zip(founded, grown, strict=True):
        assert [finger.peer for finger in one.node.table] == [finger.peer for finger in other.node.table]
        assert one.node.own.covers(other.node.own)
    assert publish(grown, network, work, Random(10), events=20).missed == 0


@pytest.mark.parametrize("is_assured", [False, True])
def test_a_fifth_of_all_brokers_dies_at_once(is_assured: bool) -> None:
    work = sparse(120, Random(11))
    # nobody looks around before the first publications: who is handed something finds out who is dead
    _, network, places = _ring(work, is_alive=True, settings=RingSettings(stabilise_s=12.0))
    kill(places, 0.2, Random(12))
    stale = publish(places, network, work, Random(13), events=3, is_assured=is_assured, settle_s=1.5)
    network.clock.run_for(150.0)
    assert stale.missed <= 0.002 or is_assured
    if is_assured:
        # what was not settled at once is by now
        assert not any(place.node.unfinished for place in network.alive)
    assert wrong_fingers(places) == 0
    healed = publish(places, network, work, Random(14), events=10, is_assured=is_assured, settle_s=5)
    assert healed.missed == healed.doubled == 0


def test_churn_leaves_no_wrong_finger() -> None:
    work = sparse(40, Random(15))
    plan, network, places = _ring(work, is_alive=True, settings=RingSettings(stabilise_s=1.0))
    found = churn(plan, places, network, work, Random(16), per_minute=0.3, seconds=20, quiet_s=20)
    assert found.asked == found.joined > 0
    assert max(found.wrong) > 0
    assert found.wrong[-1] == 0
    assert found.upkeep_bits > 0
