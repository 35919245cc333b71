"""The plan on the page: what a planner has left with the brokers, and no more than that."""

from __future__ import annotations

from typing import Any

from tieline.net.page.plan import detail

LINKS = [
    {"ends": ["a", "b"], "load": 97.0, "planned": 71.0, "capacity": 100.0},
    {"ends": ["b", "c"], "load": 10.0, "planned": 30.0, "capacity": None},
    {"ends": ["a", "c"], "load": 5.0, "planned": None, "capacity": 50.0},
]
PROPOSAL = {
    "checker": "proven", "flows_moved": 14, "flows_left": 2, "shortfall_before": 9.0, "shortfall_after": 0.0,
    "objective_before": 1306.0, "objective_after": 1118.0, "unmet": 0, "seconds": 14.8,
}  # fmt: skip


def said(epoch: int, planner: dict[str, Any] | None) -> dict[str, Any]:
    return {"epoch": epoch, "plan": "net" if epoch else "", "planner": planner}


def planner(**more: Any) -> dict[str, Any]:
    return {
        "state": "proposed", "verdict": "plan 13 could be applied", "reasons": ["a – b is full"], "age_s": 2.0,
        "every_s": 10.0, "look": 3, "links": LINKS, "proposal": PROPOSAL, **more,
    }  # fmt: skip


def test_without_a_plan_or_a_planner_there_is_nothing() -> None:
    assert detail(said(0, None)) == {"in_force": None, "proposal": None}


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
    assert after["moves"] is None and after["bound"] is None, "brokers do not keep them"


def test_the_shortest_ways_carry_something_too_and_a_look_may_find_nothing() -> None:
    found = detail(said(0, planner(proposal=None, state="stays")))
    assert found["in_force"]["epoch"] == 0 and found["in_force"]["busiest"]["used"] == 0.97
    assert found["proposal"]["status"] == "stays" and found["proposal"]["cost"] is None
