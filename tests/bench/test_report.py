"""Tables, page and picture show the record and hide nothing of it."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from tests.bench.records import made_up
from tieline.bench.broker.suite import PICTURE, SUITE
from tieline.bench.metrics import amount
from tieline.bench.suite.report import markdown, show
from tieline.bench.suite.results import Results


def printed(record: Results) -> str:
    out = io.StringIO()
    show(SUITE, record, Console(file=out, width=140))
    return out.getvalue()


@pytest.mark.parametrize("text", [printed(made_up()), markdown(SUITE, made_up())], ids=["tables", "page"])
def test_everything_is_said(text: str) -> None:
    for part in (
        "Abacus",
        "absent: amqtt",
        "tieline bench peers amqtt",
        "1:1, QoS 0, 64 B",
        "400 k/s",
        "4.00x",
        "0.250x",
        "failed: the broker died (exit code 1)",
        "25.0 kB",
        "not met",
        "not measured",
    ):
        assert part in text


def test_what_was_delivered_is_counted() -> None:
    record = made_up()
    assert "were owed" not in markdown(SUITE, record)
    for one in record.rows[0].repetitions:
        one.update(delivered=1_000, checked=20)
    assert "3,000 messages were owed in the 3 spells of these rows, and all were delivered; 60 before" in markdown(
        SUITE, record
    )


def test_the_picture_is_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    path = tmp_path / "broker.png"
    assert PICTURE.draw(made_up(), path)
    assert path.read_bytes().startswith(b"\x89PNG")


def test_there_is_no_picture_without_a_comparison(tmp_path: Path) -> None:
    record = made_up()
    record.rows = record.rows[:1]
    assert not PICTURE.draw(record, tmp_path / "broker.png")


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.867, "mean", "0.867"),
        (14.3, "mean", "14.3"),
        (14.3, "", "14"),
        (0.002, "share", "0.20 %"),
        (None, "mean", ""),
    ],
)
def test_averages_and_shares_are_not_rounded_to_counts(value: float | None, unit: str, text: str) -> None:
    assert amount(value, unit) == text
