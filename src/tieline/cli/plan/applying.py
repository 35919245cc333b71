"""``tieline plan apply`` and ``tieline plan status``: a plan becomes what running brokers go by, and how that goes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal  # Any: values of JSON

import msgspec
import typer
from rich.console import Console
from rich.table import Table

from tieline.cli.management import RunningBroker, shown
from tieline.cli.plan.files import instance_in, proven_plan_in, sentences
from tieline.cli.plan.installing import (
    all_brokers,
    check_against,
    check_brokers,
    install,
    parts_in_force,
    running_network,
    several,
    sums,
    use,
)
from tieline.cli.plan.network import everybody
from tieline.cli.plan.words import moved, moved_loads, movement
from tieline.cli.terminal import duration
from tieline.cli.trouble import MISUSED, Trouble
from tieline.cli.verbs import with_blocks

if TYPE_CHECKING:
    from tieline.cli.management import Management

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
#: How the file of a plan is called whose instance stands beside it.
_PLAN: Final = ".plan.json"
_USAGE: Final = "name an instance and its plan, or NAME.plan.json beside its NAME.json, or --revert."


@with_blocks
def apply(
    file: Annotated[
        str | None,
        typer.Argument(
            metavar="FILE",
            help="The instance that was planned; or NAME.plan.json alone, with NAME.json beside it.",
            show_default=False,
        ),
    ] = None,
    plan: Annotated[
        Path | None, typer.Argument(metavar="PLAN", help="The plan, as `solve --json` writes it.", show_default=False)
    ] = None,
    *,
    at: RunningBroker,
    dry: Annotated[
        bool, typer.Option("--dry", help="Check everything, show what would move, and change nothing.")
    ] = False,
    revert: Annotated[
        bool, typer.Option("--revert", help="Go by the plan before, or by none if it was the first.")
    ] = False,
    unit: Annotated[
        Literal["bytes", "messages"],
        typer.Option(help="What rates and capacities count, per second; with bytes, links are paced by the plan."),
    ] = "bytes",
) -> None:
    """Let running brokers go by a plan: what it covers travels over the links that it has chosen.

    One joined broker is enough: it reaches the others. The plan has to be true for the network as it is now; if it is
    not, the one before stays. All brokers get their part before any of them goes by it; what is under way goes on by
    the plan that it began with.
    """
    if revert != (file is None):
        raise Trouble(_USAGE, code=MISUSED)
    files = None if file is None else _files(file, plan)
    with at.reach() as channel, sentences():
        if files is None:
            _revert(channel, is_dry=dry)
        else:
            _apply(channel, *files, is_dry=dry, in_bytes=unit == "bytes")


def _files(file: str, plan: Path | None) -> tuple[str, Path]:
    """The instance and its plan; a plan alone stands beside its instance, as net.plan.json beside net.json."""
    if plan is not None:
        return file, plan
    if not file.endswith(_PLAN):
        raise Trouble(_USAGE, code=MISUSED)
    return f"{file.removesuffix(_PLAN)}.json", Path(file)


def _apply(channel: Management, file: str, plan_file: Path, *, is_dry: bool, in_bytes: bool) -> None:
    from tieline.plan.in_force import InForce, homes
    from tieline.plan.reading.joined import with_links
    from tieline.plan.tables import parts

    instance = instance_in(file)
    plan = proven_plan_in(instance, plan_file)
    running = running_network(channel, in_bytes=in_bytes)
    check_against(running, instance, plan)
    told = parts(instance, plan, is_paced=in_bytes)
    brokers = all_brokers(channel)
    concerned = check_brokers(brokers, told)
    network, at = with_links(instance, running), homes(instance, plan.routes)
    before, after = InForce(network, at, parts_in_force(channel, brokers)), InForce(network, at, told)
    name, many = plan.instance, several(len(concerned), "broker")
    if is_dry:
        print(f"{name} can be applied to {many}: {sums(told)}; {movement(before, after)}")
        for table in (moved(before, after), moved_loads(before, after)):
            if table is not None:
                Console().print("", table, sep="\n")
        return
    epoch = install(channel, brokers, concerned, name)
    print(f"{name} is in force at {many}, as plan {epoch}: {sums(told)}; {movement(before, after)}")


def _revert(channel: Management, *, is_dry: bool) -> None:
    brokers = all_brokers(channel)
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
    use(channel, before, involved)
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
    planner = shown(answer["planner"])
    if planner is not None:
        said = f"The planner, {duration(planner['age_s'])} ago: {planner['verdict']}."
        console.print(said, highlight=False, markup=False)
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
