"""``tieline plan agree``: brokers agree on a plan among themselves, and this only looks on."""

from __future__ import annotations

import time
from typing import Annotated, Any, Final  # Any: values of JSON

import typer

from tieline.cli.management import Management, RunningBroker, shown
from tieline.cli.plan.brokers import MOST_S
from tieline.cli.plan.installing import several
from tieline.cli.plan.network import everybody
from tieline.cli.trouble import Trouble
from tieline.cli.verbs import with_blocks

_LOOK_S: Final = 0.5
#: How long after its time a round may be over at the last broker.
_GRACE_S: Final = 15.0


@with_blocks
def agree(
    *,
    at: RunningBroker,
    seconds: Annotated[
        float, typer.Option(metavar="SECONDS", help="How long all brokers count traffic.", min=0.1, max=MOST_S)
    ] = 10.0,
    within: Annotated[
        float,
        typer.Option(
            metavar="SECONDS",
            help="How long they agree then. A link should be crossed in a 600th of it.",
            min=1.0,
            max=MOST_S,
        ),
    ] = 30.0,
    headroom: Annotated[
        float, typer.Option(metavar="PERCENT", help="Of each link, what is left free.", min=0.0, max=90.0)
    ] = 10.0,
) -> None:
    """Have joined brokers agree on a plan among themselves: none of them knows the whole network, and nobody decides.

    They count what they have to carry, then offer topics to their neighbours, ask prices for full links, and go by what
    they have agreed on. No planner and no extra is needed. Where a link is lost meanwhile, the plan before stays. Exit
    code 1: there was no agreement.
    """
    with at.reach() as channel:
        epoch = channel.ask("plan", act="agree", count_s=seconds, agree_s=within, headroom=headroom / 100)["agreeing"][
            "epoch"
        ]
        brokers = _wait(channel, epoch, seconds + 1.2 * within + _GRACE_S)
    told = [said["agreeing"] for said in brokers.values()]
    wanted, unserved = (sum(each[what] for each in told) for what in ("requests", "unserved"))
    sent = sum(each["bytes"] for each in told)
    ways = sum(said["ways"] for said in brokers.values())
    print(
        f"plan {epoch} is in force at {len(brokers):,} brokers: {several(ways, 'way')}, {wanted - unserved:,} of "
        f"{several(wanted, 'request')} have room; {sent / 1_000:,.1f} kB were told for it"
    )


def _wait(channel: Management, epoch: int, most_s: float) -> dict[str, dict[str, Any]]:
    """What all brokers say once they go by what was agreed; raises Trouble if they do not."""
    end = time.monotonic() + most_s
    while True:
        here = channel.ask("plan")["agreeing"]
        if here["epoch"] == epoch and here["state"] == "abandoned":
            raise Trouble(f"there is no agreement, and the plan before stays: {shown(here['why'])}.")
        if here["state"] == "in force" or time.monotonic() > end:
            brokers = everybody(channel.ask("plan", all=True))
            late = sorted(name for name, said in brokers.items() if said["epoch"] != epoch)
            if not late:
                return brokers
            if time.monotonic() > end:
                raise Trouble(f"plan {epoch} is not in force at {', '.join(map(shown, late))}.")
        time.sleep(_LOOK_S)
