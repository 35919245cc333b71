"""The reproduction: experiment after experiment, each on a broker of its own."""

from __future__ import annotations

import contextlib
import datetime as dt
import time
from collections.abc import Iterator
from dataclasses import dataclass

from tieline.bench.load.job import Failure
from tieline.bench.machine import describe_commit, describe_machine
from tieline.bench.papers import claims, feedback, groups, heat
from tieline.bench.papers.record import Reproduction
from tieline.bench.peers import BASELINE, SUBJECT, known_peers
from tieline.bench.suite.runner import Watcher


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How much is done."""

    bursts: int
    episodes: int
    group_s: float


FULL = Effort(bursts=5, episodes=5, group_s=5.0)
QUICK = Effort(bursts=1, episodes=1, group_s=1.0)


def run(*, quick: bool, watcher: Watcher) -> Reproduction:
    """All experiments; one that fails is reported and the others go on."""
    began = time.monotonic()
    effort = QUICK if quick else FULL
    known = known_peers()
    versions = {name: known[name].version() for name in (SUBJECT, BASELINE)}
    found = Reproduction(
        quick=quick,
        started=dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
        commit=describe_commit(),
        machine=describe_machine(),
        versions={name: version for name, version in versions.items() if version is not None},
    )
    cases = [case for case in groups.CASES if case.peer in found.versions]
    watcher.planned(2 + 2 * len(cases))
    watcher.step("Figure 2: heat, taxonomy, FIFO")
    with _noting(found, "Figure 2"):
        found.heat = heat.run(repetitions=effort.bursts, has_mosquitto=BASELINE in found.versions)
    watcher.step("Figures 3, 4, 5: time period and distribution frequency")
    with _noting(found, "Figures 3, 4, 5"):
        found.feedback = feedback.run(repetitions=effort.episodes)
    for is_saturated, means in ((False, found.groups), (True, found.groups_saturated)):
        for case in cases:
            title = f"{case.name}, {'saturated' if is_saturated else 'every 50 ms'}"
            watcher.step(f"Figures 7, 8, 9: {title}")
            with _noting(found, title):
                means[case.name] = groups.run(case, is_saturated=is_saturated, seconds=effort.group_s)
    found.seconds = round(time.monotonic() - began, 1)
    found.claims = claims.hold(found)
    return found


@contextlib.contextmanager
def _noting(found: Reproduction, name: str) -> Iterator[None]:
    try:
        yield
    except (Failure, OSError) as failure:
        found.failures[name] = str(failure)
