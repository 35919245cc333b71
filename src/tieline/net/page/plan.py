"""The plan on the page: two of them beside each other, from what a planner that stands by has left here.

Which two depends on what there is to decide: a plan that is proposed stands beside the ways of now, and one that has
been applied beside the ways before it, with what was measured then and since.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final  # Any: values of JSON

from tieline.net.page.seen import PlanFigures

#: States of a planner in which it has nothing to decide: what it applied last is of interest, and what came of it.
_SETTLED: Final = ("applied", "stays", "waits", "failed")
#: What is not said of a plan of which nobody knows more than that there is one.
_UNKNOWN: Final = (
    *("cost", "unmet", "solved", "checker", "moves", "moves_total", "left_total", "shortfall", "bound", "steps"),
    *("requests", "topics_total"),
)
_BITS: Final = 8


def detail(said: dict[str, Any]) -> dict[str, Any]:
    """Both plans, and whether the second one is in force already; ``said`` is what a broker answers of its plans.

    Without a report of a planner nobody knows what a plan costs or carries: there is only its number and its name.
    """
    planner = said["planner"]
    in_force = _named(said["epoch"], said["plan"], []) if said["epoch"] else None
    if planner is None:
        return {"in_force": in_force, "proposal": None, "is_applied": False}
    applied = planner["applied"]
    if applied is not None and planner["state"] in _SETTLED and applied["epoch"] == said["epoch"]:
        return _compared(said, planner, applied)
    proposal = planner["proposal"]
    # without a plan messages take the shortest ways, and links carry something all the same
    now = _named(said["epoch"], said["plan"], planner["links"])
    now["cost"] = None if proposal is None else proposal["objective_before"]
    found = _told(said, planner) | _of(proposal, planner["unit"])
    if proposal is not None:
        found |= _carried(planner["links"], "planned")
    return {"in_force": now, "proposal": found, "is_applied": False}


def figures(said: dict[str, Any]) -> PlanFigures | None:
    """How good the plan is that a planner has applied or proposes; None where nobody has said."""
    found = detail(said)
    plan = found["proposal"]
    if plan is None or plan["requests"] is None or not (found["is_applied"] or plan["status"] == "proposed"):
        return None
    cost, bound = plan["cost"], plan["bound"]
    before, after = found["in_force"]["passing"], plan["passing"]
    return PlanFigures(
        is_applied=found["is_applied"],
        requests=plan["requests"],
        unmet=plan["unmet"],
        gap=max(0.0, 1 - bound / cost) if cost and bound is not None else None,
        waited=None if before is None else before["waiting"],
        waits=None if after is None else after["waiting"],
    )


def _compared(said: dict[str, Any], planner: dict[str, Any], applied: dict[str, Any]) -> dict[str, Any]:
    """The ways before the plan in force, and the plan itself as it is measured now."""
    before = _named(applied["before_epoch"], "", applied["links"])
    before |= {"cost": applied["proposal"]["objective_before"], "passing": applied["before"]}
    found = _told(said, planner) | _of(applied["proposal"], planner["unit"])
    found |= {"applied": {"ago_s": applied["ago_s"] + planner["age_s"]}, "passing": applied["after"]}
    is_measured = applied["after"] is not None and bool(planner["links"])
    found |= _carried(planner["links"], "load") if is_measured else _carried(applied["links"], "planned")
    return {"in_force": before, "proposal": found, "is_applied": True}


def _named(epoch: int, name: str, links: Sequence[dict[str, Any]]) -> dict[str, Any]:
    return {"epoch": epoch, "name": name, "cost": None, "unmet": None, "passing": None} | _carried(links, "load")


def _told(said: dict[str, Any], planner: dict[str, Any]) -> dict[str, Any]:
    """What the planner said last."""
    kept = ("verdict", "reasons", "age_s", "every_s", "look", "unit")
    return {name: planner[name] for name in kept} | {
        "status": planner["state"],
        "epoch": said["epoch"],
        "name": said["plan"],
        "measured": {"seconds": planner["every_s"], "published": planner["published"]},
        "applied": None,
        "passing": None,
        # what is proposed was found by a look that may change nothing; one that may does what it says
        "command": "tieline plan watch --times 1" if planner["state"] == "proposed" else None,
    }


def _of(proposal: dict[str, Any] | None, unit: str) -> dict[str, Any]:
    """What a plan that was found costs and moves; with no plan, that nobody knows."""
    if proposal is None:
        return dict.fromkeys(_UNKNOWN) | _carried([], "planned")
    return {
        "cost": proposal["objective_after"],
        "unmet": proposal["unmet"],
        "solved": {"seconds": proposal["seconds"]},
        "checker": proposal["checker"],
        "moves": [_move(move, unit) for move in proposal["moves"]],
        "moves_total": proposal["flows_moved"],
        "left_total": proposal["flows_left"],
        "shortfall": {"before": proposal["shortfall_before"], "after": proposal["shortfall_after"]},
        "bound": proposal["bound"],
        "steps": proposal["steps"],
        "requests": proposal["requests"],
        "topics_total": proposal["topics"],
    }


def _move(move: dict[str, Any], unit: str) -> dict[str, Any]:
    bps = move["rate"] * _BITS if unit == "bytes" else None
    return {"topic": move["topic"], "rate": move["rate"], "bps": bps, "now": move["before"], "then": move["after"]}


def _carried(links: Sequence[dict[str, Any]], what: str) -> dict[str, Any]:
    """What passes each link, and which of them is fullest."""
    told = [link for link in links if link[what] is not None]
    shown = [
        {"ends": list(link["ends"]), "load": link[what], "capacity": link["capacity"], "used": _used(link, what)}
        for link in told
    ]
    known = [link for link in shown if link["used"] is not None]
    busiest = max(known, key=lambda link: link["used"], default=None)
    return {
        "links": shown,
        "busiest": None if busiest is None else {"ends": busiest["ends"], "used": busiest["used"]},
        "load": sum(link[what] for link in told) if told else None,
    }


def _used(link: dict[str, Any], what: str) -> float | None:
    return link[what] / link["capacity"] if link["capacity"] else None
