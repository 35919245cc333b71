"""``tieline top``: watch a running broker through its management socket."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from rich.console import Console, RenderableType
from rich.live import Live

from tieline.cli.frame import Snapshot, render
from tieline.cli.management import Management
from tieline.cli.trouble import Trouble
from tieline.conf.paths import management_socket
from tieline.conf.schema import Settings

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def top(
    *,
    data: Annotated[Path | None, typer.Option(metavar="DIR", help="The broker's --data directory.")] = None,
    name: Annotated[
        str, typer.Option(metavar="NAME", help="The broker's --name, if it has no data directory.")
    ] = Settings().name,
    socket: Annotated[Path | None, typer.Option(metavar="PATH", help="The management socket itself.")] = None,
    once: Annotated[bool, typer.Option("--once", help="Print one frame and stop.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the broker's answer as JSON, one line each.")] = False,
    every: Annotated[float, typer.Option(metavar="SECONDS", help="Seconds between frames.", min=0.1, max=3600)] = 1.0,
) -> None:
    """Watch a running broker: rates, slow clients, drops. Ends with Ctrl-C."""
    path = socket or management_socket(str(data) if data is not None else None, name)
    with Management(path) as broker:
        if as_json:
            _print_json(broker, once=once, every_s=every)
        elif once:
            # A pipe has no width; whoever reads it has room for a whole row.
            console = Console() if sys.stdout.isatty() else Console(width=120)
            console.print(_frame(broker.ask("top")))
        else:
            _watch(broker, every_s=every)


def _print_json(broker: Management, *, once: bool, every_s: float) -> None:
    while True:
        print(json.dumps(broker.ask("top")), flush=True)
        if once:
            return
        time.sleep(every_s)


def _watch(broker: Management, *, every_s: float) -> None:
    try:
        with Live(_frame(broker.ask("top")), auto_refresh=False, screen=Console().is_terminal) as live:
            while True:
                time.sleep(every_s)
                live.update(_frame(broker.ask("top")), refresh=True)
    except KeyboardInterrupt:
        return


def _frame(answer: dict[str, Any]) -> RenderableType:
    try:
        return render(msgspec.convert(answer, Snapshot))
    except msgspec.ValidationError as problem:
        raise Trouble(f"the broker's answer cannot be read; is it of another version? ({problem})") from None
