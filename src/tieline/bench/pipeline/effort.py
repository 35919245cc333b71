"""The parts of the pipeline's benchmark, and with how much effort each is measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

PARTS: Final = {
    "ingest": "a broker's log into Spark, as Arrow batches and as tuples, and into tables",
    "match": "events in ranges of four attributes: our job, a nested-loop join, one process with the same index",
    "pruning": "bytes read for a query of three ranges, of a Hilbert-clustered table and of one sorted by time",
    "growth": "whether the time of ingest is a straight line of the rows",
    "crash": "kill -9 of driver, executor, broker and log server at random: nothing lost, nothing twice",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineEffort:
    """How much is done."""

    ingest_records: int
    #: Rows that are handed over from memory.
    memory_records: int
    ingest_repetitions: int
    match_events: int
    match_subscriptions: int
    #: One of so many events goes through the nested-loop join.
    match_share: int
    match_repetitions: int
    pruning_records: int
    pruning_queries: int
    growth_sizes: Sequence[int]
    growth_repetitions: int
    kills: int
    #: Whether kills hit a standalone cluster with two workers, or Spark in one process.
    on_cluster: bool
    #: About how many seconds each part takes.
    expected_s: Mapping[str, float]


FULL: Final = PipelineEffort(
    ingest_records=3_000_000,
    memory_records=3_000_000,
    ingest_repetitions=3,
    match_events=1_000_000,
    match_subscriptions=10_000,
    match_share=20,
    match_repetitions=6,
    pruning_records=4_000_000,
    pruning_queries=30,
    growth_sizes=(1_000_000, 3_000_000, 10_000_000),
    growth_repetitions=2,
    kills=20,
    on_cluster=True,
    expected_s={"ingest": 200.0, "match": 150.0, "pruning": 60.0, "growth": 250.0, "crash": 400.0},
)
QUICK: Final = PipelineEffort(
    ingest_records=200_000,
    memory_records=1_000_000,
    ingest_repetitions=2,
    match_events=1_000_000,
    match_subscriptions=10_000,
    match_share=100,
    match_repetitions=4,
    pruning_records=2_000_000,
    pruning_queries=20,
    growth_sizes=(100_000, 300_000, 1_000_000),
    growth_repetitions=2,
    kills=3,
    on_cluster=False,
    expected_s={"ingest": 60.0, "match": 70.0, "pruning": 40.0, "growth": 50.0, "crash": 80.0},
)
