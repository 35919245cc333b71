"""``tieline demo --clients``: a broker, real clients, and a picture of what happened between them."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any  # Any: values of JSON

import typer
from rich.console import Console
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from tieline.cli.demo.actors import Actor
from tieline.cli.demo.children import Children, Ready
from tieline.cli.demo.scenes import SCENES, SceneResult, Stage
from tieline.cli.management import Management
from tieline.cli.trouble import FAILED


def show_clients() -> None:
    """Start a broker on a free local port, let real clients (paho, MQTT 3.1.1 and 5) talk, and show what happened.

    Every message is checked; exit code 1 means that something was lost, repeated, out of order or altered.
    """
    console = Console()
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="tieline-demo-") as data, Children(Path(data)) as children:
        ready = _broker(children, Path(data))
        port, ws_port = ready.port("tcp"), ready.port("ws")
        console.print(_cast(port, ws_port))
        stage = Stage(
            port=port,
            ws_port=ws_port,
            sensor=Actor("sensor", port=port, version=4),
            dashboard=Actor("dashboard", port=port, version=5),
        )
        outcomes = []
        for scene in SCENES:
            with console.status(f"{scene.__name__.replace('_', ' ')} …"):
                outcomes.append(scene(stage))
        with Management(Path(data) / "tieline.sock") as management:
            seen = management.ask("top")
        stage.sensor.leave()
        stage.dashboard.leave()
    console.print(_table(outcomes))
    console.print(_verdict(outcomes, seen, time.monotonic() - begun))
    if not _is_right(outcomes, seen):
        raise typer.Exit(FAILED)


def _broker(children: Children, data: Path) -> Ready:
    """A broker in a process of its own, as users run it."""
    listen = ("--listen", "tcp://127.0.0.1:0", "--listen", "ws://127.0.0.1:0")
    words = ("serve", "--name", "demo", "--data", str(data), "--log-level", "warning", *listen)
    return children.start("broker", *words).ready()


def _cast(port: int, ws_port: int) -> Panel:
    """Who talks to whom."""
    lines = (
        ("sensor    3.1.1", "─┐", "", " ┌─▶", "dashboard  5"),
        ("polite    3.1.1", "─┤", "╭───────────────╮", " ├─▶", "worker-0   3.1.1 ┐"),
        ("fragile   3.1.1", "─┼─▶", "│ [bold]tieline demo[/]  │", "─┼─▶", "worker-1   5     ├ $share/team"),
        ("commuter  3.1.1", "─┤", f"│ tcp://…:{port:<6}│", " ├─▶", "worker-2   5     ┘"),
        ("phone     5, ws", "─┘", f"│ ws://…:{ws_port:<7}│", " ├─▶", "latecomer  5"),
        ("", "", "╰───────────────╯", " └─▶", "commuter, phone"),
    )
    grid = Table.grid(padding=(0, 0))
    for style in ("cyan", "dim", "", "dim", "magenta"):
        grid.add_column(style=style, no_wrap=True)
    for left, into, box, out, right in lines:
        grid.add_row(f"{left} ", f"{into:<4}", box, f"{out} ", right)
    return Panel(grid, title="who talks to whom", title_align="left", expand=False, padding=(0, 1))


def _table(outcomes: list[SceneResult]) -> Table:
    table = Table(title="what happened", title_justify="left", title_style="", expand=False)
    table.add_column("scene", style="bold", no_wrap=True)
    table.add_column("story")
    for heading in ("sent", "due", "arrived"):
        table.add_column(heading, justify="right")
    table.add_column("")
    for outcome in outcomes:
        mark = "[green]✓[/]" if _is_good(outcome) else "[bold red]✗[/]"
        numbers = (f"{number:,}" for number in (outcome.sent, outcome.expected, outcome.arrived))
        table.add_row(outcome.title, Text(outcome.story), *numbers, mark)
    return table


def _verdict(outcomes: list[SceneResult], seen: dict[str, Any], took_s: float) -> Panel:
    good = sum(_is_good(outcome) for outcome in outcomes)
    totals = seen.get("totals", {})
    text = Text()
    text.append(f"{good} of {len(outcomes)} scenes as they should be", "green" if good == len(outcomes) else "bold red")
    text.append(
        f"; the broker received {totals.get('received', 0):,} messages, sent {totals.get('sent', 0):,} "
        f"and dropped {totals.get('dropped', 0):,}, in {took_s:.1f} seconds.\n"
    )
    # From a fresh clone the command is not on PATH, and a hint that does not work is none.
    command = "tieline" if shutil.which("tieline") else os.path.relpath(Path(sys.executable).with_name("tieline"))
    text.append("\nNow yours, in three terminals:", "dim")
    for words in ("serve", "sub -t '#' -v", "pub -t hello -m world"):
        text.append(f"\n  {command} {words}", "bold")
    return Panel(text, expand=False)


def _is_good(outcome: SceneResult) -> bool:
    return outcome.is_right and outcome.arrived == outcome.expected


def _is_right(outcomes: list[SceneResult], seen: dict[str, Any]) -> bool:
    return all(map(_is_good, outcomes)) and not seen["totals"]["dropped"]
