"""The options of ``tieline plan import running``, and an instance from the brokers that they name."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer

from tieline.cli.plan.brokers import MOST_S, RunningBroker, survey
from tieline.cli.trouble import MISUSED, Trouble

if TYPE_CHECKING:
    from tieline.cli.over_http import Visitor
    from tieline.plan.instance import Instance

_PANEL: Final = "A running network"

Brokers = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=ADDRESS",
        help="A broker, by the name that the links use, and its management socket, its data directory, or "
        "http(s)://HOST:PORT. NAME alone is the broker on this machine with this --name. Repeatable.",
        rich_help_panel=_PANEL,
    ),
]
Links = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="The links between the brokers: a table (.csv) of a, b, capacity, cost; the network file of `tieline "
        "pipeline traffic`; or what SOURCE may be.",
        rich_help_panel=_PANEL,
    ),
]
Capacity = Annotated[
    float | None,
    typer.Option(
        metavar="RATE", help="Of links whose file does not say it; else no limit.", min=0.0, rich_help_panel=_PANEL
    ),
]
Seconds = Annotated[
    float, typer.Option(metavar="SECONDS", help="How long to watch.", min=0.1, max=MOST_S, rich_help_panel=_PANEL)
]
Unit = Annotated[
    Literal["bytes", "messages"],
    typer.Option(help="What rates count, and capacities, per second.", rich_help_panel=_PANEL),
]
Party = Annotated[
    Literal["client", "broker"],
    typer.Option(
        "--per",
        help="Who asks for a topic: each client, or its broker, once for all of them.",
        rich_help_panel=_PANEL,
    ),
]
Name = Annotated[str, typer.Option(metavar="NAME", help="What the instance is called.", rich_help_panel=_PANEL)]
User = Annotated[
    str | None, typer.Option(metavar="NAME", help="The user for brokers over HTTP.", rich_help_panel=_PANEL)
]
PasswordFile = Annotated[
    Path | None, typer.Option(metavar="FILE", help="A file with the user's password.", rich_help_panel=_PANEL)
]
CaFile = Annotated[
    Path | None,
    typer.Option("--cafile", metavar="FILE", help="PEM file with the authorities to trust.", rich_help_panel=_PANEL),
]


def watched(
    written: Sequence[str],
    links: str | None,
    capacity: float | None,
    seconds: float,
    visitor: Visitor,
    *,
    name: str,
    unit: Literal["bytes", "messages"],
    party: Literal["client", "broker"],
) -> Instance:
    """The instance of brokers that run; what it cannot show is told on standard error."""
    from tieline.plan.instance import UNLIMITED
    from tieline.plan.reading.backbone import backbone, unlinked
    from tieline.plan.reading.running import observed

    brokers = [RunningBroker.read(text) for text in written]
    names = [broker.name for broker in brokers]
    if not brokers:
        raise Trouble("which brokers? Add --broker NAME=ADDRESS, once for each.", code=MISUSED)
    for number, one in enumerate(names):
        if one in names[:number]:
            raise Trouble(f"two brokers are called {one}.", code=MISUSED)
    # before the brokers are watched, so that a mistake in the file is told at once
    spine = unlinked(names)
    if links is not None:
        spine = backbone(links, names, capacity=UNLIMITED if capacity is None else capacity)
    surveys = survey(brokers, seconds, visitor)
    if not any(one.flows for one in surveys):
        raise Trouble(f"nothing was published at {', '.join(names)} in {seconds:g} s; watch for longer with --seconds.")
    found = observed(surveys, spine, name=name, unit=unit, party=party)
    for note in found.notes:
        print(f"tieline: {note}.", file=sys.stderr)
    if not spine.links and len(names) > 1:
        print("tieline: nothing is known of links between the brokers: add --links.", file=sys.stderr)
    return found.instance
