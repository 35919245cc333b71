"""``tieline plan import``: networks and demands that others describe, or that run, as instances."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from tieline.cli.over_http import Visitor
from tieline.cli.pipeline.sources import password_in
from tieline.cli.plan import running
from tieline.cli.plan.files import instance_line, sentences, write
from tieline.cli.plan.generate import Out, Requests, Seed, Tightness, Topics
from tieline.cli.trouble import MISUSED, Trouble

#: In place of a file: brokers that run.
RUNNING: Final = "running"
_FOR_FILES: Final = frozenset({"seed", "tightness", "topics", "requests"})
_FOR_BOTH: Final = frozenset({"source", "out"})


def bring(
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
    broker: running.Brokers = None,
    links: running.Links = None,
    capacity: running.Capacity = None,
    seconds: running.Seconds = 10.0,
    unit: running.Unit = "bytes",
    party: running.Party = "client",
    name: running.Name = RUNNING,
    user: running.User = None,
    password_file: running.PasswordFile = None,
    cafile: running.CaFile = None,
) -> None:
    """Make an instance of a GraphML or SNDlib file, of a topology by name, of measured traffic, or of running brokers.

    SNDlib files hold demands. GraphML files and topologies hold a network only: clients, topics and, where links have
    none, capacities are drawn from the seed. An instance with wildcard subscriptions, such as `tieline pipeline
    traffic` writes, is written again with every subscription expanded.

    `running` watches brokers for a while: who publishes how much to which topic, and who subscribes to what. Wildcards
    are expanded against the topics of all of them. No broker knows what the links between them carry: --links says it.
    """
    _refuse_others(context, is_running=source == RUNNING)
    with sentences():
        from tieline.plan.reading import document
        from tieline.plan.reading.load import load

        if source == RUNNING:
            visitor = Visitor(user, password_in(password_file), cafile)
            instance = running.watched(
                broker or (), links, capacity, seconds, visitor, name=name, unit=unit, party=party
            )
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
