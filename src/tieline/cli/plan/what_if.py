"""``tieline plan what-if``: what a change of the network would do to a plan, before it happens."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from tieline.cli.plan.files import (
    InstanceFile,
    PlanFile,
    instance_in,
    link_named,
    proven_plan_in,
    request_named,
    sentences,
    topic_named,
    write,
)
from tieline.cli.trouble import MISUSED, Trouble
from tieline.net.log import printable

if TYPE_CHECKING:
    from tieline.plan.adapt.replan import Replanned
    from tieline.plan.instance import Instance
    from tieline.plan.plan import Plan

#: Rows of a list, before it says how many more there are.
_MOST = 10


def what_if(  # one for each option
    file: InstanceFile,
    plan: PlanFile,
    *,
    remove: Annotated[
        list[str] | None, typer.Option(metavar="LINK", help="A link fails, as A-B, or a broker, by its id. Repeatable.")
    ] = None,
    rate: Annotated[
        list[str] | None, typer.Option(metavar="TOPIC=RATE", help="A topic gets another rate. Repeatable.")
    ] = None,
    subscribe: Annotated[
        list[str] | None, typer.Option(metavar="TOPIC:NODE", help="Somebody subscribes. Repeatable.")
    ] = None,
    unsubscribe: Annotated[
        list[str] | None, typer.Option(metavar="TOPIC:NODE", help="Somebody unsubscribes. Repeatable.")
    ] = None,
    json: Annotated[
        Path | None, typer.Option("--json", metavar="OUT", help="Write the new plan there; - is standard output.")
    ] = None,
    instance_out: Annotated[
        Path | None, typer.Option("--instance", metavar="OUT", help="Write the changed instance there.")
    ] = None,
) -> None:
    """Change the network and plan again from the plan there is, moving as few flows as possible.

    Says what would change: who is lost or gained, how many flows move, what it costs, and how long it took.
    """
    with sentences():
        from tieline.plan import plan as plans
        from tieline.plan.adapt.replan import replan
        from tieline.plan.proof import proven
        from tieline.plan.reading import document

        instance = instance_in(file)
        before = proven_plan_in(instance, plan)
        changed = _changed(instance, remove or [], rate or [], subscribe or [], unsubscribe or [])
        found = replan(changed, before)
        after = proven(changed, found.plan)
        if instance_out is not None:
            write(instance_out, document.render(changed))
        if json is not None:
            write(json, plans.render(after))
            if str(json) == "-":
                return
    console = Console()
    console.print(_figures(instance, before, changed, found))
    _list(console, "no longer served", set(after.unmet_requests()) - set(before.unmet_requests()))
    _list(console, "served now", set(before.unmet_requests()) - set(after.unmet_requests()))
    for name, path in (("plan", json), ("instance", instance_out)):
        if path is not None:
            console.print(f"{name} written to {path}", highlight=False, markup=False, soft_wrap=True)


def _changed(
    instance: Instance, removed: list[str], rates: list[str], wanted: list[str], unwanted: list[str]
) -> Instance:
    from tieline.plan.adapt import changes

    if not (removed or rates or wanted or unwanted):
        raise Trouble("name a change: --remove, --rate, --subscribe or --unsubscribe.", code=MISUSED)
    for text in removed:
        link = link_named(instance, text)
        if link is not None:
            instance = changes.without_link(instance, link.a, link.b)
        elif any(node.id == text for node in instance.nodes):
            instance = changes.without_broker(instance, text)
        else:
            raise Trouble(f"there is no link and no broker {text}; a link is A-B.", code=MISUSED)
    for text in rates:
        name, _, number = text.rpartition("=")
        topic = topic_named(instance, name)
        try:
            instance = changes.with_rate(instance, topic.id, float(number), source=topic.source)
        except ValueError as error:
            raise Trouble(f"--rate {text}: {error}.", code=MISUSED) from None
    for text in wanted:
        name, _, node = text.rpartition(":")
        topic = topic_named(instance, name)
        instance = changes.with_subscription(instance, topic.id, node, source=topic.source)
    for text in unwanted:
        topic, subscriber = request_named(instance, text)
        instance = changes.without_subscription(instance, topic.id, subscriber, source=topic.source)
    return instance


def _figures(instance: Instance, before: Plan, changed: Instance, found: Replanned) -> Table:
    from tieline.cli.plan.words import amount, share

    after = found.plan
    table = Table("", "before", "after", box=None, header_style="dim", pad_edge=False)
    table.columns[1].justify = table.columns[2].justify = "right"
    rows = [
        ("requests", f"{instance.request_count:,}", f"{changed.request_count:,}"),
        ("unmet", f"{before.unmet:,}", f"{after.unmet:,}"),
        ("cost", amount(before.cost), amount(after.cost)),
        ("bound", amount(before.bound), amount(after.bound)),
        ("gap", share(before.gap), share(after.gap)),
        ("flows that stay", "", f"{found.flows_kept:,}"),
        ("flows that move or end", "", f"{found.flows_moved:,}"),
        ("flows that begin", "", f"{found.flows_added:,}"),
        ("seconds", f"{before.seconds:.3f}", f"{found.seconds:.3f}"),
    ]
    for row in rows:
        table.add_row(*row)
    return table


def _list(console: Console, heading: str, requests: set[tuple[str, str]]) -> None:
    if not requests:
        return
    table = Table(f"{heading}: topic", "subscriber", box=None, header_style="dim", pad_edge=False)
    for topic, subscriber in sorted(requests)[:_MOST]:
        table.add_row(printable(topic), printable(subscriber))
    if len(requests) > _MOST:
        table.add_row(f"and {len(requests) - _MOST:,} more", "")
    console.print()
    console.print(table)
