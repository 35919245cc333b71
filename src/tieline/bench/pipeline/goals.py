"""What the pipeline is to achieve, and whether it did: computed from the rows, never stated."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tieline.bench.pipeline import growth, ingest, kills, pruning, ranges
from tieline.bench.priority.goals import Goal
from tieline.bench.targets import Numbers

ARROW_TIMES: Final = 5.0
NESTED_TIMES: Final = 20.0
ALONE_TIMES: Final = 3.0
FEWER_BYTES: Final = 5.0
BEND: Final = 1.25
#: What must be zero after kills.
FAULTS: Final = ("lost", "twice", "unknown", "debris", "unaccounted", "quarantined")

__all__ = ["Goal", "judge"]


def judge(numbers: Numbers) -> list[Goal]:
    """Every goal with its verdict."""
    return [*_speed(numbers), *_bytes(numbers), *_growth(numbers), *_crash(numbers)]


def _speed(numbers: Numbers) -> Iterator[Goal]:
    times = numbers.value(ingest.WORKLOAD, ingest.ARROW, "times_tuples")
    text = f"log to Spark ({', '.join(ingest.COLUMNS)}): Arrow batches, times as fast as tuples"
    yield Goal(text, ARROW_TIMES, times, "x", at_least=True)
    nested = numbers.value(ranges.WORKLOAD, ranges.JOB, "times_nested")
    yield Goal("range match: our job, times as fast as a nested-loop join", NESTED_TIMES, nested, "x", at_least=True)
    alone = numbers.value(ranges.WORKLOAD, ranges.JOB, "times_alone")
    yield Goal("range match: our job, times the time of one process with the same index", ALONE_TIMES, alone, "x")


def _bytes(numbers: Numbers) -> Iterator[Goal]:
    for metric, how in (("fewer_footer", "by the footers"), ("fewer_read", "as read by pyarrow")):
        fewer = numbers.value(pruning.WORKLOAD, pruning.BY_CURVE, metric)
        text = f"three ranges: bytes of a table by time : of a Hilbert-clustered one, {how}"
        yield Goal(text, FEWER_BYTES, fewer, "x", at_least=True)


def _growth(numbers: Numbers) -> Iterator[Goal]:
    bend = numbers.value(growth.WORKLOAD, growth.FIT, "bend")
    yield Goal("time = a + b · rows: b of large and small sizes, the larger by the smaller", BEND, bend, "x")


def _crash(numbers: Numbers) -> Iterator[Goal]:
    count = numbers.value(kills.WORKLOAD, kills.PEER, "kills")
    after = "after random kills" if count is None else f"after {count:.0f} random kills"
    for metric, what in (("lost", "acknowledged messages lost"), ("twice", "messages twice in the tables")):
        yield Goal(f"{after}: {what}", 0, numbers.value(kills.WORKLOAD, kills.PEER, metric), "")
