"""``tieline plan generate``: instances from a seed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec
import typer

from tieline.cli.plan.files import instance_line, sentences, write
from tieline.cli.trouble import MISUSED, Trouble

Size = Annotated[
    str,
    typer.Argument(
        metavar="SIZE",
        help="tiny, case2, case3, res0, res4, res5 or res7 of the paper; a number of nodes for a mesh; topohub:NAME.",
        show_default=False,
    ),
]
Tightness = Annotated[
    float, typer.Option(metavar="FACTOR", help="Capacity: 2 is loose, 1 is tight, less leaves requests unmet.")
]
Topics = Annotated[int | None, typer.Option(metavar="COUNT", min=1, help="Topics; else one for every four nodes.")]
Requests = Annotated[int | None, typer.Option(metavar="COUNT", min=1, help="Requests; else three for every topic.")]
Seed = Annotated[int, typer.Option(metavar="NUMBER", min=0, help="The same seed makes the same instance.")]
Out = Annotated[Path, typer.Option("--out", metavar="FILE", help="Where to write it; - is standard output.")]


def generate(  # one for each option
    size: Size,
    *,
    out: Out = Path("-"),
    seed: Seed = 0,
    tightness: Tightness = 2.0,
    topics: Topics = None,
    requests: Requests = None,
    degree: Annotated[
        float | None,
        typer.Option(metavar="NUMBER", min=1.0, help="Links of a mesh's broker to others, on average; else 6."),
    ] = None,
    unmet_cost: Annotated[
        float | None,
        typer.Option(metavar="COST", min=0.0, help="Price of an unmet request; else serving comes first."),
    ] = None,
    classes: Annotated[bool, typer.Option("--classes", help="Topics of a mesh get classes 0 to 3 at random.")] = False,
) -> None:
    """Make an instance: one of the paper's sizes, a geometric mesh of any size, or a real topology with clients."""
    with sentences():
        from tieline.plan.generate.testset import SIZES, mesh, paper
        from tieline.plan.reading import document
        from tieline.plan.reading.load import TOPOLOGY, load

        try:
            if size in SIZES:
                _refuse("the paper's sizes have their own", topics=topics, requests=requests, degree=degree)
                _refuse("the paper knows none", classes=classes or None)
                instance = paper(size, seed=seed, tightness=tightness, unmet_cost=unmet_cost)
            elif size.startswith(TOPOLOGY):
                _refuse("it is for meshes", degree=degree, classes=classes or None)
                instance = load(size, topics=topics, requests=requests, seed=seed, tightness=tightness)
                instance = msgspec.structs.replace(instance, unmet_cost=unmet_cost)
            else:
                nodes = _nodes(size)
                topics = max(1, nodes // 4) if topics is None else topics
                instance = mesh(
                    nodes,
                    topics=topics,
                    requests=3 * topics if requests is None else requests,
                    seed=seed,
                    tightness=tightness,
                    degree=6.0 if degree is None else degree,
                    unmet_cost=unmet_cost,
                    classes=classes,
                )
        except ValueError as error:
            raise Trouble(f"{error}.", code=MISUSED) from None
        write(out, document.render(instance))
    if str(out) != "-":
        print(f"{out}: {instance_line(instance)}")


def _refuse(why: str, **options: object) -> None:
    for name, value in options.items():
        if value is not None:
            raise Trouble(f"--{name} cannot be given here: {why}.", code=MISUSED)


def _nodes(size: str) -> int:
    from tieline.plan.generate.testset import SIZES

    if not size.isdecimal() or int(size) < 4:
        raise Trouble(
            f"{size} is no size: {', '.join(SIZES)}, a number of nodes from 4 on, or topohub:NAME.", code=MISUSED
        )
    return int(size)
