"""The plan on the page: what a planner has left with the brokers, and no more than that."""

from __future__ import annotations

from typing import Any

from tieline.net.page.plan import detail, figures

LINKS = [
    {"ends": ["a", "b"], "load": 97.0, "planned": 71.0, "capacity": 100.0},
    {"ends": ["b", "c"], "load": 10.0, "planned": 30.0, "capacity": None},
    {"ends": ["a", "c"], "load": 5.0, "planned": None, "capacity": 50.0},
]
PROPOSAL = {
    "checker": "proven", "flows_moved": 14, "flows_left": 2, "shortfall_before": 9.0, "shortfall_after": 0.0,
    "objective_before": 1306.0, "objective_after": 1118.0, "unmet": 0, "seconds": 14.8, "bound": 1114.0,
    "requests": 214, "topics": 96,
    "moves": [{"topic": "north/reading", "rate": 26_750.0, "before": ["a", "b"], "after": ["a", "c", "b"]}],
    "steps": [
        {"seconds": 0.1, "objective": 1306.0, "bound": 980.0}, {"seconds": 9.0, "objective": 1118.0, "bound": 1114.0},
    ],
}  # fmt: skip


def said(epoch: int, planner: dict[str, Any] | None) -> dict[str, Any]:
    return {"epoch": epoch, "plan": "net" if epoch else "", "planner": planner}


def planner(**more: Any) -> dict[str, Any]:
    return {
        "state": "proposed", "verdict": "plan 13 could be applied", "reasons": ["a – b is full"], "age_s": 2.0,
        "every_s": 10.0, "look": 3, "links": LINKS, "proposal": PROPOSAL, "unit": "bytes", "published": 5_000.0,
        "applied": None, **more,
    }  # fmt: skip


def test_without_a_plan_or_a_planner_there_is_nothing() -> None:
    assert detail(said(0, None)) == {"in_force": None, "proposal": None, "is_applied": False}
    assert figures(said(0, None)) is None


def test_a_plan_without_a_planner_has_a_name_and_no_numbers() -> None:
    found = detail(said(12, None))
    assert found["in_force"]["epoch"] == 12 and found["in_force"]["links"] == [] and found["in_force"]["cost"] is None
    assert found["proposal"] is None


def test_before_and_after() -> None:
    found = detail(said(12, planner()))
    before, after = found["in_force"], found["proposal"]
    assert (before["cost"], after["cost"]) == (1306.0, 1118.0)
    assert before["busiest"] == {"ends": ["a", "b"], "used": 0.97} and after["busiest"]["used"] == 0.71
    assert [link["used"] for link in before["links"]] == [0.97, None, 0.1] and len(after["links"]) == 2
    assert (before["load"], after["load"]) == (112.0, 101.0)
    assert (after["status"], after["moves_total"], after["shortfall"]) == (
        "proposed",
        14,
        {"before": 9.0, "after": 0.0},
    )
    assert (after["bound"], after["requests"], len(after["steps"])) == (1114.0, 214, 2)
    assert after["moves"] == [
        {"topic": "north/reading", "rate": 26_750.0, "bps": 214_000.0, "now": ["a", "b"], "then": ["a", "c", "b"]}
    ]
    assert not found["is_applied"] and after["command"] == "tieline plan watch --times 1"
    good = figures(said(12, planner()))
    assert good is not None and not good.is_applied and good.gap is not None and round(good.gap, 4) == 0.0036
    assert detail(said(12, planner(unit="messages")))["proposal"]["moves"][0]["bps"] is None


APPLIED = {
    "epoch": 13, "before_epoch": 12, "ago_s": 60.0, "proposal": PROPOSAL, "links": LINKS,
    "before": {"carried": 90.0, "waiting": 7_000.0}, "after": None,
}  # fmt: skip


def test_what_was_applied_stands_beside_the_ways_before_it_and_what_was_measured_since() -> None:
    found = detail(said(13, planner(state="applied", applied=APPLIED)))
    before, after = found["in_force"], found["proposal"]
    assert found["is_applied"] and (before["epoch"], before["cost"], after["cost"]) == (12, 1306.0, 1118.0)
    assert after["busiest"]["used"] == 0.71, "as planned, until something was measured"
    assert (after["applied"], after["passing"], after["command"]) == ({"ago_s": 62.0}, None, None)
    now = [LINKS[0] | {"load": 60.0}]
    measured = APPLIED | {"after": {"carried": 120.0, "waiting": 0.0}}
    settled = planner(state="stays", proposal=None, links=now, applied=measured)
    found = detail(said(13, settled))
    assert found["proposal"]["busiest"]["used"] == 0.6 and found["proposal"]["moves_total"] == 14
    assert found["in_force"]["busiest"]["used"] == 0.97
    good = figures(said(13, settled))
    assert good is not None and (good.is_applied, good.waited, good.waits) == (True, 7_000.0, 0.0)


def test_a_plan_that_somebody_else_applied_since_is_not_taken_for_the_planners() -> None:
    found = detail(said(14, planner(state="stays", proposal=None, applied=APPLIED)))
    assert not found["is_applied"] and found["in_force"]["epoch"] == 14
    assert figures(said(14, planner(state="stays", proposal=None, applied=APPLIED))) is None


def test_the_shortest_ways_carry_something_too_and_a_look_may_find_nothing() -> None:
    found = detail(said(0, planner(proposal=None, state="stays")))
    assert found["in_force"]["epoch"] == 0 and found["in_force"]["busiest"]["used"] == 0.97
    assert found["proposal"]["status"] == "stays" and found["proposal"]["cost"] is None
