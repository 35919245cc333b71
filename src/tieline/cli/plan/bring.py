"""``tieline plan import``: networks and demands that others describe, as instances."""

from __future__ import annotations

from typing import Annotated

import typer

from tieline.cli.plan.files import instance_line, sentences, write
from tieline.cli.plan.generate import Out, Requests, Seed, Tightness, Topics


def bring(
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE",
            help="GraphML (.graphml), SNDlib's native format (.txt), topohub:NAME, or an instance (.json).",
            show_default=False,
        ),
    ],
    *,
    out: Out,
    seed: Seed = 0,
    tightness: Tightness = 2.0,
    topics: Topics = None,
    requests: Requests = None,
) -> None:
    """Make an instance of a GraphML or SNDlib file, of a topology by name, or of measured traffic.

    SNDlib files hold demands. GraphML files and topologies hold a network only: clients, topics and, where links have
    none, capacities are drawn from the seed. An instance with wildcard subscriptions, such as `tieline pipeline
    traffic` writes, is written again with every subscription expanded.
    """
    with sentences():
        from tieline.plan.reading import document
        from tieline.plan.reading.load import load

        instance = load(source, topics=topics, requests=requests, seed=seed, tightness=tightness)
        write(out, document.render(instance))
    if str(out) != "-":
        print(f"{out}: {instance_line(instance)}")
