"""``tieline plan draw`` and ``compare``: a network and what flows through it, and all methods on one instance."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from tieline.cli.plan.files import InstanceFile, instance_in, proven_plan_in, sentences, topic_named, write
from tieline.cli.plan.solve import Seed
from tieline.cli.trouble import MISUSED, Trouble

if TYPE_CHECKING:
    from tieline.plan.compare import MethodResult

#: What pictures may be.
FORMATS = (".svg", ".png", ".pdf")
#: Letters of a line where nobody's terminal is known.
_WIDTH = 120
#: In the order of the table: what we ship, exact, the paper's, distributed.
METHODS = ("auto", "lns", "mip", "lagrangian", "annealing", "distributed")


def draw(
    file: InstanceFile,
    plan: Annotated[
        Path | None, typer.Argument(metavar="[PLAN]", help="A plan for it; without one, the bare network.")
    ] = None,
    *,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="PICTURE", help="The picture, .svg, .png or .pdf; else NAME.svg.")
    ] = None,
    topic: Annotated[
        str | None, typer.Option(metavar="TOPIC", help="Only this topic's tree, with arrows; ID, or ID@SOURCE.")
    ] = None,
) -> None:
    """Draw a network, or a plan: links as wide as their load, coloured by the capacity in use, unmet requests marked.

    Nodes stand at their own places if the instance has some, else where distances in the network suggest.
    """
    with sentences():
        from tieline.plan.draw.network import draw as drawn

        instance = instance_in(file)
        found = None if plan is None else proven_plan_in(instance, plan)
        if topic is not None and found is None:
            raise Trouble("--topic needs a PLAN: without one nothing travels.", code=MISUSED)
        picked = None if topic is None else topic_named(instance, topic).key
        path = picture_path(out, f"{instance.name.replace('/', '-')}.svg")
        try:
            drawn(instance, found, path, topic=picked)
        except OSError as error:
            raise Trouble(f"{path}: {error.strerror or error}") from None
    print(f"drawn: {path}")


def picture_path(out: Path | None, otherwise: str) -> Path:
    """Where a picture goes; its suffix says what it will be."""
    path = Path(otherwise) if out is None else out
    if path.suffix not in FORMATS:
        raise Trouble(f"{path}: a picture's name ends in {', '.join(FORMATS)}.", code=MISUSED)
    return path


def compare(
    file: InstanceFile,
    *,
    seconds: Annotated[float, typer.Option(metavar="S", min=0.01, help="The most that each method may take.")] = 10.0,
    seed: Seed = 0,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="PICTURE", help="A picture of it: .svg, .png or .pdf.")
    ] = None,
    json: Annotated[
        Path | None, typer.Option("--json", metavar="OUT", help="Write the figures there; - is standard output.")
    ] = None,
) -> None:
    """Let every method solve an instance, and hold each against the best bound that any of them found.

    Ctrl-C ends the method that is at work, and goes on with the next.
    """
    path = None if out is None else picture_path(out, "")
    with sentences():
        from tieline.cli.plan.progress import Display, stoppable
        from tieline.plan.compare import draw_comparison, rendered, results
        from tieline.plan.proof import proven
        from tieline.plan.solve import solve

        instance = instance_in(file)
        plans = {}
        for method in METHODS:
            with stoppable() as stop, Display(method) as display:
                plans[method] = proven(
                    instance,
                    solve(instance, method=method, seconds=seconds, seed=seed, watch=display.tell, stop=stop),
                )
        found = results(plans)
        if path is not None:
            draw_comparison(instance.name, found, path)
        if json is not None:
            write(json, rendered(instance.name, found))
            if str(json) == "-":
                return
    console = Console()
    if not console.is_terminal:
        console = Console(width=_WIDTH)
    console.print(_table(found))
    if path is not None:
        console.print(f"drawn: {path}", highlight=False, markup=False, soft_wrap=True)


def _table(results: list[MethodResult]) -> Table:
    from tieline.cli.plan.words import amount, share

    table = Table("method", "objective", "unmet", "cost", "own bound", "gap to best bound", "seconds", "status")
    for column in table.columns[1:-1]:
        column.justify = "right"
    for result in results:
        plan = result.plan
        table.add_row(
            result.method,
            amount(plan.objective),
            f"{plan.unmet:,}",
            amount(plan.cost),
            amount(plan.bound),
            share(result.gap),
            f"{plan.seconds:.2f}",
            plan.status + (f", {plan.notes['messages']:,.0f} messages" if "messages" in plan.notes else ""),
        )
    return table
