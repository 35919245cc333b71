"""``tieline plan import``: networks and demands that others describe, or that run, as instances."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer

from tieline.cli.management import Visitor, password_in
from tieline.cli.plan.brokers import MOST_S, RunningBroker, survey
from tieline.cli.plan.files import instance_line, sentences, write
from tieline.cli.plan.generate import Out, Requests, Seed, Tightness, Topics
from tieline.cli.plan.network import networked
from tieline.cli.trouble import MISUSED, Trouble
from tieline.net.running import running

if TYPE_CHECKING:
    from tieline.plan.instance import Instance
    from tieline.plan.reading.backbone import Backbone

#: In place of a file: brokers that run.
RUNNING: Final = "running"
_FOR_FILES: Final = frozenset({"seed", "tightness", "topics", "requests"})
_FOR_BOTH: Final = frozenset({"source", "out"})
_PANEL: Final = "A running network"

Brokers = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=ADDRESS",
        help="A broker, by the name that the links use, and its management socket, its data directory, or "
        "http(s)://HOST:PORT. NAME alone is the broker on this machine with this --name. Repeatable; without it the "
        "only broker that runs on this machine.",
        rich_help_panel=_PANEL,
    ),
]
Links = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="The links between the brokers, in the place of what they know themselves: a table (.csv) of a, b, "
        "capacity, cost; the network file of `tieline pipeline traffic`; or what SOURCE may be.",
        rich_help_panel=_PANEL,
    ),
]
Capacity = Annotated[
    float | None,
    typer.Option(
        metavar="RATE", help="Of links whose file does not say it; else no limit.", min=0.0, rich_help_panel=_PANEL
    ),
]
Headroom = Annotated[
    float,
    typer.Option(
        metavar="PERCENT",
        help="Of the capacities that brokers say, what is left free for acknowledgements and uneven traffic.",
        min=0.0,
        max=90.0,
        rich_help_panel=_PANEL,
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


def named(written: Sequence[str]) -> list[RunningBroker]:
    """The brokers that a user has written down, each once; where only one runs here, nobody has to."""
    brokers = [RunningBroker.read(text) for text in written] or [_only()]
    names = [broker.name for broker in brokers]
    for number, one in enumerate(names):
        if one in names[:number]:
            raise Trouble(f"two brokers are called {one}.", code=MISUSED)
    return brokers


def _only() -> RunningBroker:
    found = running()
    if len(found) == 1:
        return RunningBroker(found[0].name, found[0].socket)
    here = f"{len(found)} run here ({', '.join(note.name for note in found)})" if found else "none runs here"
    raise Trouble(f"which broker? Add --broker NAME=ADDRESS; one that is joined is enough: {here}.", code=MISUSED)


def linked(  # what is given, and what is asked for
    opened: ExitStack,
    brokers: list[RunningBroker],
    links: str | None,
    visitor: Visitor,
    *,
    capacity: float | None,
    headroom: float,
    unit: Literal["bytes", "messages"],
) -> tuple[list[RunningBroker], Backbone]:
    """The brokers with the links between them, those of a file or topology or else as they say it themselves."""
    from tieline.plan.instance import UNLIMITED
    from tieline.plan.reading.backbone import backbone
    from tieline.plan.reading.joined import with_headroom

    room = UNLIMITED if capacity is None else capacity
    if links is None:
        brokers, found = networked(opened, brokers, visitor, capacity=room, in_bytes=unit == "bytes")
        return brokers, with_headroom(found, headroom / 100)
    return brokers, backbone(links, [broker.name for broker in brokers], capacity=room)


def watched(
    brokers: Sequence[RunningBroker],
    spine: Backbone,
    seconds: float,
    visitor: Visitor,
    *,
    name: str,
    unit: Literal["bytes", "messages"],
    party: Literal["client", "broker"],
) -> Instance:
    """The instance of brokers that run; what it cannot show is told on standard error."""
    from tieline.overlay.plans import FRAMED
    from tieline.plan.reading.running import observed

    surveys = survey(brokers, seconds, visitor)
    if not any(one.flows for one in surveys):
        names = ", ".join(broker.name for broker in brokers)
        raise Trouble(f"nothing was published at {names} in {seconds:g} s; watch for longer with --seconds.")
    found = observed(surveys, spine, name=name, unit=unit, party=party, framed=FRAMED)
    for note in found.notes:
        print(f"tieline: {note}.", file=sys.stderr)
    if not spine.links and len(brokers) > 1:
        print("tieline: nothing is known of links between the brokers: add --links.", file=sys.stderr)
    return found.instance


def import_(  # one for each option
    context: typer.Context,
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE",
            help="GraphML (.graphml), SNDlib's native format (.txt), topohub:NAME, an instance (.json), or `running`.",
            show_default=False,
        ),
    ],
    *,
    out: Out,
    seed: Seed = 0,
    tightness: Tightness = 2.0,
    topics: Topics = None,
    requests: Requests = None,
    broker: Brokers = None,
    links: Links = None,
    capacity: Capacity = None,
    headroom: Headroom = 10.0,
    seconds: Seconds = 10.0,
    unit: Unit = "bytes",
    party: Party = "client",
    name: Name = RUNNING,
    user: User = None,
    password_file: PasswordFile = None,
    cafile: CaFile = None,
) -> None:
    """Make an instance of a GraphML or SNDlib file, of a topology by name, of measured traffic, or of running brokers.

    SNDlib files hold demands. GraphML files and topologies hold a network only: clients, topics and, where links have
    none, capacities are drawn from the seed. An instance with wildcard subscriptions, such as `tieline pipeline
    traffic` writes, is written again with every subscription expanded.

    `running` watches brokers for a while: who publishes how much to which topic, and who subscribes to what. Wildcards
    are expanded against the topics of all of them. One joined broker is enough: it reaches the others, and they know
    the links between them, with the capacities that are configured. --links says it in their place.
    """
    _refuse_others(context, is_running=source == RUNNING)
    with sentences():
        from tieline.plan.reading import document
        from tieline.plan.reading.load import load

        if source == RUNNING:
            visitor = Visitor(user, password_in(password_file), cafile)
            with ExitStack() as opened:
                # before the brokers are watched, so that a mistake in the file is told at once
                brokers, spine = linked(
                    opened, named(broker or ()), links, visitor, capacity=capacity, headroom=headroom, unit=unit
                )
                instance = watched(brokers, spine, seconds, visitor, name=name, unit=unit, party=party)
        else:
            instance = load(source, topics=topics, requests=requests, seed=seed, tightness=tightness)
        write(out, document.render(instance))
    if str(out) != "-":
        print(f"{out}: {instance_line(instance)}")


def _refuse_others(context: typer.Context, *, is_running: bool) -> None:
    """An option that would not be looked at is a mistake."""
    for parameter in context.command.params:
        name = parameter.name or ""
        given = context.get_parameter_source(name)
        if given is None or given.name != "COMMANDLINE" or name in _FOR_BOTH:
            continue
        if is_running == (name in _FOR_FILES):
            what = "files" if is_running else f"`{RUNNING}`"
            raise Trouble(f"{parameter.opts[0]} cannot be given here: it is for {what}.", code=MISUSED)
