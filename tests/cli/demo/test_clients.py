"""`tieline demo --clients` shows a broker at work, and would say so if it were not."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Tieline
from tieline.cli.demo.clients import _is_right, _table
from tieline.cli.demo.scenes import SCENES, SceneResult


def test_every_scene_is_right(tieline: Tieline) -> None:
    shown = tieline("demo", "--clients")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert f"{len(SCENES)} of {len(SCENES)} scenes" in shown.stdout
    assert "✗" not in shown.stdout


@pytest.mark.parametrize(
    ("arrived", "is_right", "dropped"), [(2, True, 0), (1, True, 0), (3, True, 0), (2, False, 0), (2, True, 1)]
)
def test_the_verdict_needs_everything_to_be_right(arrived: int, is_right: bool, dropped: int) -> None:
    outcome = SceneResult(title="t", story="s", sent=2, expected=2, arrived=arrived, is_right=is_right)
    good = arrived == 2 and is_right and not dropped
    assert _is_right([outcome], {"totals": {"dropped": dropped}}) is good
    assert _table([outcome]).row_count == 1
