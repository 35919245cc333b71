from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from tieline.cli.pipeline.output import Progress, Rate, line
from tieline.pipeline.jobs.ingest_batch import Landed


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ((0, 0.0, None, 0, 0), "0 records, 0/s"),
        ((1_500, 99.6, 0, 0, 0), "1,500 records, 100/s, 0 behind"),
        ((1_500, 100.0, 6_150, 2, 1), "1,500 records, 100/s, 6,150 behind, 1:02 left, 2 in quarantine, 1 duplicates"),
        ((10, 1.0, 7_322, 0, 0), "10 records, 1/s, 7,322 behind, 2:02:02 left"),
        ((10, 0.1, 5, 0, 0), "10 records, 0/s, 5 behind"),
    ],
)
def test_line(given: Any, said: str) -> None:
    assert line(*given) == said


def test_the_rate_is_that_of_the_last_while() -> None:
    rate = Rate(0.0)
    rate.add(1_000, 10.0)
    assert rate.per_second(10.0) == 100.0
    for second in range(11, 60):
        rate.add(10, float(second))
    assert rate.per_second(59.0) == pytest.approx(10.0, rel=0.05)


def test_plain_lines_where_there_is_no_terminal() -> None:
    text = io.StringIO()
    with Progress(console=Console(file=text, width=200)) as progress:
        progress.tell(5)
        progress.landed(Landed(10, {"events/reading": 8, "quarantine": 2}))
        progress.tell(0)
        progress.tell(0)
    (only,) = text.getvalue().splitlines()
    assert only.startswith("10 records") and only.endswith("0 behind, 2 in quarantine")
    with Progress(quiet=True, console=Console(file=text)) as progress:
        progress.say("something")
    assert "something" not in text.getvalue()
