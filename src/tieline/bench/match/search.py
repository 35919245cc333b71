"""How long an index takes to answer: one event after the other, and many at once; and whether it is right.

Latency is taken as in other studies of matching: the least of a few passes for each event, which takes out what the
machine did meanwhile, and the quantiles of that over the events.  The first pass is reported beside it, when neither
the processor's caches nor the index's own memory of cells know the event.  Throughput of batches is by CPU time.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tieline.bench.load.endpoint import Endpoint
from tieline.bench.load.job import Metrics
from tieline.bench.load.quantile import quantile
from tieline.bench.match.engines import ENGINES, Engine, Match
from tieline.bench.match.oracle import verify
from tieline.bench.match.workload import CHECKED, Configuration, workload

if TYPE_CHECKING:
    from tieline.bench.match.workload import Floats

#: For jobs that need none.
NO_BROKER: Final = Endpoint(host="", port=0, pid=0)
#: Events that are made for a configuration; those at the front are asked about one by one, the others in batches.
EVENTS: Final = 4_600
SINGLE: Final = 400
#: An engine that takes so long for an event is compared in fewer of them.
_SLOW_NS: Final = 20_000_000
_FEW: Final = 4
#: An engine this slow is asked about fewer events.
_FEWEST: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """One engine in one configuration."""

    configuration: Configuration
    engine: str
    passes: int
    #: Seconds for all passes, and for the batches.
    seconds: float

    @property
    def patience_s(self) -> float:
        """Making, building and checking take longer than measuring."""
        return 120.0 + 10 * self.seconds

    def run(self, at: Endpoint) -> Metrics:
        """Build, measure, compare with brute force."""
        made = workload(self.configuration, EVENTS)
        began = time.perf_counter()
        engine = ENGINES[self.engine](made.lo, made.hi)
        built_s = time.perf_counter() - began
        rows = made.events.tolist()
        engine.match(rows[-1])  # what is loaded on first use is not the index's doing
        first, least = _latencies(engine.match, rows[:SINGLE], self.passes, self.seconds)
        rate, matches = _throughput(engine, made.events[SINGLE:], self.seconds)
        count = _FEW if quantile(least, 0.5) > _SLOW_NS else CHECKED
        some, right = made.events[:count], made.right[:count]
        checked = verify(self.engine, map(engine.match, some.tolist()), right)
        checked += verify(f"{self.engine}, in a batch,", engine.match_batch(some), right)
        return {
            "match_p50_us": quantile(least, 0.5) / 1e3,
            "match_p99_us": quantile(least, 0.99) / 1e3,
            "first_p50_us": quantile(first, 0.5) / 1e3,
            "batch_rate": rate,
            "matches": matches,
            "build_s": built_s,
            "events": len(least),
            "compared": checked,
        }


def _latencies(match: Match, rows: list[list[float]], passes: int, seconds: float) -> tuple[list[int], list[int]]:
    """Sorted nanoseconds of the first pass, and of the least of all passes; fewer events if they take too long."""
    clock = time.perf_counter_ns
    latest = clock() + int(seconds / passes * 1e9)
    first: list[int] = []
    for row in rows:
        began = clock()
        match(row)
        ended = clock()
        first.append(ended - began)
        if ended > latest and len(first) >= _FEWEST:
            break
    least = first.copy()
    for _ in range(passes - 1):
        for number, row in enumerate(rows[: len(first)]):
            began = clock()
            match(row)
            took = clock() - began
            if took < least[number]:
                least[number] = took
    return sorted(first), sorted(least)


def _throughput(engine: Engine, events: Floats, seconds: float) -> tuple[float, float]:
    """Events per second of CPU time in the better of two rounds, and the mean number of matches."""
    portion = engine.portion
    best, matched, asked = 0.0, 0, 0
    taken = len(events)
    for _ in range(2):
        began = time.thread_time_ns()
        done = 0
        for start in range(0, taken, portion):
            answers = engine.match_batch(events[start : start + portion])
            done += len(answers)
            asked += len(answers)
            matched += sum(map(len, answers))
            if time.thread_time_ns() - began > seconds / 2 * 1e9:
                taken = done  # the second round is over the same events
                break
        best = max(best, done * 1e9 / max(1, time.thread_time_ns() - began))
    return best, matched / max(1, asked)
