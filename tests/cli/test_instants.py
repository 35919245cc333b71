"""Points in time are understood as people write them, or refused with what to write."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
import typer

from tieline.cli.instants import _point_in_time, instant, point_in_time

NOW = datetime(2026, 3, 2, 13, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("12:00", datetime(2026, 3, 2, 12, tzinfo=UTC)),
        ("9:05:07", datetime(2026, 3, 2, 9, 5, 7, tzinfo=UTC)),
        ("14:00", datetime(2026, 3, 1, 14, tzinfo=UTC)),  # it is not 14:00 yet
        ("90s", datetime(2026, 3, 2, 13, 28, 30, tzinfo=UTC)),
        ("2d", datetime(2026, 2, 28, 13, 30, tzinfo=UTC)),
        ("2026-03-01", datetime(2026, 3, 1, tzinfo=UTC)),
        ("2026-03-01T12:00:00+02:00", datetime(2026, 3, 1, 10, tzinfo=UTC)),
    ],
)
def test_a_point_in_time(text: str, meant: datetime) -> None:
    assert _point_in_time(text, NOW) == meant.timestamp()


@pytest.mark.parametrize("text", ["soon", "24:61", "-5m", "2026-13-01", ""])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(typer.BadParameter):
        point_in_time(text)


def test_a_date_is_in_utc() -> None:
    assert instant("2026-03-01") == datetime(2026, 3, 1, tzinfo=UTC)
