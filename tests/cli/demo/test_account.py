"""The account of a plan: what it draws is what was measured, and names are text."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from tieline.cli.demo.account import Account, page, picture, waits_over_time, write_account
from tieline.cli.demo.checks import Check

_LINK = {"ends": ["centre", "<b>north"], "load": 80_000.0, "planned": 45_000.0, "capacity": 50_000.0}
_PROPOSAL = {
    "requests": 96, "unmet": 2, "objective_after": 205.0, "bound": 145.0, "checker": "proven: every limit is kept",
    "flows_moved": 5,
    "moves": [{"topic": "<i>a/reading", "rate": 9_000.0, "before": ["north", "centre"], "after": ["north", "south"]}],
}  # fmt: skip


def _account(**planner: Any) -> Account:
    sent = {(f"t/{number}", b""): (100.0 + number, 0) for number in range(4)} | {("u", b""): (100.0, 3)}
    came = {("t/0", b""): 103.0, ("t/1", b""): 101.5, ("t/2", b""): 102.25, ("u", b""): 100.1}
    return Account(
        begun=100.0, planned_at=101.5, until=104.0, sent=sent, came=came, status={"planner": planner or None}
    )


def test_waits_are_those_of_readings_by_when_they_were_sent_and_what_has_not_come_still_waits() -> None:
    assert waits_over_time(_account()) == [(0.0, 3.0), (1.0, 0.5), (2.0, 0.25), (3.0, 1.0)]


def test_the_picture_has_a_point_for_each_half_second_and_the_moment_of_the_plan() -> None:
    drawn = picture(_account())
    (points,) = re.findall(r'points="([^"]+)"', drawn)
    heights = [float(point.split(",")[1]) for point in points.split()]
    assert len(heights) == 4 and heights[:3] == sorted(heights[:3]) and heights[3] < heights[2], "longer is higher"
    assert "plan in force" in drawn and "3.0 s at first, at most 3.0 s, 1.0 s at last" in drawn
    assert (
        picture(Account(begun=0.0, planned_at=0.0, until=0.0, sent={}, came={}, status={}))
        == "<p>Nothing was sent.</p>"
    )


def test_the_page_says_what_moved_and_takes_no_name_for_markup(tmp_path: Path) -> None:
    applied = {"proposal": _PROPOSAL, "links": [_LINK]}
    now = [_LINK | {"load": 44_000.0}]
    checks = [Check("Loop closed", "4.00 s, now 0.10 s", is_good=True)]
    write_account(tmp_path / "new" / "plan.html", _account(applied=applied, links=now), checks)
    text = (tmp_path / "new" / "plan.html").read_text("utf-8")
    assert text.startswith("<!doctype html>") and "<h1>What the plan changed</h1>" in text
    assert "94 of 96 requests are served" in text and "north → south" in text
    for cell in ("640", "360", "352", "400", "72"):
        assert f">{cell}</td>" in text, cell
    assert "And 4 smaller ones." in text
    assert "<i>" not in text and "<b>" not in text and "&lt;i&gt;a/reading" in text
    assert not re.search(r"(?:src|href)=", text), "nothing is loaded from anywhere"


def test_a_plan_that_was_no_good_is_not_praised() -> None:
    failed = [Check("Loop closed", "nothing was measured", is_good=False)]
    assert "<h1>The plan changed nothing for the better</h1>" in page(_account(), failed)
