"""What the index takes: to answer, one event after the other and many at once; and to be changed, made and held.

Latency is taken as in other studies of matching: the least of a few passes for each event, which takes out what the
machine did meanwhile, and the quantiles of that over the events.  The first pass is reported beside it, when neither
the processor's caches nor the index's own memory of cells know the event.  Throughput of batches is by CPU time.  Every
answer that is measured is compared with brute force.

Each job about changes begins in a process of its own, so that the growth of its memory is the index's.
"""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final  # Any: arguments of any job

from tieline.bench.load.job import Endpoint, Metrics, quantile
from tieline.bench.match.engines import ENGINES, Engine, Match, OurIndex, Rtree
from tieline.bench.match.workload import CHECKED, Configuration, verify, workload
from tieline.bench.measure import memory_bytes
from tieline.match.box import Box

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


#: Changes that are timed, one by one.
CHANGES: Final = 2_000
_WARM_UP: Final = 50
#: The memory of fewer boxes is lost among that of everything else.
_VISIBLE: Final = 50_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    """One engine in one configuration."""

    configuration: Configuration
    engine: str
    changes: int = CHANGES

    @property
    def patience_s(self) -> float:
        """Building twice, and much else."""
        return 180.0

    def run(self, at: Endpoint) -> Metrics:
        """Build, change, rebuild, and see whether the answers are still right."""
        made = workload(self.configuration, CHECKED)
        kind = ENGINES[self.engine]
        kind(made.lo[:10], made.hi[:10])  # libraries and compiled code are not the boxes' memory
        gc.collect()
        before = memory_bytes([os.getpid()])
        began = time.perf_counter()
        engine = kind(made.lo, made.hi)
        built_s = time.perf_counter() - began
        gc.collect()
        size = len(made.lo)
        found = {"build_s": built_s}
        if size >= _VISIBLE:
            found["bytes_resident"] = (memory_bytes([os.getpid()]) - before) / size
        changes = min(self.changes, size // 2)
        if isinstance(engine, OurIndex):
            found["bytes_index"] = engine.index.memory() / size
            found |= _change_ours(engine, made.lo, made.hi, changes)
            found["rebuild_s"] = _rebuild(engine)
        elif isinstance(engine, Rtree):
            found |= _change_rtree(engine, made.lo, made.hi, changes)
        # every box that was taken away came back under its number, so the answers must be those of the beginning
        answers = map(engine.match, made.events.tolist())
        found["compared"] = verify(f"{self.engine}, after changes,", answers, made.right)
        return found


def _change_ours(engine: OurIndex, lo: Floats, hi: Floats, changes: int) -> Metrics:
    """Take boxes away and put them back: at all times there are about as many as in the beginning."""
    index = engine.index
    boxes = [
        Box(tuple(low), tuple(high)) for low, high in zip(lo[:changes].tolist(), hi[:changes].tolist(), strict=True)
    ]
    removed = _timed(index.remove, ((number,) for number in range(changes)))
    added = _timed(index.add, enumerate(boxes))
    return _quantiles(added, removed)


def _change_rtree(engine: Rtree, lo: Floats, hi: Floats, changes: int) -> Metrics:
    boxes = list(zip(range(changes), lo[:changes].tolist(), hi[:changes].tolist(), strict=True))
    removed = _timed(engine.delete, boxes)
    added = _timed(engine.insert, boxes)
    return _quantiles(added, removed)


def _timed(act: Callable[..., None], each: Iterable[Sequence[Any]]) -> list[int]:
    """Nanoseconds of every call, sorted; the first ones are left out, for what they load."""
    clock = time.perf_counter_ns
    took: list[int] = []
    for arguments in each:
        began = clock()
        act(*arguments)
        took.append(clock() - began)
    return sorted(took[_WARM_UP:] or took)


def _quantiles(added: Sequence[int], removed: Sequence[int]) -> Metrics:
    return {
        "insert_p50_us": quantile(added, 0.5) / 1e3,
        "insert_p99_us": quantile(added, 0.99) / 1e3,
        "delete_p50_us": quantile(removed, 0.5) / 1e3,
        "delete_p99_us": quantile(removed, 0.99) / 1e3,
    }


def _rebuild(engine: OurIndex) -> float:
    """Seconds for making a worn index anew, as the broker does it beside everything else."""
    began = time.perf_counter()
    job = engine.index.begin_rebuild()
    job.run()
    engine.index.adopt(job)
    return time.perf_counter() - began
