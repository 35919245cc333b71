"""``tieline drain``: empties a joined broker for maintenance, and says what is left of it."""

from __future__ import annotations

import json
import time
from typing import Annotated, Any, Final  # Any: values of JSON

import typer

from tieline.cli.management import RunningBroker, shown
from tieline.cli.terminal import size
from tieline.cli.trouble import FAILED
from tieline.cli.verbs import new_app, with_blocks

_EVERY_S: Final = 0.5

app = new_app()


@app.command()
@with_blocks
def drain(
    *,
    at: RunningBroker,
    stop: Annotated[bool, typer.Option("--stop", help="Let clients in again; what is left stays.")] = False,
    within: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="Give up waiting after this; the broker goes on.", min=0)
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print what is left as JSON, one line each time.")] = False,
) -> None:
    """Empty a running broker that is joined with others: no client is let in, and sessions move to other brokers.

    Clients are told to use another server, and which one if other brokers say where they are (overlay.reference). What
    is left is printed until nothing is; then the broker may be ended without loss. Exit code 1: something was left when
    the time was over, or somebody has stopped it.
    """
    with at.reach() as broker:
        if stop:
            answer = shown(broker.ask("drain", stop=True))
            print(f"the broker lets clients in again; it has {answer['sessions']} sessions")
            return
        deadline = None if within is None else time.monotonic() + within
        answer = shown(broker.ask("drain", begin=True))
        last = ""
        while True:
            line = json.dumps(answer) if as_json else render(answer)
            if line != last:
                print(line, flush=True)
                last = line
            if answer["is_done"]:
                return
            is_late = deadline is not None and time.monotonic() >= deadline
            if is_late or not answer["is_draining"]:
                raise typer.Exit(FAILED)
            time.sleep(_EVERY_S)
            answer = shown(broker.ask("drain"))


def render(answer: dict[str, Any]) -> str:
    """What is left, in a sentence."""
    if not answer["is_draining"]:
        return "the broker is not drained any more: somebody has stopped it"
    if answer["is_done"]:
        return "nothing is left: the broker may be ended"
    left = f"{answer['connections']} connections, {answer['sessions']} sessions"
    left += f", {answer['leaving']} on their way, {size(answer['owed_bytes'])} owed to other brokers"
    return left if answer["others"] else f"{left}; no other broker is in reach"
