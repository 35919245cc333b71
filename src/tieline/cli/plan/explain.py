"""``tieline plan check`` and ``explain``: whether every word of a plan is true, and why a request is unmet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from tieline.cli.plan.files import InstanceFile, PlanFile, instance_in, proven_plan_in, request_named, sentences
from tieline.net.log import printable

if TYPE_CHECKING:
    from tieline.plan.explain import Explanation


def check(file: InstanceFile, plan: PlanFile) -> None:
    """Compute everything that a plan says again, from the instance alone.

    Feasibility, loop freedom, cost, unmet requests, and that the bound is not above the objective. Exit code 1 and the
    violated rule if anything is not true.
    """
    from tieline.cli.plan.words import summary

    with sentences():
        instance = instance_in(file)
        found = proven_plan_in(instance, plan)
    print(f"proven: {summary(instance, found)}")


def explain(
    file: InstanceFile,
    plan: PlanFile,
    request: Annotated[
        str | None,
        typer.Argument(metavar="[REQUEST]", help="TOPIC:SUBSCRIBER, or TOPIC@SOURCE:SUBSCRIBER; else all unmet ones."),
    ] = None,
) -> None:
    """Say why a request is unmet: the fewest full links between its source and its subscriber, and what fills them."""
    with sentences():
        from tieline.plan.explain import explain as explained

        instance = instance_in(file)
        found = proven_plan_in(instance, plan)
        if request is not None:
            topic, subscriber = request_named(instance, request)
            wanted = [(topic.id, topic.source, subscriber)]
        else:
            wanted = [(route.topic, route.source, name) for route in found.routes for name in route.unmet]
        explanations = [
            explained(instance, found, topic=id_, subscriber=name, source=source) for id_, source, name in wanted
        ]
    console = Console()
    if not explanations:
        console.print("Every request is served.")
    for explanation in explanations:
        console.print(explanation.sentence, highlight=False, markup=False)
        if explanation.links:
            console.print(_table(explanation))


def _table(explanation: Explanation) -> Table:
    from tieline.cli.plan.words import amount

    table = Table("  full link", "load", "capacity", "filled by", box=None, header_style="dim", pad_edge=False)
    table.columns[1].justify = table.columns[2].justify = "right"
    for link in explanation.links:
        table.add_row(
            printable(f"  {link.a} - {link.b}"),
            amount(link.load),
            amount(link.capacity),
            printable(", ".join(link.topics)) or "-",
        )
    return table
