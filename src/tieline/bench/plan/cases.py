"""What is measured of the planner, case by case; a plan that the proof refutes is a failure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from tieline.bench.load.job import Metrics
from tieline.bench.machine import versions
from tieline.bench.plan import measures
from tieline.bench.plan.bounds import BOUNDS, PAPER, tallies
from tieline.bench.plan.effort import (
    FRESH,
    FULL,
    LARGE,
    LOOSE,
    NAIVE,
    OURS,
    PARTS,
    QUICK,
    Mesh,
    PlanEffort,
    distributed_name,
    found_name,
    replan_name,
    size_name,
)
from tieline.bench.suite.declaration import Case, Running, Schedule
from tieline.bench.suite.results import Row, rows_of
from tieline.plan.instance import Instance
from tieline.plan.plan import Plan as Solution

_LIBRARIES = ("highspy", "numba", "numpy", "scipy")
#: About how long compiling takes when nothing is compiled yet, a bound of a small instance, a plan of brokers alone.
_COMPILE_S, _BOUND_S, _DISTRIBUTED_S = 40.0, 0.06, 3.0
_BUDGET_S = 2_400.0

#: Meshes whose links may fail later, with their plans.
Kept = dict[str, list[tuple[Instance, Solution]]]


def make_plan(parts: Sequence[str] = tuple(PARTS), *, quick: bool) -> Schedule:
    """What is measured in these parts, after everything was compiled."""
    effort = QUICK if quick else FULL
    kept: Kept = {}
    cases: dict[str, Iterator[Case]] = {
        "sizes": _sizes(effort),
        "found": _found(effort),
        "networks": _networks(effort, kept),
        "first": _first(effort),
        "replan": _replan(effort, kept),
        "bounds": _bounds(effort),
        "distributed": _distributed(effort),
    }
    warm_up = Case(rows=[], measure=_warm_up, seconds=_COMPILE_S)
    return Schedule(
        cases=[warm_up, *(case for name, some in cases.items() if name in parts for case in some)],
        quick=quick,
        versions=versions(*_LIBRARIES),
        budget_s=_BUDGET_S,
    )


def _warm_up(run: Running, _rows: list[Row]) -> None:
    run.step("compiling and warming up")
    run.results.totals["compile_s"] = measures.warm_up()


def _case(step: str, row: Row, measure: Callable[[], list[Metrics]], *, seconds: float) -> Case:
    """A case of one row, whose repetitions are measured in one go."""

    def fill(run: Running, _rows: list[Row]) -> None:
        run.step(step)
        row.repetitions += measure()

    return Case(rows=[row], measure=fill, seconds=seconds)


def _sizes(effort: PlanEffort) -> Iterator[Case]:
    for size in effort.sizes:
        for tightness in effort.tightness:
            # the naive model is held against ours where goals do so: elsewhere it would only run into its limit
            peers = (OURS, NAIVE) if tightness == LOOSE else (OURS,)
            title = f"{size}, tightness {tightness:g}"
            longest = effort.exact_s / 2 + (effort.naive_s if len(peers) > 1 else 0.0) if size in LARGE else 1.0
            yield Case(
                rows=rows_of(size_name(size, tightness), title, "sizes", peers),
                measure=partial(_measure_size, size, tightness, effort),
                seconds=effort.seeds * longest,
            )


def _measure_size(size: str, tightness: float, effort: PlanEffort, run: Running, rows: list[Row]) -> None:
    run.step(f"{rows[0].title}: {effort.seeds} instances")
    for seed in range(effort.seeds):
        for row in rows:
            if row.peer == OURS:
                row.repetitions.append(measures.ours(size, seed, tightness, effort.exact_s))
            else:
                row.repetitions.append(measures.naive(size, seed, tightness, effort.naive_s))


def _found(effort: PlanEffort) -> Iterator[Case]:
    for size in LARGE:
        for tightness in effort.tightness:
            title = f"{size}, tightness {tightness:g}, seeds from {FRESH:,}"
            (row,) = rows_of(found_name(size, tightness), title, "found", [OURS])
            yield _case(
                f"{title}: the best plan of {effort.fresh} instances",
                row,
                partial(_best_of_all, size, tightness, effort),
                seconds=effort.fresh * (effort.found_s + 2 * effort.better_s),
            )


def _best_of_all(size: str, tightness: float, effort: PlanEffort) -> list[Metrics]:
    seeds = range(FRESH, FRESH + effort.fresh)
    return [measures.best_found(size, seed, tightness, effort.found_s, effort.better_s) for seed in seeds]


def _networks(effort: PlanEffort, kept: Kept) -> Iterator[Case]:
    for size, seeds in effort.meshes:
        (row,) = rows_of(size.name, size.title, "networks", [OURS])
        step = f"{size.title}: {seeds} x {size.seconds:.0f} s"
        yield _case(step, row, partial(_search, size, seeds, kept), seconds=seeds * (size.seconds + 5))


def _search(size: Mesh, seeds: int, kept: Kept) -> list[Metrics]:
    found: list[Metrics] = []
    for seed in range(seeds):
        instance, solution, metrics = measures.network(size, seed)
        found.append(metrics)
        kept.setdefault(size.name, []).append((instance, solution))
    return found


def _first(effort: PlanEffort) -> Iterator[Case]:
    for size in effort.first:
        (row,) = rows_of(f"first-{size.name}", size.title, "first", [OURS])
        yield _case(f"{size.title}: first plan", row, partial(_first_plan, size), seconds=size.seconds)


def _first_plan(size: Mesh) -> list[Metrics]:
    return [measures.first_plan(size, 0)]


def _replan(effort: PlanEffort, kept: Kept) -> Iterator[Case]:
    for size, count in effort.failures:
        (row,) = rows_of(replan_name(size), f"a link of {size.title}", "replan", [OURS])
        step = f"{count} links fail, one at a time: {size.title}"
        yield _case(step, row, partial(_fail_links, size, count, kept), seconds=count * size.seconds)


def _fail_links(size: Mesh, count: int, kept: Kept) -> list[Metrics]:
    if size.name not in kept:
        _search(size, 1, kept)
    found: list[Metrics] = []
    for seed, (instance, before) in enumerate(kept[size.name]):
        found += measures.failures(instance, before, count, size.seconds, seed=seed)
    return found


def _bounds(effort: PlanEffort) -> Iterator[Case]:
    rows = rows_of("bounds", "small instances", "bounds", [*BOUNDS, PAPER])
    yield Case(rows=rows, measure=partial(_measure_bounds, effort), seconds=effort.bounded * _BOUND_S)


def _measure_bounds(effort: PlanEffort, run: Running, rows: list[Row]) -> None:
    run.step(f"bounds of {effort.bounded:,} small instances")
    found = tallies(effort.bounded)
    for row in rows:
        row.repetitions.append(found[row.peer].metrics)


def _distributed(effort: PlanEffort) -> Iterator[Case]:
    for size, tightness in effort.talkative:
        title = f"{size}, tightness {tightness:g}"
        (row,) = rows_of(distributed_name(size, tightness), title, "distributed", [OURS])
        measure = partial(_agree, size, tightness, effort)
        yield _case(f"brokers among themselves: {title}", row, measure, seconds=effort.seeds * _DISTRIBUTED_S)


def _agree(size: str, tightness: float, effort: PlanEffort) -> list[Metrics]:
    return [measures.distributed(size, seed, tightness) for seed in range(effort.seeds)]
