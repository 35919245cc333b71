"""What is measured, and with how much effort."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

PARTS: Final = {
    "sizes": "the paper's sizes: proven optimality, beside the naive model on the same solver",
    "found": "other instances of the two largest of these sizes: when the best plan that is known was there",
    "networks": "larger meshes: the proven gap after a given time",
    "first": "a very large mesh: the time to the first plan that keeps every limit",
    "replan": "a link fails: re-planning from the old plan, beside a cold start",
    "bounds": "small instances at random: whether every bound is one",
    "distributed": "brokers among themselves: distance to the central plan, messages",
}
#: The two that solve the paper's sizes.
OURS, NAIVE = "tieline", "naive F1"
#: The gap that is to be reached where all requests fit, in percent of the objective.
GAP_PERCENT: Final = 1.0
#: The sizes up to res0, and those that goals of their own are about.
SMALL: Final = ("tiny", "case2", "case3", "res0")
LARGE: Final = ("res5", "res7")
#: Capacity factors: at the first one all requests fit, at the last one some stay unmet.
LOOSE: Final = 2.0
TIGHTNESS: Final = (LOOSE, 1.0, 0.6)
#: The first seed where the best plan is looked for: nothing was ever tuned on these instances.
FRESH: Final = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Mesh:
    """A geometric mesh, and how long it may be searched."""

    nodes: int
    topics: int
    requests: int
    seconds: float
    tightness: float = LOOSE

    @property
    def name(self) -> str:
        return f"mesh-{self.nodes}-{self.requests}-b{self.tightness:g}"

    @property
    def title(self) -> str:
        return f"{self.nodes:,} nodes, {self.requests:,} requests, tightness {self.tightness:g}"


#: The meshes of the goals.
MIDDLE: Final = Mesh(nodes=300, topics=200, requests=800, seconds=15.0)
WIDE: Final = Mesh(nodes=2_000, topics=1_000, requests=5_000, seconds=60.0)
HUGE: Final = Mesh(nodes=10_000, topics=2_000, requests=10_000, seconds=30.0)
#: Where brokers plan among themselves.
TALKATIVE: Final = (("case3", LOOSE), ("res5", LOOSE), ("res7", LOOSE), ("res5", 0.6))


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanEffort:
    """How much is done."""

    sizes: Sequence[str]
    tightness: Sequence[float]
    seeds: int
    #: Seconds for the exact solution of one instance, ours and the naive one.
    exact_s: float
    naive_s: float
    #: Instances whose best plan is looked for, the seconds for that, and those to look for a better one.
    fresh: int
    found_s: float
    better_s: float
    meshes: Sequence[tuple[Mesh, int]]
    first: Sequence[Mesh]
    #: Links that fail, one after the other: of which mesh, and how many.
    failures: Sequence[tuple[Mesh, int]]
    #: Instances on which bounds are held against the optimum.
    bounded: int
    talkative: Sequence[tuple[str, float]]


FULL: Final = PlanEffort(
    sizes=(*SMALL, "res4", *LARGE),
    tightness=TIGHTNESS,
    seeds=3,
    exact_s=10.0,
    naive_s=20.0,
    fresh=8,
    found_s=2.0,
    better_s=6.0,
    meshes=((MIDDLE, 2), (Mesh(nodes=300, topics=200, requests=800, seconds=15.0, tightness=0.6), 1), (WIDE, 1)),
    first=(HUGE,),
    failures=((MIDDLE, 5), (WIDE, 2)),
    bounded=1_000,
    talkative=TALKATIVE,
)
QUICK: Final = PlanEffort(
    sizes=(*SMALL, *LARGE),
    tightness=(LOOSE,),
    seeds=1,
    exact_s=10.0,
    naive_s=10.0,
    fresh=1,
    found_s=2.0,
    better_s=4.0,
    meshes=((MIDDLE, 1), (WIDE, 1)),
    first=(HUGE,),
    failures=((MIDDLE, 2), (WIDE, 1)),
    bounded=100,
    talkative=TALKATIVE[:2],
)


def size_name(size: str, tightness: float) -> str:
    """The key of rows about one of the paper's sizes."""
    return f"{size}-b{tightness:g}"


def found_name(size: str, tightness: float) -> str:
    """The key of rows about finding the best plan of one of the paper's sizes."""
    return f"found-{size_name(size, tightness)}"


def replan_name(size: Mesh) -> str:
    """The key of rows about failing links of a mesh."""
    return f"replan-{size.name}"


def distributed_name(size: str, tightness: float) -> str:
    """The key of rows about brokers among themselves."""
    return f"distributed-{size_name(size, tightness)}"
