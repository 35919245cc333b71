"""``tieline plan draw``: the network and what flows through it, as a picture."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tieline.cli.plan.files import InstanceFile, instance_in, proven_plan_in, sentences
from tieline.cli.plan.naming import topic_named
from tieline.cli.trouble import MISUSED, Trouble

#: What pictures may be.
FORMATS = (".svg", ".png", ".pdf")


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
