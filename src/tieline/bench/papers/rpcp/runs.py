"""Many simulations at once, and the names under which their protocols are drawn."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from typing import Final, NamedTuple

from tieline.bench.papers.frame.declaration import Request
from tieline.sim.sensors.outcome import Outcome
from tieline.sim.sensors.parameters import Parameters, stated
from tieline.sim.sensors.protocols import simulate

#: What each protocol is to the reader.
NAMES: Final = {
    "rpcp-literal-direct": "RPCP as printed",
    "rpcp-literal": "RPCP as printed, over relays",
    "rpcp-filter": "RPCP, down on a match (ours)",
    "rpcp-filter-still": "ours without rotation",
    "rpcp-filter-optimal": "ours, optimal covering",
    "rpcp-filter-uncovered": "ours without covering",
    "rpcp-filter-fusion": "ours with fusion",
    "rpcp-peer": "peers, covering on every link",
    "rpcp-peer-optimal": "peers, optimal covering",
    "rpcp-peer-uncovered": "peers without covering",
    "rpcp-peer-advertised": "peers with advertisements",
    "psm": "PSM",
    "cetp": "CETP",
    "cetp-rotating": "CETP, rotating",
    "cetp-carry": "CETP, only sinks carry",
    "flooding": "flooding",
    "central": "one centre",
}
ROLES: Final = {
    "rpcp-literal-direct": "paper", "rpcp-literal": "third", "rpcp-filter": "ours", "rpcp-peer": "fourth",
    "psm": "baseline", "cetp": "second", "cetp-rotating": "#8a6d0b", "cetp-carry": "#dfcf8f",
    "flooding": "bound", "central": "#222222",
}  # fmt: skip
#: What the paper compares: itself as its text says it, and the two others.
PRINTED: Final = "rpcp-literal-direct"
OURS: Final = "rpcp-filter"
RIVALS: Final = ("psm", "cetp")

#: Fewer jobs than this for each process are not worth starting one.
_WORTH: Final = 6


class Job(NamedTuple):
    """One simulation; ``label`` is what the reader of its outcome knows it by."""

    protocol: str
    parameters: Parameters
    seed: int
    until_dead_s: float | None = None
    label: str = ""


def carry_out(jobs: Sequence[Job], request: Request, *, note: str = "") -> Iterator[tuple[Job, Outcome]]:
    """All jobs with their outcomes, in their order, on all processors; ``note`` says what they are about."""
    for label in dict.fromkeys(job.label for job in jobs):
        _state([job for job in jobs if job.label == label], request, label or note)
    workers = min(os.cpu_count() or 1, len(jobs) // _WORTH)
    if workers < 2:
        yield from _counted(jobs, map(outcome, jobs), request)
        return
    with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        yield from _counted(jobs, pool.map(outcome, jobs), request)


def _state(jobs: Sequence[Job], request: Request, note: str) -> None:
    """Keep with the result every parameter that is not what it is by default, read off the jobs themselves."""
    settings = [list(stated(job.parameters)) for job in jobs]
    for place, default in enumerate(stated(Parameters())):
        values = sorted({of_job[place].value for of_job in settings})
        if values != [default.value]:
            request.state(default.name, values, default.unit, origin=default.origin, note=note)
    limits = sorted({job.until_dead_s for job in jobs if job.until_dead_s is not None})
    if limits:
        request.state("until all is over, at most", limits, "s", note=note)


def _counted(jobs: Sequence[Job], outcomes: Iterable[Outcome], request: Request) -> Iterator[tuple[Job, Outcome]]:
    for number, (job, found) in enumerate(zip(jobs, outcomes, strict=True), start=1):
        request.step(f"{number} of {len(jobs)}: {NAMES[job.protocol]}, {job.parameters.events_per_100s:g} events")
        yield job, found


def outcome(job: Job) -> Outcome:
    """What came of one job, wherever it runs."""
    return simulate(job.protocol, job.parameters, job.seed, until_dead_s=job.until_dead_s)


def loaded(events: float, **more: float) -> Parameters:
    """The fixed parameters under a load, and what an experiment varies."""
    return replace(Parameters(), events_per_100s=float(events), **more)  # type: ignore[arg-type] # counts are whole
