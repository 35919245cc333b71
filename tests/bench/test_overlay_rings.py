"""The part of the benchmark that needs no broker: simulated rings by every way, and both rows beside them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from tieline.bench.overlay import rings
from tieline.bench.overlay.suite import METRICS
from tieline.bench.suite.declaration import Running
from tieline.bench.suite.results import Results, Row, rows_of

_TINY = replace(rings.QUICK, events=3, dying=40, churned=24, churn_s=10.0)


class _Run(Running):
    """Hears what is done, and lets nothing fail."""

    results: Results

    def __init__(self) -> None:
        self.steps: list[str] = []

    def step(self, text: str) -> None:
        self.steps.append(text)

    @contextmanager
    def failing(self, rows: Sequence[Row]) -> Iterator[None]:
        yield


def test_every_way_is_measured_on_the_same_publications() -> None:
    run, rows = _Run(), list(rows_of("ring-24", "24 brokers", "ring", list(rings.ways_of(24))))
    rings.measure_ways(24, _TINY, run, rows)
    assert len(run.steps) == len(rows) == len(rings.WAYS)
    found = {row.peer: row.metrics for row in rows}
    assert all(metrics.keys() <= METRICS.keys() for metrics in found.values())
    missed = {way for way, metrics in found.items() if metrics["missed"]}
    assert missed <= {"circulation-literal"}
    assert found["flood"]["messages"] > found["path"]["messages"]
    assert len({metrics["receivers"] for way, metrics in found.items() if way in rings.KNOWING}) == 1


def test_a_fifth_dies_and_some_are_replaced() -> None:
    for measure in (rings.measure_deaths, rings.measure_churn):
        rows = list(rows_of("ring", "brokers", "ring", ["arcs"]))
        measure(_TINY, _Run(), rows)
        metrics = rows[0].metrics
        assert metrics.keys() <= METRICS.keys()
        assert metrics["wrong_fingers"] == 0
