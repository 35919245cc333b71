"""The plan on the page: the one in force and the one proposed, from what a planner that stands by has left here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any  # Any: values of JSON


def detail(said: dict[str, Any]) -> dict[str, Any]:
    """Both plans; ``said`` is what a broker answers of its plans.

    Without a report of a planner nobody knows what a plan costs or carries: there is only its number and its name.
    """
    planner = said["planner"]
    in_force = None
    if said["epoch"]:
        in_force = {"epoch": said["epoch"], "name": said["plan"], "since": None, "requests": None, "unmet": None}
        in_force |= _carried([], "load") | {"cost": None}
    if planner is None:
        return {"in_force": in_force, "proposal": None}
    links, proposal = planner["links"], planner["proposal"]
    # without a plan messages take the shortest ways, and links carry something all the same
    in_force = (in_force or {"epoch": 0, "name": ""}) | _carried(links, "load")
    in_force["cost"] = None if proposal is None else proposal["objective_before"]
    return {"in_force": in_force, "proposal": _proposed(said, planner)}


def _proposed(said: dict[str, Any], planner: dict[str, Any]) -> dict[str, Any]:
    """What the planner said last, and what it has found."""
    found = {
        "status": planner["state"],
        "verdict": planner["verdict"],
        "reasons": planner["reasons"],
        "age_s": planner["age_s"],
        "every_s": planner["every_s"],
        "look": planner["look"],
        "epoch": said["epoch"] if planner["state"] == "applied" else None,
        "name": said["plan"],
    } | dict.fromkeys(("bound", "measured", "proven", "applied", "moves", "steps", "requests", "since", "topics_total"))
    proposal = planner["proposal"]
    if proposal is None:
        return found | dict.fromkeys(("cost", "unmet", "solved", "checker", "moves_total", "left_total", "shortfall"))
    return found | {
        "cost": proposal["objective_after"],
        "unmet": proposal["unmet"],
        "solved": {"seconds": proposal["seconds"]},
        "checker": proposal["checker"],
        "moves_total": proposal["flows_moved"],
        "left_total": proposal["flows_left"],
        "shortfall": {"before": proposal["shortfall_before"], "after": proposal["shortfall_after"]},
    } | _carried(planner["links"], "planned")  # fmt: skip


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
