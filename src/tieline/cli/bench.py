"""``tieline bench``: brokers side by side, priority, matching, the pipeline, and the installer of other brokers."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Collection, Iterable, Iterator
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from typer.models import OptionInfo

from tieline.bench.broker import cases as broker_cases
from tieline.bench.broker import suite as broker_suite
from tieline.bench.broker.cases import Workload
from tieline.bench.broker.workloads import PARTS as BROKER_PARTS
from tieline.bench.broker.workloads import WORKLOADS
from tieline.bench.brokers import INSTALLERS, known_peers
from tieline.bench.load.job import Failure
from tieline.bench.match import cases as match_cases
from tieline.bench.match import suite as match_suite
from tieline.bench.match.cases import PARTS as MATCH_PARTS
from tieline.bench.measure import raise_open_files
from tieline.bench.overlay import cases as overlay_cases
from tieline.bench.overlay import suite as overlay_suite
from tieline.bench.overlay.cases import PARTS as OVERLAY_PARTS
from tieline.bench.peer import Peer, peers_directory
from tieline.bench.pipeline import PARTS as PIPELINE_PARTS
from tieline.bench.plan import PARTS as PLAN_PARTS
from tieline.bench.priority import cases as priority_cases
from tieline.bench.priority import suite as priority_suite
from tieline.bench.priority.cases import PARTS as PRIORITY_PARTS
from tieline.bench.suite import report, runner
from tieline.bench.suite.declaration import Schedule, Suite
from tieline.bench.suite.runner import Steps
from tieline.cli.trouble import MISUSED, Trouble

Out = Annotated[Path, typer.Option(metavar="DIR", help="Directory for the results.")]


def _part_option(parts: Iterable[str], what: str = "this part") -> OptionInfo:
    """The option that chooses parts of a benchmark."""
    option: OptionInfo = typer.Option(metavar="NAME", help=f"Run only {what} ({', '.join(parts)}); repeatable.")
    return option


app = typer.Typer(
    add_completion=False, pretty_exceptions_enable=False, no_args_is_help=True, help="Measure Tieline beside others."
)


@app.command()
def broker(  # one for each option
    *,
    quick: Annotated[
        bool, typer.Option("--quick", help="Every workload that a goal is about, once: about two minutes.")
    ] = False,
    only: Annotated[
        list[str] | None, typer.Option(metavar="PEER", help="Run only this broker; repeatable, or separated by commas.")
    ] = None,
    workload: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Run only this workload, or those that begin so; repeatable."),
    ] = None,
    part: Annotated[list[str] | None, _part_option(BROKER_PARTS, "the workloads of this part")] = None,
    repetitions: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Measure everything so often; the median counts.")
    ] = None,
    out: Out = Path("bench-results"),
    disk: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Where stores are made, on a real disk; the directory of the results."),
    ] = None,
    list_: Annotated[bool, typer.Option("--list", help="List workloads and brokers, and run nothing.")] = False,
) -> None:
    """Compare the broker with others on this machine: throughput, CPU, latency, memory.

    Starts every broker itself on a free loopback port, lets them take turns, verifies that everything was
    delivered, and writes broker.json, broker.md and broker.png.  Takes about eleven minutes, --quick two.
    """
    if list_:
        _list(wide_console())
        return
    present, absent = _choose_peers(only or [])
    parts = _chosen(part, BROKER_PARTS)
    workloads = [one for one in _choose_workloads(workload or [], quick=quick) if one.group in parts]
    place = _disk(disk, out)
    plan = broker_cases.make_plan(present, workloads, quick=quick, repeat=repetitions, disk=place, absent=absent)
    _carry_out(broker_suite.SUITE, plan, out)


@app.command()
def priority(
    *,
    quick: Annotated[bool, typer.Option("--quick", help="Shorter runs, fewer repetitions: about a minute.")] = False,
    part: Annotated[list[str] | None, _part_option(PRIORITY_PARTS)] = None,
    out: Out = Path("bench-results"),
) -> None:
    """Urgent messages where everything else is too much: a thin link, a busy broker, a slow reader; and what it costs.

    Holds Tieline against mosquitto in the same run and writes priority.json, priority.md and priority.png.  The thin
    link needs root, because it is made of network namespaces; without root that part is left out.  Ends within five
    minutes, --quick within one.
    """
    _carry_out(priority_suite.SUITE, priority_cases.make_plan(_chosen(part, PRIORITY_PARTS), quick=quick), out)


@app.command()
def match(
    *,
    quick: Annotated[
        bool, typer.Option("--quick", help="Fewer configurations, shorter runs: about two minutes.")
    ] = False,
    part: Annotated[list[str] | None, _part_option(MATCH_PARTS)] = None,
    out: Out = Path("bench-results"),
) -> None:
    """Content subscriptions: the index beside brute force, rtree and a scan; its changes; and brokers that use it.

    Every answer that is compared must be right, and every message must reach whom it is to reach, or the command fails.
    Writes match.json, match.md and match.png.  Ends within ten minutes, --quick within two.
    """
    _carry_out(match_suite.SUITE, match_cases.make_plan(_chosen(part, MATCH_PARTS), quick=quick), out)


@app.command()
def overlay(
    *,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer brokers, each goal once: about 15 minutes.")] = False,
    part: Annotated[list[str] | None, _part_option(OVERLAY_PARTS)] = None,
    out: Out = Path("bench-results"),
    disk: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where stores are made, on a real disk; that of the results.")
    ] = None,
) -> None:
    """Joined brokers: what a hop costs beside mosquitto's bridge, bytes, SUBACK, memory, a death, strategies, rings.

    Starts all brokers itself on free loopback ports; every message must arrive, or its row fails.  Writes overlay.json,
    overlay.md and overlay.png.  Ends within an hour, --quick within twenty minutes.
    """
    plan = overlay_cases.make_plan(_chosen(part, OVERLAY_PARTS), quick=quick, disk=_disk(disk, out))
    _carry_out(overlay_suite.SUITE, plan, out)


@app.command()
def pipeline(
    *,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer rows, three kills: about eight minutes.")] = False,
    part: Annotated[list[str] | None, _part_option(PIPELINE_PARTS)] = None,
    out: Out = Path("bench-results"),
    disk: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where tables are made meanwhile; the directory of the results.")
    ] = None,
    seed: Annotated[int, typer.Option(metavar="NUMBER", help="For what is killed, and when.")] = 1,
) -> None:
    r"""The pipeline on Spark: ingest, range match, pruned reads, growth with the rows, and random kills.

    Every answer that is compared must be right, and after the kills every acknowledged message must be in the tables
    once, or the command fails. Writes pipeline.json and pipeline.md. Needs pip install 'tieline\[pipeline,log,bench]'
    and Java. Ends within an hour, --quick within about eight minutes.
    """
    from tieline.cli.pipeline.running import sentences

    parts = _chosen(part, PIPELINE_PARTS)
    with sentences():
        # numpy, pyarrow and Spark: only for this benchmark
        from tieline.bench.pipeline.cases import make_plan
        from tieline.bench.pipeline.suite import SUITE

        _carry_out(SUITE, make_plan(parts, quick=quick, seed=seed, disk=_disk(disk, out)), out)


@app.command()
def plan(
    *,
    quick: Annotated[bool, typer.Option("--quick", help="Every goal once: about five minutes.")] = False,
    part: Annotated[list[str] | None, _part_option(PLAN_PARTS)] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the record as JSON instead of tables.")] = False,
    out: Out = Path("bench-results"),
) -> None:
    r"""The planner: the paper's sizes beside the naive model, large networks, a failed link, bounds, brokers alone.

    Every plan passes the proof, or the command fails.  Writes plan.json, plan.md and plan.png.  Ends within twenty
    minutes, --quick within five.  Needs the extra: pip install 'tieline\[plan]'.
    """
    parts = _chosen(part, PLAN_PARTS)
    try:
        from tieline.bench.plan.cases import make_plan
        from tieline.bench.plan.suite import SUITE
    except ImportError as missing:
        raise Trouble(f"{missing.name or missing} is not installed: pip install 'tieline[plan]'") from None
    _carry_out(SUITE, make_plan(parts, quick=quick), out, as_json=json)


def _carry_out(suite: Suite, wanted: Schedule, out: Path, *, as_json: bool = False) -> None:
    """Measure what is wanted, show it and write it down; fails if the results may not be used."""
    console = Console(stderr=True) if as_json else wide_console()
    raise_open_files()
    out.mkdir(parents=True, exist_ok=True)
    with orderly_end(), Steps(console, partial(report.line, suite)) as steps:
        record = runner.run(suite, wanted, steps)
    written = [f"{suite.name}.json", f"{suite.name}.md"]
    record.write(out / written[0])
    (out / written[1]).write_text(report.markdown(suite, record))
    if as_json:
        print((out / written[0]).read_text(), end="")
    else:
        report.show(suite, record, console)
    if suite.picture is not None:
        if suite.picture.draw(record, out / f"{suite.name}.png"):
            written.append(f"{suite.name}.png")
        else:
            console.print("no picture: it needs numbers and matplotlib (pip install 'tieline[bench]')", markup=False)
    console.print(f"written to {out}: {', '.join(written)}", highlight=False, markup=False)
    faults = list(suite.faults(record))
    if faults:
        raise Trouble(f"{len(faults)} rows failed, the first: {faults[0]}")


def _chosen(asked: list[str] | None, parts: Collection[str]) -> list[str]:
    """The parts of a benchmark that were asked for, by commas or again and again; all if none was."""
    chosen = [name for text in asked or [] for name in text.split(",") if name] or list(parts)
    for name in chosen:
        if name not in parts:
            raise Trouble(f"no part is called {name}; there are {', '.join(parts)}", code=MISUSED)
    return chosen


def _disk(disk: Path | None, out: Path) -> Path:
    """Where stores and tables are made: on the disk that was named, or beside the results."""
    if disk is not None and not disk.is_dir():
        raise Trouble(f"{disk} is no directory", code=MISUSED)
    out.mkdir(parents=True, exist_ok=True)
    return (disk or out).absolute()


@app.command()
def peers(
    names: Annotated[
        list[str] | None, typer.Argument(help="Which to install; all that can be, if none is named.")
    ] = None,
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show which are installed.")] = False,
) -> None:
    """Install the brokers to compare with, each in its own environment ($TIELINE_PEERS, or .peers here)."""
    console = wide_console()
    known = known_peers()
    failed = False
    for name in [] if dry_run else names or list(INSTALLERS):
        if name not in known:
            raise Trouble(f"no peer is called {name}; there are {', '.join(known)}", code=MISUSED)
        if known[name].version() is not None:
            continue
        if name not in INSTALLERS:
            console.print(f"{name} is a system package: {known[name].install}", highlight=False)
            continue
        console.print(f"installing {name} in {peers_directory() / name} …", highlight=False)
        try:
            INSTALLERS[name]()
        except Failure as failure:
            failed = True
            console.print(f"{name}: {failure}", highlight=False, markup=False)
    console.print(_peers_table())
    if failed:
        raise typer.Exit(1)


def wide_console() -> Console:
    """The terminal, or something wide enough for the tables."""
    console = Console()
    # Into a file or a pipe the tables go unbroken: nobody's terminal is known.
    return console if console.is_terminal else Console(width=140)


@contextlib.contextmanager
def orderly_end() -> Iterator[None]:
    """SIGTERM, too, ends the run like Ctrl-C: the brokers first."""
    endings = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(ending, _interrupt) for ending in endings]
    try:
        yield
    finally:
        for ending, handler in zip(endings, before, strict=True):
            signal.signal(ending, handler)


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _choose_peers(only: list[str]) -> tuple[list[Peer], dict[str, str]]:
    known = known_peers()
    wanted = [name for text in only for name in text.split(",") if name] or list(known)
    for name in wanted:
        if name not in known:
            raise Trouble(f"no broker is called {name}; there are {', '.join(known)}", code=MISUSED)
    present = [peer for name, peer in known.items() if name in wanted and peer.version() is not None]
    absent = {name: known[name].install for name in wanted if known[name] not in present}
    if not present:
        raise Trouble(f"none of the brokers is installed: {', '.join(absent)}")
    return present, absent


def _choose_workloads(names: list[str], *, quick: bool) -> list[Workload]:
    if not names:
        return [one for one in WORKLOADS if broker_suite.is_quick(one) or not quick]
    wanted = [name for text in names for name in text.split(",") if name]
    for name in wanted:
        if not any(one.name.startswith(name) for one in WORKLOADS):
            raise Trouble(f"no workload is called {name}; see --list", code=MISUSED)
    exact = {one.name for one in WORKLOADS} & set(wanted)
    prefixes = tuple(name for name in wanted if name not in exact)
    return [one for one in WORKLOADS if one.name in exact or (prefixes and one.name.startswith(prefixes))]


def _list(console: Console) -> None:
    table = Table(title="Workloads", title_justify="left")
    for heading in ("name", "what", "brokers", "--quick"):
        table.add_column(heading)
    for one in WORKLOADS:
        table.add_row(
            one.name, one.title, "two" if one.pair_only else "all", "yes" if broker_suite.is_quick(one) else ""
        )
    console.print(table)
    console.print(_peers_table())


def _peers_table() -> Table:
    table = Table(title="Brokers", title_justify="left")
    for heading in ("name", "version", "to install it"):
        table.add_column(heading)
    for peer in known_peers().values():
        version = peer.version()
        table.add_row(peer.name, version or "absent", "" if version else peer.install)
    return table
