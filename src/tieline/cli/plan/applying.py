"""``tieline plan apply`` and ``tieline plan status``: a plan becomes what running brokers go by, and how that goes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal  # Any: values of JSON

import msgspec
import typer
from rich.console import Console
from rich.table import Table

from tieline.cli.management import Management, RunningBroker, shown
from tieline.cli.plan.files import instance_in, proven_plan_in, sentences
from tieline.cli.plan.network import Passed, everybody, everywhere, net_of
from tieline.cli.trouble import MISUSED, Trouble
from tieline.cli.verbs import with_blocks

if TYPE_CHECKING:
    from tieline.plan.instance import Instance
    from tieline.plan.plan import Plan
    from tieline.plan.tables import Part

#: The words for what is counted, in the order of the table.
_COUNTED: Final = {
    "planned": "by plan",
    "plan_uncovered": "uncovered",
    "plan_unknown": "unknown",
    "plan_links_down": "link down",
    "plan_loops": "loop",
}
#: What a broker is called that has forgotten its plan, or never had one.
_NONE: Final = "none"


@with_blocks
def apply(
    file: Annotated[
        str | None, typer.Argument(metavar="FILE", help="The instance that was planned.", show_default=False)
    ] = None,
    plan: Annotated[
        Path | None, typer.Argument(metavar="PLAN", help="The plan, as `solve --json` writes it.", show_default=False)
    ] = None,
    *,
    at: RunningBroker,
    dry: Annotated[bool, typer.Option("--dry", help="Check everything, and change nothing.")] = False,
    revert: Annotated[
        bool, typer.Option("--revert", help="Go by the plan before, or by none if it was the first.")
    ] = False,
    unit: Annotated[
        Literal["bytes", "messages"],
        typer.Option(help="What rates and capacities count, per second; with bytes, links are paced by the plan."),
    ] = "bytes",
) -> None:
    """Let running brokers go by a plan: what it covers travels over the links that it has chosen.

    One joined broker is enough: it reaches the others. The plan has to be true for the network as it is now. All
    brokers get their part before any of them goes by it; what is under way goes on by the plan that it began with.
    """
    if revert != (file is None and plan is None) or (file is None) != (plan is None):
        raise Trouble("name an instance and its plan, or --revert.", code=MISUSED)
    with at.reach() as channel:
        if revert:
            _revert(channel, is_dry=dry)
            return
        assert file is not None
        assert plan is not None
        with sentences():
            from tieline.plan.tables import parts

            instance = instance_in(file)
            found = proven_plan_in(instance, plan)
            check_against(channel, instance, found, in_bytes=unit == "bytes")
            told = parts(instance, found, is_paced=unit == "bytes")
        print(install(channel, told, found.instance, is_dry=dry))


def check_against(channel: Management, instance: Instance, plan: Plan, *, in_bytes: bool) -> None:
    """Raise Trouble if a plan is not true for the network as it is now."""
    from tieline.plan.instance import UNLIMITED
    from tieline.plan.proof import Refuted, examine
    from tieline.plan.reading.joined import as_it_is

    answer = net_of(channel)
    if answer is None:
        raise Trouble("this broker is not joined with others: there is nothing to plan.", code=MISUSED)
    _brokers, running = everywhere(channel, answer, capacity=UNLIMITED, in_bytes=in_bytes)
    try:
        examine(as_it_is(instance, running), plan.routes)
    except Refuted as violation:
        raise Trouble(f"the network is not as it was planned: {shown(str(violation))}.") from None


def install(channel: Management, parts: dict[str, Part], name: str, *, is_dry: bool = False) -> str:
    """Give every broker its part of a plan, then let all go by it; what was done, in words."""
    brokers = _all(channel)
    needed = {broker: part for broker, part in parts.items() if part.ways or part.topics or broker in brokers}
    missing = sorted(broker for broker in needed if broker not in brokers)
    if missing:
        raise Trouble(f"no way leads to {', '.join(missing)}: nothing was changed.")
    for broker, said in brokers.items():
        if broker in needed and said["strategy"] not in ("path", "plan"):
            raise Trouble(f"broker {broker} goes by {said['strategy']}, and would not follow a plan.")
    epoch = 1 + max((epoch for said in brokers.values() for epoch in (*said["epochs"], said["epoch"])), default=0)
    topics, ways = (sum(len(getattr(part, what)) for part in parts.values()) for what in ("topics", "ways"))
    paced = sum(len(part.paces) for part in parts.values()) // 2
    sums = f"{topics:,} topics, {ways:,} ways, {paced:,} paced links"
    if is_dry:
        return f"{name} can be applied to {len(needed):,} brokers: {sums}"
    for broker, part in needed.items():
        there = Passed(channel, broker)
        for piece in part.pieces(epoch, name):
            there.ask("plan", act="put", piece=msgspec.to_builtins(piece))
    _use(channel, epoch, set(needed))
    return f"{name} is in force at {len(needed):,} brokers, as plan {epoch}: {sums}"


def _use(channel: Management, epoch: int, brokers: set[str]) -> None:
    """All brokers go by a plan that they have; raises Trouble with the names of those that do not."""
    answer = channel.ask("plan", act="use", epoch=epoch, all=True)
    done = {answer["name"], *(name for name, said in answer["others"].items() if said.get("epoch") == epoch)}
    trouble = []
    for broker in sorted(brokers - done):
        try:
            Passed(channel, broker).ask("plan", act="use", epoch=epoch)
        except Trouble as problem:
            trouble.append(f"{broker} ({problem})")
    if trouble:
        raise Trouble(f"plan {epoch} is in force, but not at {', '.join(trouble)}")


def _all(channel: Management) -> dict[str, dict[str, Any]]:
    """What all brokers in reach say of their plans."""
    answer = channel.ask("plan", all=True)
    found = everybody(answer)
    for name in answer["silent"]:
        found[name] = Passed(channel, name).ask("plan")
    return found


def _revert(channel: Management, *, is_dry: bool) -> None:
    brokers = _all(channel)
    now = max(said["epoch"] for said in brokers.values())
    if not now:
        print("no plan is in force")
        return
    involved = {name for name, said in brokers.items() if said["epochs"]}
    common = set.intersection(*(set(brokers[name]["epochs"]) for name in involved))
    before = max((epoch for epoch in common if epoch < now), default=0)
    said = f"plan {before}" if before else "the shortest ways: there is no plan before that all brokers still have"
    if is_dry:
        print(f"--revert would go from plan {now} to {said}")
        return
    _use(channel, before, involved)
    print(f"back from plan {now} to {said}")


@with_blocks
def status(
    *,
    at: RunningBroker,
    as_json: Annotated[bool, typer.Option("--json", help="Print the brokers' answers as JSON.")] = False,
) -> None:
    """Show by which plan running brokers go, and how much goes by it and how much does not."""
    with at.reach() as channel:
        answer = channel.ask("plan", all=True)
    if as_json:
        print(msgspec.json.encode(answer).decode())
        return
    console = Console()
    console.print(_table(shown(answer)))
    if answer["silent"]:
        console.print(f"Not answered within 2 s: {', '.join(shown(answer['silent']))}.", highlight=False, markup=False)


def _table(answer: dict[str, Any]) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("broker")
    table.add_column("plan")
    for heading in ("ways", "topics", *_COUNTED.values()):
        table.add_column(heading, justify="right")
    for name, said in sorted(everybody(answer).items()):
        plan = f"{said['epoch']} {said['plan']}" if said["epoch"] else _NONE
        counts = [f"{said['counts'][what]:,}" for what in _COUNTED]
        table.add_row(name, plan, f"{said['ways']:,}", f"{said['topics']:,}", *counts)
    return table
