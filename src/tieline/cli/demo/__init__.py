"""``tieline demo``: a microgrid, three brokers, a planner and Spark at work, from the first message to the report."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple

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

#: Why something is left out that could have been shown.
AS_ASKED: Final = "As asked."

#: Whoever reads a pipe has room for a whole row of the tables.
_PIPE_WIDTH = 160


class LeftOut(NamedTuple):
    """Why parts are left out, each as a sentence; empty for those that are shown."""

    spark: str
    planner: str
    page: str

    @property
    def is_short(self) -> bool:
        """Whether something is left out that nobody has asked to leave out."""
        return any(why not in ("", AS_ASKED) for why in self)

    def told(self) -> Iterator[tuple[str, str]]:
        """What is left out, and why."""
        whats = ("the tables, the report, and the claims about them", "the plan, and the claims about it", "the page")
        return ((what, why) for what, why in zip(whats, self, strict=True) if why)


@app.command()
def demo(  # one for each option
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
    without_spark: Annotated[bool, typer.Option("--without-spark", help="No tables and no report.")] = False,
    without_planner: Annotated[bool, typer.Option("--without-planner", help="No plan and no way around.")] = False,
    clients: Annotated[
        bool, typer.Option("--clients", help="Instead: what MQTT promises, scene by scene, in ten seconds.")
    ] = False,
) -> None:
    """Show everything at work: a microgrid publishes, loses the grid, urgent commands overtake, tables fill.

    Three brokers run as one, two feeders and a control centre, joined by thin links; stock MQTT clients subscribe to
    the zones of EN 50160; a planner measures the traffic and gives the brokers a plan that relieves the full link; the
    control centre's broker is killed while readings are on their way to it, and comes back; a page shows it all; Spark
    ingests the logs of all brokers, and a backfilled week; at the end there is a report. Ctrl-C stops everything.
    Exit code 0 means that everything was shown and checked, and right: whatever an extra is missing for, and nobody has
    left out, is named and makes it 1.
    """
    if clients:
        from tieline.cli.demo.clients import show_clients

        show_clients()
        return
    console = terminal.console(pipe_width=_PIPE_WIDTH)
    console.print(
        "[bold]tieline demo[/]: a microgrid, three brokers, a planner, Spark. Ctrl-C stops everything.", highlight=False
    )
    from tieline.cli.demo.planner import Planner
    from tieline.cli.demo.play import Wishes

    left_out = LeftOut(
        spark=AS_ASKED if without_spark else _missing() or "",
        planner=AS_ASKED if without_planner else Planner.missing() or "",
        page=_no_page(),
    )
    with _folder(keep) as folder:
        wishes = Wishes(
            seconds=seconds, seed=seed, with_spark=not left_out.spark, with_planner=not left_out.planner,
            with_page=not left_out.page, folder=folder, report=out,
        )  # fmt: skip
        is_good = _perform(console, wishes, left_out, headless=headless)
    if not is_good or left_out.is_short:
        raise typer.Exit(FAILED)


def _perform(console: Console, wishes: Wishes, left_out: LeftOut, *, headless: bool) -> bool:
    from tieline.cli.demo.children import Children
    from tieline.cli.demo.play import OF_PLANNER, OF_SPARK, Play, steps
    from tieline.cli.demo.show import Show
    from tieline.sim.microgrid.extra import Unbuildable

    show = Show(console, console.is_terminal and not headless, steps())
    for why, names in ((left_out.spark, OF_SPARK), (left_out.planner, OF_PLANNER)):
        for name in names if why else ():
            show.leave_out(name, why)
    try:
        with _stoppable(), Children(wishes.folder) as children, show:
            checks = Play(wishes, show, children).run()
    except Unbuildable as problem:
        raise Trouble(str(problem)) from None
    except KeyboardInterrupt:
        raise Trouble("interrupted: everything was stopped.", code=INTERRUPTED) from None
    console.print(_summary(show, checks, wishes, left_out))
    return all(check.is_good for check in checks)


def _no_page() -> str:
    """What keeps the page from being served here, as a sentence; empty if nothing does."""
    library = next((each for each in ("starlette", "uvicorn", "prometheus_client") if not is_installed(each)), None)
    return "" if library is None else f"{library} is not installed: {remedy('web')}"


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
def _stoppable() -> Iterator[None]:
    """Ctrl-C and SIGTERM stop everything, in its order."""

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = {each: signal.signal(each, interrupt) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def _summary(show: Show, checks: list[Check], wishes: Wishes, left_out: LeftOut) -> RenderableType:
    """The checks as a table, the operator's waits by class, and a sentence."""
    table = Table(title="what was checked", title_justify="left", title_style="", expand=False)
    table.add_column("claim", style="bold", no_wrap=True)
    table.add_column("seen")
    table.add_column("")
    for check in checks:
        table.add_row(check.title, Text(check.story), "[green]✓[/]" if check.is_good else "[bold red]✗[/]")
    return Group(show.waits(), Text(), table, _verdict(show, checks, wishes, left_out))


def _verdict(show: Show, checks: list[Check], wishes: Wishes, left_out: LeftOut) -> Panel:
    good = sum(check.is_good for check in checks)
    text = Text()
    text.append(f"{good} of {len(checks)} claims hold", "green" if good == len(checks) else "bold red")
    text.append(f", in {show.elapsed():.0f} seconds.")
    for what, why in left_out.told():
        text.append(f"\nLeft out: {what}. {why}", "dim" if why == AS_ASKED else "bold red")
    if wishes.with_spark and wishes.report.is_file():
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
