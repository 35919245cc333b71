"""What changes cost: one subscription more or less, all of them at once, a table put in order, and memory.

Each job begins in a process of its own, so that the growth of its memory is the index's.
"""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from tieline.bench.load.endpoint import Endpoint
from tieline.bench.load.job import Metrics
from tieline.bench.load.quantile import quantile
from tieline.bench.match.engines import ENGINES, OurIndex, Rtree
from tieline.bench.match.oracle import verify
from tieline.bench.match.workload import CHECKED, Configuration, workload
from tieline.bench.measure import memory_bytes
from tieline.match.box import Box

if TYPE_CHECKING:
    from tieline.bench.match.workload import Floats

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
