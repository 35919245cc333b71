"""``tieline plan watch``: a planner that stands by, and re-plans when what is measured has left the plan."""

from __future__ import annotations

import time
from pathlib import Path
from threading import Timer
from typing import Annotated, Any, Final, Literal  # Any: values of JSON

import msgspec
import typer
from rich.console import Console

from tieline.cli.management import RunningBroker, shown
from tieline.cli.plan.brokers import MOST_S
from tieline.cli.plan.files import sentences
from tieline.cli.plan.importing import Headroom
from tieline.cli.plan.looks import Looks, Outcome, Wishes
from tieline.cli.trouble import Trouble
from tieline.cli.verbs import with_blocks
from tieline.compiling import is_compiled

#: Reasons that are printed, before it says how many more there are.
_MOST: Final = 5
#: Whoever waits for longer than this is told why.
_SLOW_S: Final = 2.0
#: Seconds until a look that has failed is tried again.
_AGAIN_S: Final = 2.0


@with_blocks
def watch(  # one for each option
    *,
    at: RunningBroker,
    every: Annotated[
        float, typer.Option(metavar="SECONDS", help="How long each look counts traffic.", min=0.5, max=MOST_S)
    ] = 10.0,
    least: Annotated[
        float, typer.Option(metavar="SECONDS", help="From one plan to the next at least.", min=0.0)
    ] = 30.0,
    margin: Annotated[
        float,
        typer.Option(
            metavar="PERCENT", help="Of a link's capacity, by which its load may leave the plan.", min=1.0, max=100.0
        ),
    ] = 20.0,
    headroom: Headroom = 10.0,
    moves: Annotated[
        int, typer.Option(metavar="N", help="Flows that may move at a time only because that is cheaper.", min=0)
    ] = 20,
    search: Annotated[
        float, typer.Option(metavar="SECONDS", help="How long to look for a plan at most.", min=0.1, max=600.0)
    ] = 3.0,
    unit: Annotated[
        Literal["bytes", "messages"],
        typer.Option(help="What rates and capacities count, per second; with bytes, links are paced by the plan."),
    ] = "bytes",
    party: Annotated[
        Literal["client", "broker"],
        typer.Option("--per", help="Who asks for a topic: each client, or its broker, once for all of them."),
    ] = "client",
    traffic: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Take traffic from this instance, read anew at each look, such as `tieline pipeline traffic` "
            "writes; else brokers count.",
        ),
    ] = None,
    dry: Annotated[bool, typer.Option("--dry", help="Say what would be done, and change nothing.")] = False,
    times: Annotated[
        int | None, typer.Option(metavar="N", help="End after so many looks; else with Ctrl-C.", min=1)
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print each look as JSON, one line each.")] = False,
) -> None:
    """Stand by, and give running brokers another plan when what is measured has left the one in force.

    One joined broker is enough: it reaches the others. A plan is left when a link is gone, new or other than it was,
    when one would carry too much or something else than planned, and when flows travel that the plan does not know.
    What has to move does, and of the rest a few flows at a time. A plan is applied if it passes the proof for the
    network as it is now and is no worse than what is there. When this command ends, the last plan stays in force.
    """
    wishes = Wishes(
        every_s=every, least_s=least, margin=margin / 100, headroom=headroom / 100, most_moves=moves, search_s=search,
        unit=unit, party=party, traffic=traffic, is_dry=dry,
    )  # fmt: skip
    with sentences():
        _watch(Looks(at, wishes), times, as_json=as_json, every_s=every)


def _watch(looks: Looks, times: int | None, *, as_json: bool, every_s: float) -> None:
    console = Console(stderr=True)
    _make_ready(console)
    console.print(f"watching; a look every {every_s:g} s, Ctrl-C ends it", highlight=False)
    number, has_seen = 0, False
    try:
        while times is None or number < times:
            number += 1
            try:
                outcome = looks.look()
                has_seen = True
            except Trouble as trouble:
                # who cannot be reached at all was not meant; who is away for a while comes back
                if not has_seen or number == times:
                    raise
                outcome = Outcome("failed", f"{str(trouble).rstrip('.')}: nothing was changed")
                time.sleep(_AGAIN_S)
            _tell(number, outcome, as_json=as_json)
    except KeyboardInterrupt:
        console.print("not watching any more: the plan in force stays", highlight=False)


def _make_ready(console: Console) -> None:
    """Compile or load the loops of the search before anything is measured that has to be answered soon."""
    if not is_compiled():
        return
    from tieline.plan.adapt.repair import ready
    from tieline.plan.search.warm import warm

    slow = Timer(_SLOW_S, lambda: console.print("making the search ready, once after an installation", highlight=False))
    slow.daemon = True
    slow.start()
    try:
        ready()
        warm()
    finally:
        slow.cancel()


def _tell(number: int, outcome: Outcome, *, as_json: bool) -> None:
    """Print what a look came to, at once: whoever reads a pipe is waiting for it too."""
    found = outcome.proposal
    if as_json:
        line: dict[str, Any] = {
            "look": number,
            "state": outcome.state,
            "verdict": outcome.verdict,
            "reasons": outcome.reasons,
        }
        if found is not None:
            line |= {
                "checker": outcome.checker,
                "flows_moved": found.moved,
                "flows_left": found.left,
                "shortfall_before": found.shortfall_before,
                "shortfall_after": found.shortfall_after,
                "objective": found.plan.objective,
                "unmet": found.plan.unmet,
                "seconds": round(found.seconds, 4),
                "took_s": round(outcome.took_s, 3),
            }
        print(msgspec.json.encode(line).decode(), flush=True)
        return
    for reason in outcome.reasons[:_MOST]:
        print(f"{time.strftime('%H:%M:%S')}    {shown(reason)}", flush=True)
    if len(outcome.reasons) > _MOST:
        print(f"{time.strftime('%H:%M:%S')}    and {len(outcome.reasons) - _MOST:,} more reasons", flush=True)
    took = "" if found is None else f" ({outcome.checker.split(':')[0]}, {outcome.took_s:.1f} s)"
    print(f"{time.strftime('%H:%M:%S')}  {shown(outcome.verdict)}{took}", flush=True)
