"""The next plan for a network that is running: as much as possible stays, and what may move for gain is a few flows.

Theory of operation
-------------------
The ways that messages take now are the plan before, whoever chose them.  Repair takes off what has no room any more,
and moves as little else as it can; these moves are needed, so they are not counted.  Then a short search looks for
something better from there, and topics go over to its trees one by one, those that save most for each flow first, as
long as every limit is kept and not too many flows have moved.  What is left of the gain waits for the next plan.

A plan is worth applying if it is no worse: what links cannot carry is no more than it is, those flows included that it
leaves to the shortest way, and where the ways as they are keep every limit, it does not cost more.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

import msgspec

from tieline.plan.adapt.deviation import shortfall
from tieline.plan.adapt.replan import compared, replan
from tieline.plan.arrays import arrays as as_arrays
from tieline.plan.certify import certified_routes
from tieline.plan.in_force import InForce, moves
from tieline.plan.instance import Instance, request_price
from tieline.plan.plan import Plan, Status
from tieline.plan.proof import Refuted, examine
from tieline.plan.routes import Route, routes, trees
from tieline.plan.run import Improving, Progress, Run
from tieline.plan.search.neighbourhood import search
from tieline.plan.tables import Part, parts

#: Of the search that looks for gains; a second at a few hundred nodes.
_ITERATIONS = 3_000
#: A gain of less than this share of the cost moves nobody.
_LEAST_GAIN = 0.01

_Key = tuple[str, str]


class Proposal(msgspec.Struct, frozen=True, kw_only=True):
    """A plan that was proven for the network as it is, and what it would change."""

    plan: Plan
    parts: Mapping[str, Part]
    after: InForce
    #: Flows between brokers that take another way.
    moved: int
    #: Flows that a better plan would move as well, next time.
    left: int
    #: The rate that would not get through, all flows together.
    shortfall_before: float
    shortfall_after: float
    #: None where the ways as they are break a limit.
    objective_before: float | None
    seconds: float
    #: No plan has an objective below this.
    bound: float
    #: How the search went, from the repaired plan to the best one that was found.
    steps: tuple[Progress, ...]

    @property
    def objection(self) -> str | None:
        """Why it is worse than what is there, as a sentence without its full stop; None if it is not."""
        if self.shortfall_after > self.shortfall_before * (1 + 1e-6) + 1e-6:
            return (
                f"{self.shortfall_after:,.0f} would not get through, and {self.shortfall_before:,.0f} do not as it is"
            )
        before = self.objective_before
        if before is not None and self.plan.objective > before * (1 + 1e-6) + 1e-6:
            return f"its objective is {self.plan.objective:,.6g}, and that of the ways as they are {before:,.6g}"
        return None


def next_plan(  # what runs, and how much may be done about it
    instance: Instance,
    now: InForce,
    homes: Mapping[str, str],
    *,
    most_moves: int,
    paced: Instance | None,
    seconds: float | None = None,
    seed: int = 0,
) -> Proposal:
    """The plan that follows the ways as they are; ``seconds`` bounds the search for it.

    ``paced`` has the same links with all that they carry, for their paces: what a plan leaves free is there to be used.
    Without it nothing is paced.
    """
    steps: list[Progress] = []
    run = Run(seconds=seconds, seed=seed, listener=Improving(steps.append))
    standing = _standing(instance, now)
    needed = replan(instance, standing, seconds=seconds, seed=seed).plan
    run.told(needed)
    left = 0
    found = needed
    if most_moves and needed.routes:
        better = run.told(_better(instance, needed, run))
        if needed.objective - better.objective > _LEAST_GAIN * needed.cost:
            found, left = _towards(instance, needed, better, most_moves)
    told = parts(paced or instance, found, is_paced=paced is not None)
    after = InForce(instance, homes, told)
    return Proposal(
        plan=found,
        parts=told,
        after=after,
        moved=len(moves(now, after)),
        left=left,
        shortfall_before=shortfall(now),
        shortfall_after=shortfall(after),
        objective_before=standing.objective if standing.status == "feasible" else None,
        seconds=run.elapsed,
        bound=steps[-1].bound,
        steps=tuple(steps),
    )


def _standing(instance: Instance, now: InForce) -> Plan:
    """The ways as they are, as a plan; it is called interrupted if they break a limit, and is then worth nothing."""
    ways = now.routes()
    try:
        finding = examine(instance, ways)
    except Refuted:
        prices = {topic.key: request_price(instance, topic) for topic in instance.topics}
        paid = sum(prices[route.topic, route.source] * len(route.unmet) for route in ways)
        return _bare(instance, ways, "interrupted", cost=0.0, objective=paid)
    return _bare(instance, ways, "feasible", cost=finding.cost, objective=finding.objective)


def _bare(instance: Instance, ways: tuple[Route, ...], status: Status, *, cost: float, objective: float) -> Plan:
    """A plan whose figures nobody has computed but for what repair asks of the one before."""
    return Plan(
        instance=instance.name, method="in force", status=status, routes=ways, cost=cost, objective=objective,
        unmet=sum(len(route.unmet) for route in ways), unmet_price=0.0, bound=0.0, seconds=0.0,
    )  # fmt: skip


def _better(instance: Instance, plan: Plan, run: Run) -> Plan:
    """What a short search finds from a plan."""
    numbers = as_arrays(instance)
    found = search(numbers, run.part(iterations=_ITERATIONS), start=trees(numbers, plan.routes))
    return certified_routes(
        instance, routes(numbers, found.trees), method="replan", bound=found.bound, seconds=run.elapsed
    )


def _towards(instance: Instance, plan: Plan, better: Plan, most: int) -> tuple[Plan, int]:
    """A plan on the way to a better one, so many flows away from the first; and how many flows are still to move."""
    total = compared(plan, better)["flows_moved"]
    if total <= most:
        return better, 0
    ways = {_key(route): route for route in plan.routes}
    room = {frozenset((link.a, link.b)): link.capacity for link in instance.links}
    costs = {frozenset((link.a, link.b)): link.cost for link in instance.links}
    rates = {topic.key: topic.rate for topic in instance.topics}
    prices = {topic.key: request_price(instance, topic) for topic in instance.topics}
    for key, route in ways.items():
        for hop in route.links:
            room[frozenset((hop.tail, hop.head))] -= rates[key]
    others = {_key(route): route for route in better.routes}
    gains: defaultdict[_Key, float] = defaultdict(float)
    for key, route in ways.items():
        gains[key] = _price(route, costs, prices[key]) - _price(others[key], costs, prices[key])
    changed = {key: _moves(ways[key], others[key]) for key in ways}
    spent = 0
    order = sorted((key for key in ways if gains[key] > 0), key=lambda key: (-gains[key] / max(1, changed[key]), key))
    for key in order:
        # one topic at least, however many want it: else it would never move
        if (spent and spent + changed[key] > most) or not _fits(ways[key], others[key], rates[key], room):
            continue
        spent += changed[key]
        for hop in ways[key].links:
            room[frozenset((hop.tail, hop.head))] += rates[key]
        for hop in others[key].links:
            room[frozenset((hop.tail, hop.head))] -= rates[key]
        ways[key] = others[key]
    try:
        found = certified_routes(
            instance, tuple(ways.values()), method="replan", bound=better.bound, seconds=better.seconds
        )
    except Refuted:
        # limits that topics share beside capacity: then the needed moves are all there are
        return plan, total
    # what cannot move without others making room waits for a reason of its own
    return found, max(0, total - spent) if spent else 0


def _fits(old: Route, new: Route, rate: float, room: Mapping[frozenset[str], float]) -> bool:
    """Whether a topic has room on the links that it does not use yet."""
    has = {frozenset((hop.tail, hop.head)) for hop in old.links}
    return all(
        frozenset((hop.tail, hop.head)) in has or room[frozenset((hop.tail, hop.head))] >= rate for hop in new.links
    )


def _price(route: Route, costs: Mapping[frozenset[str], float], unmet: float) -> float:
    return sum(costs[frozenset((hop.tail, hop.head))] * len(hop.subscribers) for hop in route.links) + unmet * len(
        route.unmet
    )


def _moves(old: Route, new: Route) -> int:
    """Subscribers whose way is another one."""
    before, after = _ways(old), _ways(new)
    return sum(after.get(who) != way for who, way in before.items())


def _ways(route: Route) -> dict[str, frozenset[tuple[str, str]]]:
    found: defaultdict[str, set[tuple[str, str]]] = defaultdict(set)
    for hop in route.links:
        for who in hop.subscribers:
            found[who].add((hop.tail, hop.head))
    return {who: frozenset(hops) for who, hops in found.items()}


def _key(route: Route) -> _Key:
    return route.topic, route.source
