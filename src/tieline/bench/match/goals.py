"""What matching is to achieve, and whether it did: computed from the rows, never stated."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from tieline.bench.match.broker import WITH_NUMBA, WITHOUT_NUMBA
from tieline.bench.match.plan import CONFIGURATIONS, HEADLINE, LARGE, MANY, SMALL, end_name
from tieline.bench.match.shapes import SPREADS
from tieline.bench.priority.goals import Goal
from tieline.bench.targets import Numbers

#: Microseconds for a million subscriptions, compiled and not; and for a few thousand.
LARGE_NUMBA_US, LARGE_NUMPY_US, SMALL_US = 100.0, 500.0, 5.0
#: Of the throughput with plain topics, conditions leave so much; of that of other topics they leave so much.
KEPT_WITH_CONDITIONS = 0.2
KEPT_BESIDE = 0.95

__all__ = ["Goal", "judge"]


def judge(numbers: Numbers) -> list[Goal]:
    """Every goal with its verdict."""
    return [*_index(numbers), *_end(numbers)]


def _index(numbers: Numbers) -> Iterator[Goal]:
    large = HEADLINE.with_subscriptions(LARGE)
    for engine, limit in (("numba", LARGE_NUMBA_US), ("numpy", LARGE_NUMPY_US)):
        text = f"1M subscriptions, 3 attributes, 0.1 %: p50 of an event, {engine}"
        yield Goal(text, limit, numbers.value(large.name, engine, "match_p50_us"), "µs")
    slowest: float | None = None
    for configuration in CONFIGURATIONS:
        if configuration.subscriptions == SMALL:
            some = [numbers.value(configuration.name, engine, "match_p50_us") for engine in ("numba", "small")]
            best = min((value for value in some if value is not None), default=None)
            if best is not None:
                slowest = max(slowest or 0.0, best)
    yield Goal("3k subscriptions, every configuration: p50 of an event, numba or known cells", SMALL_US, slowest, "µs")


def _end(numbers: Numbers) -> Iterator[Goal]:
    for spread in SPREADS:
        kept = numbers.value(end_name(spread, MANY), WITH_NUMBA, "rate_ratio")
        text = f"100k conditions, {spread}: throughput : that of plain topics, numba"
        yield Goal(text, KEPT_WITH_CONDITIONS, kept, "x", at_least=True)
    for metric, title in (("beside_one", "one topic"), ("beside_many", "1,000 topics")):
        values = [
            value
            for spread in SPREADS
            for peer in (WITH_NUMBA, WITHOUT_NUMBA)
            if (value := numbers.value(end_name(spread, MANY), peer, metric)) is not None
        ]
        text = f"plain 1:1 flow beside 100k conditions on other topics : beside none, {title}"
        yield Goal(text, KEPT_BESIDE, median(values) if values else None, "x", at_least=True)
