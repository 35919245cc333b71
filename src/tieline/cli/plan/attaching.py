"""``tieline plan clients``: which broker clients should use, and those that allow it are sent there."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any  # Any: values of JSON

import typer
from rich.console import Console
from rich.table import Table

from tieline.cli.management import Management, RunningBroker, Visitor, shown
from tieline.cli.plan.brokers import MOST_S, at_once, survey
from tieline.cli.plan.files import sentences
from tieline.cli.plan.installing import all_brokers, parts_in_force, several
from tieline.cli.plan.network import Passed, everywhere, net_of
from tieline.cli.trouble import MISUSED, Trouble
from tieline.cli.verbs import with_blocks

if TYPE_CHECKING:
    from tieline.plan.attach import ClientMove


@with_blocks
def clients(
    *,
    at: RunningBroker,
    seconds: Annotated[float, typer.Option(metavar="SECONDS", help="How long to watch.", min=0.1, max=MOST_S)] = 10.0,
    most: Annotated[int, typer.Option(metavar="N", help="Clients that may move at a time.", min=1, max=1_000)] = 20,
    move: Annotated[bool, typer.Option("--move", help="Send them there; without it they are only proposed.")] = False,
) -> None:
    """Propose which broker clients should use, so that what they publish and want has shorter ways.

    Clients are considered that say in their MQTT 5 CONNECT that they may be sent elsewhere (user property $move = yes),
    and brokers that say where clients reach them (overlay.reference). With --move such a client gets a DISCONNECT with
    reason 0x9D and that Server Reference; its session follows it.
    """
    with at.reach() as channel, sentences():
        found = _proposed(channel, seconds, most)
        if not found:
            print("no client that may move would have shorter ways at another broker")
            return
        Console().print(_table(found))
        if move:
            sent = sum(_sent(channel, each) for each in found)
            print(f"{several(sent, 'client')} sent to another broker")


def _proposed(channel: Management, seconds: float, most: int) -> list[ClientMove]:
    from tieline.overlay.plans import FRAMED
    from tieline.plan.attach import proposals
    from tieline.plan.in_force import homes
    from tieline.plan.instance import UNLIMITED
    from tieline.plan.reading.running import observed

    answer = net_of(channel)
    if answer is None:
        raise Trouble("this broker is not joined with others: clients have no other place.", code=MISUSED)
    reached = everywhere(channel, answer, capacity=UNLIMITED, in_bytes=True)
    brokers, running = reached.brokers, reached.backbone
    told = dict(
        zip((each.name for each in brokers), at_once(brokers, lambda each: _movable(channel, each.name)), strict=True)
    )
    able = [name for name, (reference, _) in told.items() if reference]
    surveys = survey(brokers, seconds, Visitor())
    instance = observed(surveys, running, name="running", party="client", framed=FRAMED).instance
    where = homes(instance)
    # one that several brokers know has another name in the instance, and stays
    movable = [client for name, (_, ids) in told.items() for client in ids if where.get(client) == name]
    parts = parts_in_force(channel, all_brokers(channel))
    return proposals(instance, where, parts, movable=movable, brokers=able, most=most)


def _movable(channel: Management, broker: str) -> tuple[str, list[str]]:
    """Where clients reach a broker, and those of its own that may move."""
    there, ids = Passed(channel, broker), list[str]()
    while True:
        said: dict[str, Any] = there.ask("plan", act="clients", client=ids[-1] if ids else "")
        ids += said["clients"]
        if not said["more"] or not said["clients"]:
            return said["reference"], ids


def _sent(channel: Management, proposal: ClientMove) -> bool:
    """Whether a client was sent away; one that has gone by itself needs nothing."""
    with suppress(Trouble):
        Passed(channel, proposal.before).ask("plan", act="move", client=proposal.client, to=proposal.after)
        return True
    return False


def _table(found: list[ClientMove]) -> Table:
    table = Table(box=None, pad_edge=False)
    for heading in ("client", "from", "to"):
        table.add_column(heading)
    for heading in ("saves", "relieves"):
        table.add_column(heading, justify="right")
    for each in found:
        names = (shown(each.client), shown(each.before), shown(each.after))
        table.add_row(*names, f"{each.saved:,.0f}", f"{each.relieved:,.0f}")
    return table
