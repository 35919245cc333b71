"""What the planner is to achieve, and whether it did: computed from the rows, never stated."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tieline.bench.plan.bounds import BOUNDS
from tieline.bench.plan.effort import (
    HUGE,
    LARGE,
    LOOSE,
    MIDDLE,
    SMALL,
    TALKATIVE,
    TIGHTNESS,
    WIDE,
    distributed_name,
    found_name,
    replan_name,
    size_name,
)
from tieline.bench.plan.record import NAIVE, PlanRecord
from tieline.bench.priority.goals import Goal

#: Seconds: sizes up to res0 proven; the best plan of the larger ones found, and proven where capacity is loose.
SMALL_S, FOUND_S, PROVEN_S = 0.5, 1.0, 10.0
#: The naive model's time, times ours.
TIMES_NAIVE = 5.0
#: Percent of the objective, where all requests fit.
GAP_PERCENT = 1.0
FIRST_S = 30.0
#: A cold start's time, times that of re-planning.
TIMES_COLD = 10.0
#: How much dearer per served request a plan of brokers among themselves may be, in percent.
BEHIND_PERCENT = 5.0


def judge(record: PlanRecord) -> list[Goal]:
    """Every goal with its verdict."""
    return [*_sizes(record), *_networks(record), *_replanning(record), *_bounds(record), *_distributed(record)]


def _sizes(record: PlanRecord) -> Iterator[Goal]:
    small = [
        one["cpu_s"] if one["is_proven"] else float("inf")
        for size in SMALL
        for tightness in TIGHTNESS
        for one in record.each(size_name(size, tightness))
    ]
    yield Goal("tiny to res0, every tightness: proven optimal, the slowest", SMALL_S, _worst(small), "s")
    for size in LARGE:
        fitting = [
            one["best_wall_s"] if one["is_found"] else float("inf")
            for tightness in TIGHTNESS
            for one in record.each(found_name(size, tightness))
            if one["unmet"] == 0
        ]
        text = f"{size}, requests fit, {len(fitting)} instances: the best known plan found, the slowest"
        yield Goal(text, FOUND_S, _worst(fitting), "s")
        loose = list(record.each(size_name(size, LOOSE)))
        proven = [one["cpu_s"] if one["is_proven"] else float("inf") for one in loose]
        yield Goal(f"{size}, loose: proven optimal, the slowest", PROVEN_S, _worst(proven), "s")
        theirs = sum(one["cpu_s"] for one in record.each(size_name(size, LOOSE), NAIVE))
        mine = sum(one["cpu_s"] for one in loose)
        times = theirs / mine if theirs and mine else None
        yield Goal(f"{size}, loose: the naive model's time, times ours", TIMES_NAIVE, times, "x", at_least=True)


def _networks(record: PlanRecord) -> Iterator[Goal]:
    for size in (MIDDLE, WIDE):
        gaps = [100 * one["gap"] if one["unmet"] == 0 else float("inf") for one in record.each(size.name)]
        text = f"{size.nodes:,} nodes, {size.requests:,} requests, all fit: gap after {size.seconds:.0f} s, the largest"
        yield Goal(text, GAP_PERCENT, _worst(gaps), "%")
    first = [one["first_s"] for one in record.each(f"first-{HUGE.name}")]
    yield Goal(f"{HUGE.nodes:,} nodes: first plan that keeps every limit", FIRST_S, _worst(first), "s")


def _replanning(record: PlanRecord) -> Iterator[Goal]:
    for size in (MIDDLE, WIDE):
        # what "cold" means is a matter of opinion: done by its own standard, or no worse than the other
        for metric, until in (("cold_s", "to a gap of 1 %"), ("as_good_s", "until as good")):
            ratios = [one[metric] / max(one["warm_s"], 1e-9) for one in record.each(replan_name(size))]
            text = f"{size.nodes:,} nodes, a link fails: a cold start's time {until}, times re-planning's, the least"
            yield Goal(text, TIMES_COLD, min(ratios, default=None), "x", at_least=True)


def _bounds(record: PlanRecord) -> Iterator[Goal]:
    above = [record.value("bounds", name, "above") for name in BOUNDS]
    counted = [one for one in above if one is not None]
    instances = record.value("bounds", BOUNDS[0], "instances")
    text = f"{instances or 0:,.0f} small instances: bounds above the optimum"
    yield Goal(text, 0.0, sum(counted) if counted else None, "")


def _distributed(record: PlanRecord) -> Iterator[Goal]:
    rows = [one for size, tightness in TALKATIVE for one in record.each(distributed_name(size, tightness))]
    behind = [100 * one["behind"] for one in rows if one["more_unmet"] <= 0]
    text = "brokers among themselves: cost per served request above the central plan's, the most"
    yield Goal(text, BEHIND_PERCENT, _worst(behind), "%")


def _worst(values: Iterable[float]) -> float | None:
    return max(values, default=None)
