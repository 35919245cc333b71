"""Brokers die and others join, by chance: how long tables are wrong, and what upkeep takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from tieline.overlay.ring.identifiers import first_from, starts
from tieline.sim.ring.founding import RingPlan, make_node
from tieline.sim.ring.network import Network, PlacedNode
from tieline.sim.ring.workload import Workload


def kill(places: Sequence[PlacedNode], share: float, random: Random) -> list[PlacedNode]:
    """A share of all brokers dies at this moment."""
    dead = random.sample([place for place in places if not place.is_dead], round(share * len(places)))
    for place in dead:
        place.is_dead = True
    return dead


def wrong_fingers(places: Sequence[PlacedNode]) -> float:
    """The share of places at which brokers look for fingers where they know somebody else than who stands there."""
    alive = [place for place in places if not place.is_dead]
    identifiers = sorted(place.peer.identifier for place in alive)
    wrong = all_places = 0
    for place in alive:
        me = place.peer.identifier
        known = {finger.peer.identifier for finger in place.node.table}
        right = {identifiers[first_from(identifiers, start)] for start in starts(me)} - {me}
        all_places += len(right)
        wrong += len(right - known)
    return wrong / all_places if all_places else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Convergence:
    """A ring under churn, second by second."""

    seconds: list[float]
    wrong: list[float]
    #: Bits per second that one broker sends for upkeep.
    upkeep_bits: float
    #: Brokers that joined, and of these the ones that were joined in the end.
    joined: int
    asked: int


def churn(  # what is churned, and how much
    plan: RingPlan,
    places: list[PlacedNode],
    network: Network,
    work: Workload,
    random: Random,
    *,
    per_minute: float,
    seconds: float,
    quiet_s: float = 20.0,
) -> Convergence:
    """Have a share of all brokers replaced by newcomers each minute, one by one; then nobody for a while."""
    swaps = round(per_minute * len(places) * seconds / 60)
    moments = sorted(random.uniform(0, seconds) for _ in range(swaps))
    merging = plan.merging(plan.spaces)
    network.forget()
    began = network.clock.now
    newcomers: list[PlacedNode] = []
    at: list[float] = []
    wrong: list[float] = []
    while network.clock.now - began < seconds + quiet_s:
        network.clock.run_for(1.0)
        while moments and moments[0] <= network.clock.now - began:
            moments.pop(0)
            alive = network.alive
            random.choice(alive).is_dead = True
            place = network.enter(f"n{len(newcomers)}", lambda peer, world: make_node(plan, merging, peer, world))
            place.node.begin(random.choice([each for each in alive if not each.is_dead]).peer, network.clock.now)
            for subscription in random.choice(work.subscriptions):
                place.node.subscribe(subscription, lambda _now, _echoed: None, network.clock.now)
            newcomers.append(place)
            places.append(place)
        at.append(network.clock.now - began)
        wrong.append(wrong_fingers(places))
    alive_newcomers = [place for place in newcomers if not place.is_dead]
    return Convergence(
        seconds=at,
        wrong=wrong,
        upkeep_bits=8 * network.upkeep.bytes / (seconds + quiet_s) / len(network.alive),
        joined=sum(place.node.upkeep.is_joined for place in alive_newcomers),
        asked=len(alive_newcomers),
    )
