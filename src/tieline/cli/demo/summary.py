"""The last thing that is printed: what was claimed, what was seen, and where the report is."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from tieline.cli.demo.checks import Check
from tieline.cli.demo.play import Wishes
from tieline.cli.demo.show import Show


def summary(show: Show, checks: list[Check], wishes: Wishes, missing: str | None) -> RenderableType:
    """The checks as a table, the operator's waits by class, and a sentence."""
    table = Table(title="what was checked", title_justify="left", title_style="", expand=False)
    table.add_column("claim", style="bold", no_wrap=True)
    table.add_column("seen")
    table.add_column("")
    for check in checks:
        table.add_row(check.title, Text(check.story), "[green]✓[/]" if check.is_good else "[bold red]✗[/]")
    return Group(show.waits(), Text(), table, _verdict(show, checks, wishes, missing))


def _verdict(show: Show, checks: list[Check], wishes: Wishes, missing: str | None) -> Panel:
    good = sum(check.is_good for check in checks)
    text = Text()
    text.append(f"{good} of {len(checks)} claims hold", "green" if good == len(checks) else "bold red")
    text.append(f", in {show.elapsed():.0f} seconds.")
    if missing is not None:
        text.append(f"\nLeft out, because Spark cannot run here: the tables and the report. {missing}", "bold red")
    elif not wishes.with_spark:
        text.append("\nLeft out, as asked: the tables and the report.", "dim")
    elif wishes.report.is_file():
        text.append("\nThe report: ")
        text.append(str(wishes.report), "bold")
    text.append("\n\nNow yours:", "dim")
    for words in (
        "sim microgrid --config grid.toml",
        "serve --config grid.toml",
        "sim microgrid --to mqtt://127.0.0.1",
    ):
        text.append(f"\n  {_command()} {words}", "bold")
    return Panel(text, expand=False)


def _command() -> str:
    """From a fresh clone the command is not on PATH, and a hint that does not work is none."""
    return "tieline" if shutil.which("tieline") else os.path.relpath(Path(sys.executable).with_name("tieline"))
