"""The matching benchmark: what its numbers mean, the goals that they are held against, its tables and its picture."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median
from typing import TYPE_CHECKING, Final

from tieline.bench.match.broker import WITH_NUMBA, WITHOUT_NUMBA
from tieline.bench.match.cases import COLUMNS, CONFIGURATIONS, HEADLINE, LARGE, MANY, SMALL, end_name
from tieline.bench.match.engines import ENGINES
from tieline.bench.match.shapes import SPREADS
from tieline.bench.metrics import METRICS as LOAD_METRICS
from tieline.bench.metrics import Metric
from tieline.bench.suite.declaration import Goal, GroupTable, Suite, value_goal
from tieline.bench.suite.picture import (
    BLUE,
    GREEN,
    MAUVE,
    OCHRE,
    RUST,
    SKY,
    Panel,
    Picture,
    bars,
    group_panel,
    labels,
    limit,
    points,
)
from tieline.bench.suite.results import Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes

METRICS: Final = {
    **LOAD_METRICS,
    "match_p50_us": Metric("time to find the subscriptions of one event, median over events of the least pass", "µs"),
    "match_p99_us": Metric("the same, exceeded by 1 % of the events", "µs"),
    "first_p50_us": Metric("median time when an event is asked about for the first time", "µs"),
    "batch_rate": Metric("events per second of CPU time when many are asked about at once", "/s", more_is_better=True),
    "matches": Metric("subscriptions that match an event, mean", ""),
    "events": Metric("events asked about one by one", ""),
    "compared": Metric("answers or messages compared with the right ones", ""),
    "counted": Metric("messages counted by subscriber, and found to be as many as they should be", ""),
    "build_s": Metric("time to build the index from all boxes", "s"),
    "rebuild_s": Metric("time to make it anew from itself", "s"),
    "insert_p50_us": Metric("time to add a subscription, median", "µs"),
    "insert_p99_us": Metric("the same, exceeded by 1 %", "µs"),
    "delete_p50_us": Metric("time to take a subscription away, median", "µs"),
    "delete_p99_us": Metric("the same, exceeded by 1 %", "µs"),
    "bytes_index": Metric("bytes of the index for each subscription", "B"),
    "bytes_resident": Metric("growth of the process for each subscription", "B"),
    "subscriptions": Metric("subscriptions held by the broker", ""),
    "load_s": Metric("time until all were acknowledged", "s"),
    "bytes_subscription": Metric("growth of the broker for each subscription", "B"),
    "rate_ratio": Metric("throughput with conditions : with plain topics", "x", more_is_better=True),
    "cpu_ratio": Metric("CPU for each message with conditions : with plain topics", "x"),
    "lone_p50_us": Metric("median time from send to receive with one message in flight", "µs"),
    "lone_ratio": Metric("the same, conditions : plain topics", "x"),
    "beside_one_rate": Metric("throughput of a plain flow on one topic, 1:1", "/s", more_is_better=True),
    "beside_many_rate": Metric("the same, 1,000 topics in turn", "/s", more_is_better=True),
    "beside_one": Metric("throughput of a plain flow beside the conditions : beside none", "x", more_is_better=True),
    "beside_many": Metric("the same, 1,000 topics in turn", "x", more_is_better=True),
}

TABLES: Final = {
    "engine": GroupTable(
        title="The index: time for one event p50, p99 and p50 of the first pass; events per second of CPU, in batches",
        columns={
            "match_p50_us": "p50", "match_p99_us": "p99", "first_p50_us": "p50 of the first pass",
            "batch_rate": "batches",
        },
        is_grid=True,
    ),
    "update": GroupTable(
        title="Changes: one subscription, all of them, memory",
        columns={
            "insert_p50_us": "insert p50", "insert_p99_us": "p99", "delete_p50_us": "delete p50",
            "delete_p99_us": "p99 ", "build_s": "build", "rebuild_s": "rebuild", "bytes_index": "index, each",
            "bytes_resident": "process, each",
        },
    ),
    "end": GroupTable(
        title="Brokers: the same events to the same subscribers, by conditions and by plain topics",
        columns={
            "rate": "throughput", "cpu_us_delivered": "CPU per message", "rate_ratio": "throughput : plain",
            "cpu_ratio": "CPU : plain", "lone_p50_us": "one in flight p50", "beside_one": "plain 1:1 beside",
            "beside_many": "1,000 topics", "load_s": "loading", "bytes_subscription": "memory, each",
        },
    ),
}  # fmt: skip

#: Microseconds for a million subscriptions, compiled and not; and for a few thousand.
LARGE_NUMBA_US, LARGE_NUMPY_US, SMALL_US = 100.0, 500.0, 5.0
#: Of the throughput with plain topics, conditions leave so much; of that of other topics they leave so much.
KEPT_WITH_CONDITIONS = 0.2
KEPT_BESIDE = 0.95


def _goals() -> Iterator[Goal]:
    for engine, most in (("numba", LARGE_NUMBA_US), ("numpy", LARGE_NUMPY_US)):
        text = f"1M subscriptions, 3 attributes, 0.1 %: p50 of an event, {engine}"
        yield value_goal(text, most, "µs", (HEADLINE.name, engine), "match_p50_us")
    few = [configuration.name for configuration in CONFIGURATIONS if configuration.subscriptions == SMALL]
    yield Goal(
        text="3k subscriptions, every configuration: p50 of an event, numba or known cells",
        limit=SMALL_US,
        unit="µs",
        value=lambda results: _slowest(results, few),
        rows=tuple((name, engine) for name in few for engine in ("numba", "small")),
    )
    for spread in SPREADS:
        text = f"100k conditions, {spread}: throughput : that of plain topics, numba"
        key = (end_name(spread, MANY), WITH_NUMBA)
        yield value_goal(text, KEPT_WITH_CONDITIONS, "x", key, "rate_ratio", at_least=True)
    yield _beside("beside_one", "one topic")
    yield _beside("beside_many", "1,000 topics")


def _slowest(results: Results, names: list[str]) -> float | None:
    """The slowest of these configurations, each in its faster engine."""
    slowest: float | None = None
    for name in names:
        some = [results.value(name, engine, "match_p50_us") for engine in ("numba", "small")]
        best = min((value for value in some if value is not None), default=None)
        if best is not None:
            slowest = max(slowest or 0.0, best)
    return slowest


def _beside(metric: str, title: str) -> Goal:
    keys = tuple((end_name(spread, MANY), peer) for spread in SPREADS for peer in (WITH_NUMBA, WITHOUT_NUMBA))

    def middle(results: Results) -> float | None:
        values = [value for key in keys if (value := results.value(*key, metric)) is not None]
        return median(values) if values else None

    return Goal(
        text=f"plain 1:1 flow beside 100k conditions on other topics : beside none, {title}",
        limit=KEPT_BESIDE,
        unit="x",
        value=middle,
        rows=keys,
        at_least=True,
    )


def compared(results: Results) -> int:
    """How many answers and messages were compared with the right ones."""
    return sum(int(one.get("compared", 0)) for row in results.rows for one in row.repetitions[:1])


def _words(results: Results) -> Iterator[str]:
    failed = len(results.failures)
    yield f"{compared(results):,} answers and deliveries compared with the right ones; {failed} rows failed"


_COLOURS = {
    "small": SKY, "numpy": BLUE, "numba": GREEN, "brute force": OCHRE, "rtree": MAUVE, "predicates": RUST,
    WITH_NUMBA: GREEN, WITHOUT_NUMBA: BLUE,
}  # fmt: skip
_GROWING = tuple((number, HEADLINE.with_subscriptions(number).name) for number in (SMALL, MANY, LARGE))


def _growth(axis: Axes, results: Results, metric: str) -> None:
    """A line per engine over the number of subscriptions."""
    series = {
        engine: [
            (float(number), value)
            for number, name in _GROWING
            if (value := results.value(name, engine, metric)) is not None
        ]
        for engine in ENGINES
    }
    points(axis, series, _COLOURS, "o-")
    axis.set_xscale("log")


def _latency(axis: Axes, results: Results) -> None:
    _growth(axis, results, "match_p50_us")
    labels(axis, x="subscriptions", y="µs")


def _batches(axis: Axes, results: Results) -> None:
    _growth(axis, results, "batch_rate")
    labels(axis, x="subscriptions", y="events/s of CPU time")


def _columns(axis: Axes, results: Results) -> None:
    """All configurations with the most subscriptions."""
    places = [column for column in COLUMNS if any(row.workload == column.name for row in results.rows)]
    series = {
        engine: [
            (float(at), value)
            for at, place in enumerate(places)
            if (value := results.value(place.name, engine, "match_p50_us")) is not None
        ]
        for engine in ENGINES
    }
    points(axis, series, _COLOURS)
    axis.margins(x=0.1, y=0.15)
    axis.set_xticks(range(len(places)), [place.column.replace(", ", "\n") for place in places], fontsize=6)
    labels(axis, y="µs")


def _brokers(axis: Axes, results: Results) -> None:
    """Throughput with conditions against that with plain topics."""
    cases = list(dict.fromkeys((row.workload, row.title) for row in results.rows if row.group == "end"))
    peers = [peer for peer in (WITH_NUMBA, WITHOUT_NUMBA) if any(row.peer == peer for row in results.rows)]
    series = {peer: [results.value(name, peer, "rate_ratio") or 0.0 for name, _ in cases] for peer in peers}
    bars(axis, series, [title.replace(", ", "\n") for _, title in cases], _COLOURS)
    limit(axis, KEPT_WITH_CONDITIONS)


def _has_growth(results: Results) -> bool:
    names = {name for _, name in _GROWING}
    return any(row.workload in names and row.metrics for row in results.rows)


def _has_columns(results: Results) -> bool:
    names = {column.name for column in COLUMNS}
    return any(row.workload in names and row.metrics for row in results.rows)


PICTURE: Final = Picture(
    panels=(
        Panel(title="One event, p50: 3 attributes, 0.1 %", draw=_latency, shows=_has_growth),
        Panel(title="Batches: 3 attributes, 0.1 %", draw=_batches, shows=_has_growth),
        Panel(title="1M subscriptions: one event, p50", draw=_columns, shows=_has_columns),
        group_panel("end", "Brokers: throughput with conditions : with plain topics", _brokers),
    )
)
SUITE: Final = Suite(
    name="match",
    metrics=METRICS,
    tables=TABLES,
    goals=tuple(_goals()),
    picture=PICTURE,
    words=_words,
    totals=lambda results: {"compared": float(compared(results))},
    faults=lambda results: results.failures,
)
