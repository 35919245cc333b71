"""``tieline plan solve``: the best plan in the time, how far from optimal it can be, and nothing that is not proven."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console

from tieline.cli.plan.files import InstanceFile, instance_in, sentences, write
from tieline.cli.trouble import MISUSED, Trouble

Method = Literal["auto", "mip", "lagrangian", "annealing", "lns", "distributed"]
Model = Literal["f1", "f1-paper", "f1d", "f2", "f2-paper", "tb", "tb-paper"]

Seconds = Annotated[float | None, typer.Option(metavar="S", min=0.01, help="Stop after so many seconds.")]
Seed = Annotated[int, typer.Option(metavar="NUMBER", min=0, help="Where chance comes from.")]


def solve(
    file: InstanceFile,
    *,
    method: Annotated[Method, typer.Option(help="How to look for a plan; auto chooses by size.")] = "auto",
    model: Annotated[Model | None, typer.Option(help="The formulation that mip solves.")] = None,
    seconds: Seconds = None,
    seed: Seed = 0,
    json: Annotated[
        Path | None, typer.Option("--json", metavar="OUT", help="Write the plan there; - is standard output.")
    ] = None,
) -> None:
    """Find a plan: for every topic a tree, so that as many requests as possible are served at the least cost.

    Ctrl-C stops and returns the best plan so far. Every plan has passed the proof before it is printed. Without
    --seconds, small instances are solved to the end, and large ones are searched for half a minute.
    """
    if model is not None and method not in ("auto", "mip"):
        raise Trouble(f"--model is for --method mip; {method} has no formulation to choose.", code=MISUSED)
    with sentences():
        from tieline.cli.plan.progress import Display, stoppable
        from tieline.cli.plan.words import busiest, result, unmet
        from tieline.plan import plan as plans
        from tieline.plan.proof import proven
        from tieline.plan.solve import solve as solved

        instance = instance_in(file)
        with stoppable() as stop, Display() as display:
            try:
                plan = solved(
                    instance,
                    method="mip" if model is not None else method,
                    model=model,
                    seconds=seconds,
                    seed=seed,
                    watch=display.tell,
                    stop=stop,
                )
            except ValueError as error:
                raise Trouble(f"{error}.", code=MISUSED) from None
        plan = proven(instance, plan)
        content = plans.render(plan)
    if json is not None:
        write(json, content)
        if str(json) == "-":
            return
    console = Console()
    for table in (result(instance, plan), busiest(instance, plan), unmet(plan)):
        if table is not None:
            console.print(table)
            console.print()
    if json is not None:
        console.print(f"written to {json}", highlight=False, markup=False, soft_wrap=True)
