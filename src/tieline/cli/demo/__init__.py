"""``tieline demo``: a microgrid, three brokers, a planner and Spark at work, from the first message to the report."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from tieline.cli import terminal
from tieline.cli.trouble import FAILED, INTERRUPTED, Trouble
from tieline.cli.verbs import new_app
from tieline.extras import is_installed, remedy

if TYPE_CHECKING:
    from tieline.cli.demo.checks import Check
    from tieline.cli.demo.play import Wishes
    from tieline.cli.demo.show import Show

app = new_app()

#: Whoever reads a pipe has room for a whole row of the tables.
_PIPE_WIDTH = 160


@app.command()
def demo(
    *,
    headless: Annotated[bool, typer.Option("--headless", help="Plain lines, also on a terminal.")] = False,
    seconds: Annotated[float, typer.Option(min=20.0, help="How long the microgrid publishes.")] = 40.0,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same messages.")] = 53,
    keep: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Keep everything here: data, tables, logs of the processes.")
    ] = None,
    out: Annotated[Path, typer.Option(metavar="FILE", help="Where the report goes.")] = Path(
        "tieline-demo/power-quality.html"
    ),
    without_spark: Annotated[bool, typer.Option("--without-spark", help="Broker and microgrid only.")] = False,
    clients: Annotated[
        bool, typer.Option("--clients", help="Instead: what MQTT promises, scene by scene, in ten seconds.")
    ] = False,
) -> None:
    """Show everything at work: a microgrid publishes, loses the grid, urgent commands overtake, tables fill.

    Three brokers run as one, two feeders and a control centre, joined by thin links; stock MQTT clients subscribe to
    the zones of EN 50160; a planner measures the traffic and gives the brokers a plan that relieves the full link; the
    control centre's broker is killed while readings are on their way to it, and comes back; a page shows it all; Spark
    ingests the logs of all brokers, and a backfilled week; at the end there is a report. Ctrl-C ends the live
    part early. Exit code 0 means that everything was checked, and right.
    """
    if clients:
        from tieline.cli.demo.clients import show_clients

        show_clients()
        return
    console = terminal.console(pipe_width=_PIPE_WIDTH)
    console.print(
        "[bold]tieline demo[/]: a microgrid, three brokers, a planner, Spark. Ctrl-C ends it early.", highlight=False
    )
    missing = None if without_spark else _missing()
    with _folder(keep) as folder:
        from tieline.cli.demo.planner import Planner
        from tieline.cli.demo.play import Wishes

        with_spark = not without_spark and missing is None
        wishes = Wishes(
            seconds=seconds, seed=seed, with_spark=with_spark, with_planner=Planner.missing() is None,
            with_page=is_installed("uvicorn") and is_installed("starlette"), folder=folder, report=out,
        )  # fmt: skip
        is_good = _perform(console, wishes, headless=headless, missing=missing)
    if not is_good or missing is not None:
        raise typer.Exit(FAILED)


def _perform(console: Console, wishes: Wishes, *, headless: bool, missing: str | None) -> bool:
    from tieline.cli.demo.children import Children
    from tieline.cli.demo.planner import Planner
    from tieline.cli.demo.play import OF_PLANNER, OF_SPARK, Play, steps
    from tieline.cli.demo.show import Show
    from tieline.sim.microgrid.extra import Unbuildable

    show = Show(console, console.is_terminal and not headless, steps())
    if not wishes.with_spark:
        for name in OF_SPARK:
            show.leave_out(name, missing or "")
    if not wishes.with_planner:
        for name in OF_PLANNER:
            show.leave_out(name, Planner.missing() or "")
    try:
        with _enough(console) as enough, Children(wishes.folder) as children, show:
            checks = Play(wishes, show, children, enough).run()
    except Unbuildable as problem:
        raise Trouble(str(problem)) from None
    except KeyboardInterrupt:
        raise Trouble("interrupted.", code=INTERRUPTED) from None
    console.print(_summary(show, checks, wishes, missing))
    return all(check.is_good for check in checks)


def _missing() -> str | None:
    """What keeps Spark from running here, as a sentence."""
    for library in ("pyspark", "pandas", "pyarrow", "starlette", "uvicorn", "jinja2"):
        if not is_installed(library):
            return f"{library} is not installed: {remedy('pipeline')}"
    from tieline.pipeline.java import NoJava, find_java

    try:
        find_java()
    except NoJava as problem:
        return str(problem)
    return None


@contextmanager
def _folder(keep: Path | None) -> Iterator[Path]:
    """Where everything lies: a directory that goes with us, or one that stays."""
    if keep is None:
        with tempfile.TemporaryDirectory(prefix="tieline-demo-") as made:
            yield Path(made)
        return
    try:
        keep.mkdir(parents=True, exist_ok=True)
        if any(keep.iterdir()):
            raise Trouble(f"{keep} is not empty: --keep takes a new directory.")
    except OSError as problem:
        raise Trouble(f"{keep} cannot be used: {problem.strerror}.") from None
    yield keep.absolute()


@contextmanager
def _enough(console: Console) -> Iterator[threading.Event]:
    """The first Ctrl-C ends the live part, the second everything; SIGTERM is a second one."""
    enough = threading.Event()

    def interrupt(number: int, _frame: FrameType | None) -> None:
        if enough.is_set() or number == signal.SIGTERM:
            raise KeyboardInterrupt
        enough.set()
        console.print("That was enough: what has been published is brought into the tables. Ctrl-C again ends at once.")

    before = {each: signal.signal(each, interrupt) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield enough
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def _summary(show: Show, checks: list[Check], wishes: Wishes, missing: str | None) -> RenderableType:
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
    account = wishes.report.with_name("plan.html")
    if wishes.with_planner and account.is_file():
        text.append("\nWhat the plan changed: ")
        text.append(str(account), "bold")
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
