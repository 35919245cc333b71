"""Figures 4 to 9: plans of every size, and what the paper points out in them, counted over several seeds.

The paper's own instances are not to be had, so a feature of one of its figures is looked for on several instances of
the same size: brokers that nobody needs, brokers that send a topic on over several links, requests that go a longer way
than the shortest because of bandwidth.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from tieline.bench.papers.frame import verdicts
from tieline.bench.papers.frame.declaration import Claim, Panel, Request, Sheet, Tables
from tieline.bench.papers.frame.table import Cell, Table
from tieline.plan.arrays import Arrays, arrays
from tieline.plan.draw.legend import Signs, draw_legend
from tieline.plan.draw.network import Drawing, scene_of
from tieline.plan.generate.testset import paper
from tieline.plan.instance import Instance
from tieline.plan.kernels.shortest import distances
from tieline.plan.methods.lagrangian import lagrangian
from tieline.plan.models.solve import solve_model
from tieline.plan.plan import SAME, Plan
from tieline.plan.routes import Route
from tieline.plan.run import Run
from tieline.plan.solve import solve

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Sizes with the capacity factor at which bandwidth matters and all requests can still be met, most of the time.
SHOWN: Final = {"tiny": 2.0, "case2": 1.2, "case3": 1.2, "res0": 1.2, "res5": 2.0, "res7": 2.0}
#: Iterations of the search; a limit in seconds would make plans depend on the machine.
_ITERATIONS: Final = 60
_ROOM_IN: Final = (6.2, 5.6)
FIGURES: Final = {
    "tiny": "Figs. 4, 5",
    "case2": "In the text",
    "case3": "Figs. 6, 7",
    "res0": "Fig. 8",
    "res7": "Fig. 9",
}


class Features(NamedTuple):
    """What the paper points out in a plan."""

    #: Brokers over which nothing travels.
    unused: int
    #: Brokers that send some topic on over more than one link.
    duplicating: int
    #: Requests whose way has more links than the shortest with room for the topic alone.
    longer: int
    #: Requests whose way is dearer than the cheapest with room for the topic alone: others have taken its place.
    displaced: int


def measure(request: Request) -> list[Table]:
    """Plans by size and seed, the same by the split program and by the heuristic."""
    rows: list[tuple[Cell, ...]] = []
    request.state("iterations of our search", _ITERATIONS, note="instead of a limit in seconds")
    for size, tightness in SHOWN.items():
        request.state("tightness", tightness, note=size)
    seeds = request.seeds(quick=3, full=8, note="of each size; tiny is always the same")
    for size, tightness in SHOWN.items():
        for seed in seeds[: 1 if size == "tiny" else None]:
            request.step(f"{size}, seed {seed}")
            instance = paper(size, seed=seed, tightness=tightness)
            plan = planned(instance)
            features = features_of(instance, plan)
            heuristic = lagrangian(arrays(instance), Run())
            split = plan if size in ("res5", "res7") else solve_model(arrays(instance), Run(), model="tb")
            brokers = sum(node.is_broker for node in instance.nodes)
            rows.append((
                size, tightness, seed, plan.status == "optimal", plan.unmet, brokers, *features,
                abs(heuristic.objective - split.objective) <= SAME * max(1.0, abs(split.objective)),
                _links(heuristic) == _links(split),
            ))  # fmt: skip
    columns = {
        "size": "size of the paper", "tightness": "capacity factor", "seed": "seed", "proven":
        "whether the plan is proven optimal", "unmet": "requests unmet", "brokers": "brokers", "unused":
        "brokers over which nothing travels", "duplicating": "brokers that send a topic on over several links",
        "longer": "requests over more links than the shortest way has",
        "displaced": "requests over a dearer way than the cheapest",
        "same_value": "whether program and heuristic have the same objective",
        "same_plan": "whether they use the same links",
    }  # fmt: skip
    return [Table("plans", columns, rows)]


def planned(instance: Instance) -> Plan:
    """The plan of an instance, the same on every machine."""
    return solve(instance, iterations=_ITERATIONS)


def features_of(instance: Instance, plan: Plan) -> Features:
    """What is to be seen in a plan."""
    compact = arrays(instance)
    brokers = {node.id for node in instance.nodes if node.is_broker}
    used: set[str] = set()
    duplicating: set[str] = set()
    for route in plan.routes:
        leaving: defaultdict[str, int] = defaultdict(int)
        for hop in route.links:
            used |= {hop.tail, hop.head}
            leaving[hop.tail] += 1
        duplicating |= {node for node, count in leaving.items() if count > 1 and node in brokers}
    longer = displaced = 0
    for topic, route in enumerate(plan.routes):
        ways = dict(_ways(instance, route))
        hops, costs = _shortest(compact, topic, by_cost=False), _shortest(compact, topic, by_cost=True)
        number = {node.id: place for place, node in enumerate(instance.nodes)}
        for subscriber, (links, cost) in ways.items():
            longer += links > hops[number[subscriber]] + SAME
            displaced += cost > costs[number[subscriber]] + SAME
    return Features(len(brokers - used), len(duplicating), longer, displaced)


def _ways(instance: Instance, route: Route) -> Iterator[tuple[str, tuple[int, float]]]:
    """For each subscriber that is served the links of its way and their cost."""
    cost = {frozenset((link.a, link.b)): link.cost for link in instance.links}
    served = {name for hop in route.links for name in hop.subscribers}
    for name in sorted(served):
        mine = [hop for hop in route.links if name in hop.subscribers]
        yield name, (len(mine), sum(cost[frozenset((hop.tail, hop.head))] for hop in mine))


def _shortest(compact: Arrays, topic: int, *, by_cost: bool) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    weight = compact.arc_cost() if by_cost else np.ones(compact.arcs)
    return distances(compact, topic, np.where(np.repeat(compact.fits(topic), 2), weight, np.inf))


def _links(plan: Plan) -> set[tuple[str, str, str]]:
    return {(route.topic, hop.tail, hop.head) for route in plan.routes for hop in route.links}


def sheet(tables: Tables) -> Sheet:
    """By size how many plans have which feature."""
    table = tables["plans"]
    lines = []
    for size in table.words("size"):
        of_size = table.where(size=size)
        counts = [
            f"{sum(value > 0 for value in of_size.column(name))} of {len(of_size.rows)}" for name in Features._fields
        ]
        met = sum(value == 0 for value in of_size.column("unmet"))
        lines.append([size, f"{of_size.column('tightness')[0]:g}", f"{met} of {len(of_size.rows)}", *counts])
    return Sheet(
        headings=("size", "tightness", "all requests met", "a broker unused", "a broker duplicates",
                  "a way of more links", "a dearer way"),
        lines=lines,
    )  # fmt: skip


def panels(_tables: Tables) -> dict[str, Panel]:
    """The plan of the first seed of each size."""

    def panel(size: str) -> Panel:
        def drawn(axis: Axes) -> None:
            instance = paper(size, seed=0, tightness=SHOWN[size])
            Drawing(scene_of(instance, planned(instance), None), axis, _ROOM_IN).draw()
            for spine in axis.spines.values():
                spine.set_visible(False)

        return drawn

    return {f"{FIGURES[size]}: {size}": panel(size) for size in FIGURES} | {"What is drawn": _signs}


def _signs(axis: Axes) -> None:
    """What nodes, widths and colours mean; loads are drawn in proportion to the greatest of each plan."""
    signs = Signs(loads=(), widest=0.0, has_plan=True, is_topic=False, has_limits=True, has_limitless=True,
                  has_unmet=False, has_dashes=False)  # fmt: skip
    width, height = _ROOM_IN
    draw_legend(axis, height, signs)
    axis.set_xlim(0, width)
    for spine in axis.spines.values():
        spine.set_visible(False)


def claims(tables: Tables) -> Iterator[Claim]:
    """What the paper says of its figures."""
    table = tables["plans"]
    tiny, res0 = (_Counts(table.where(size=size)) for size in ("tiny", "res0"))
    yield Claim(
        where="Fig. 5",
        paper_says="On tinyInstance broker 1 is redundant, and both codes find the same solution.",
        we_measure=f"a broker is unused: {tiny.words('unused')}; same links: {tiny.words('same_plan')}",
        judgement=verdicts.always(min(tiny.seen("unused"), tiny.seen("same_plan")), 1),
        why="costs and capacities are ours, chosen so that it is: the text does not give them",
    )
    yield from _of_case3(_Counts(table.where(size="case3")))
    yield Claim(
        where="Fig. 8",
        paper_says="On res0 bandwidth makes flows take more links than the fewest possible.",
        we_measure=f"plans with such a way: {res0.words('longer')}; with a dearer way than the cheapest: "
        f"{res0.words('displaced')}",
        judgement=verdicts.often(res0.seen("displaced"), res0.plans),
        why="it depends on the capacities, which the text does not give",
    )


class _Counts:
    """How many plans of one size have what."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self.plans = len(table.rows)

    def seen(self, name: str, *, least: float = 0) -> int:
        """Plans with more of something than ``least``."""
        return sum(value > least for value in self._table.column(name))

    def both(self, name: str, without: str) -> int:
        """Plans with something, and without something else."""
        pairs = zip(self._table.column(name), self._table.column(without), strict=True)
        return sum(value > 0 and not other for value, other in pairs)

    def words(self, name: str) -> str:
        return f"{self.seen(name)} of {self.plans}"


def _of_case3(plans: _Counts) -> Iterator[Claim]:
    several = plans.seen("duplicating", least=1)
    yield Claim(
        where="Fig. 6",
        paper_says="On case3 several brokers duplicate flows.",
        we_measure=f"plans with two or more such brokers: {several} of {plans.plans}",
        judgement=verdicts.often(several, plans.plans),
        why="a broker duplicates where two subscribers of a topic lie behind it",
    )
    yield Claim(
        where="Fig. 6",
        paper_says="One broker of case3 is not needed.",
        we_measure=f"plans that leave a broker out: {plans.words('unused')}",
        judgement=verdicts.often(plans.seen("unused"), plans.plans),
        why="it depends on where clients stand",
    )
    forced = plans.both("displaced", without="unmet")
    yield Claim(
        where="Fig. 6",
        paper_says="Tight bandwidth forces different paths, and all requests are satisfied.",
        we_measure=f"plans of case3 that meet all requests, some of them over a dearer way than the cheapest: {forced} "
        f"of {plans.plans}",
        judgement=verdicts.often(forced, plans.plans),
        why="at looser capacities nobody is displaced, at tighter ones somebody stays unmet: both together need a "
        "narrow range",
    )
    equal = plans.both("same_value", without="same_plan")
    yield Claim(
        where="Fig. 7",
        paper_says="On case3 program and heuristic find different plans of the same value.",
        we_measure=f"same value: {plans.words('same_value')}; the same links: {plans.words('same_plan')}; the same "
        f"value by other links: {equal} of {plans.plans}",
        judgement=verdicts.often(equal, plans.plans),
        why="with costs drawn from 1 to 10 two best plans are rare; where all links cost the same they are the rule",
    )
