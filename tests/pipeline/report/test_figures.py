"""Figures are rounded so that they never say more than is true."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tieline.pipeline.report.figures import duration, percent


@pytest.mark.parametrize(
    ("share", "shown"),
    [(None, "–"), (0.0, "0.00"), (1.0, "100.00"), (0.99999, "99.99"), (0.000001, "0.01"), (0.95, "95.00")],
)
def test_percent(share: float | None, shown: str) -> None:
    assert percent(share).removesuffix("%").strip() == shown


@given(st.floats(0, 1))
def test_only_all_is_all_and_only_nothing_is_nothing(share: float) -> None:
    shown = percent(share)
    assert (shown == percent(1.0)) == (share == 1)
    assert (shown == percent(0.0)) == (share == 0)


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0, "0"), (0.2, "< 1 s"), (59.6, "1 min"), (61, "1 min 1 s"), (3600, "1 h"), (90_061, "1 d 1 h"), (86_460, "1 d")],
)
def test_duration(seconds: float, shown: str) -> None:
    assert duration(seconds).replace("\u202f", " ") == shown
