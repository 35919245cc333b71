"""``tieline sim``: run a simulated world; publish it to a broker, or write its history."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal  # Any: errors of extras that may be absent

import typer

from tieline.cli.trouble import FAILED, MISUSED, Trouble
from tieline.cli.verbs import new_app

if TYPE_CHECKING:
    from tieline.sim.microgrid import World
    from tieline.sim.microgrid.publish import Publisher

app = new_app("Run a simulated world: publish it to a broker, or write its history.")


@app.callback()
def _worlds() -> None:
    pass


@app.command()
def microgrid(  # one for each option
    *,
    to: Annotated[str | None, typer.Option(metavar="URL", help="Publish to this broker: mqtt://host:1883.")] = None,
    history: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write Parquet files in the shape of a broker's log.")
    ] = None,
    config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a configuration for the broker, and do nothing else.")
    ] = None,
    network: Annotated[
        str, typer.Option(help="cigre_lv, cigre_mv, or a SimBench code such as 1-LV-rural1--0-sw.")
    ] = "cigre_lv",
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same messages.")] = 1,
    start: Annotated[datetime | None, typer.Option(help="When the world begins, UTC; without it: now.")] = None,
    days: Annotated[float, typer.Option(min=0.0, help="How many days of history.")] = 7.0,
    seconds: Annotated[
        float | None, typer.Option(min=0.0, help="How many seconds of the world to publish; without it: until Ctrl-C.")
    ] = None,
    speed: Annotated[float, typer.Option(help="Seconds of the world in a second; 60 makes a minute of an hour.")] = 1.0,
    step: Annotated[float, typer.Option(metavar="SECONDS", help="Time between two readings of a meter.")] = 1.0,
    load: Annotated[
        float, typer.Option(metavar="FACTOR", help="All loads times this: a network that has grown.")
    ] = 1.0,
    qos: Annotated[Literal["0", "1"], typer.Option(help="QoS of readings; everything else is sent with QoS 1.")] = "0",
    island: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="Lose the grid so long after the start, for three minutes.")
    ] = None,
) -> None:
    r"""A microgrid: meters, faults, protection, commands, the loss of the grid.

    Needs the extra: pip install 'tieline\[sim]'. Networks are CIGRE's, load profiles SimBench's (ODbL).
    """
    if [to, history, config].count(None) != 2:
        raise Trouble("say what to do with the world: --to URL, --history DIR or --config FILE.", code=MISUSED)
    begin_s = time.time() // 60 * 60 if start is None else start.replace(tzinfo=UTC).timestamp()
    with _sentences():
        world = _world(network, seed, begin_s, step, load, island)
        if config is not None:
            _configure(world, config)
        elif history is not None:
            _write(world, history, days, int(qos))
        else:
            assert to is not None
            _publish(world, to, seconds, speed, 1 if qos == "1" else 0)


def _world(network: str, seed: int, begin_s: float, step_s: float, load: float, island: float | None) -> World:
    from tieline.sim.microgrid import Islanding, World

    script = [] if island is None else [Islanding(at_s=begin_s + island)]
    return World(seed, network, begin_s, step_s=step_s, load=load, script=script)


def _configure(world: World, file: Path) -> None:
    from tieline.sim.microgrid.config import text

    try:
        file.write_text(text(world, data="data"), encoding="utf-8")
    except OSError as problem:
        raise Trouble(f"{file} cannot be written: {problem.strerror}.") from None
    print(f"written: {file}; start the broker with: tieline serve --config {file}")


def _write(world: World, folder: Path, days: float, qos: int) -> None:
    from tieline.sim.microgrid.history import write

    begun = time.monotonic()

    def tell(rows: int) -> None:
        if sys.stderr.isatty():
            print(f"\r{rows:,} rows, {rows / (time.monotonic() - begun):,.0f}/s", end="", file=sys.stderr)

    try:
        done = write(world, folder, days=days, readings_qos=qos, progress=tell)
    except OSError as problem:
        raise Trouble(f"{folder} cannot be written: {problem.strerror}.") from None
    took_s = time.monotonic() - begun
    if sys.stderr.isatty():
        print(file=sys.stderr)
    print(f"written: {done.rows:,} rows in {done.files} files, {done.bytes / 1e6:,.1f} MB, {took_s:.1f} s: {folder}")


def _publish(world: World, url: str, seconds: float | None, speed: float, qos: Literal[0, 1]) -> None:
    from tieline.sim.microgrid.publish import Publisher, Unpublished

    publisher = Publisher(world, url, speed=speed, readings_qos=qos)
    try:
        with _stopping(publisher), _telling(publisher):
            tally = publisher.publish(seconds)
    except Unpublished as problem:
        raise Trouble(str(problem), code=FAILED) from None
    for kind, count in tally.published.items():
        print(f"{kind:<11}{count:>10,} published{tally.acknowledged[kind]:>10,} acknowledged")


@contextmanager
def _stopping(publisher: Publisher) -> Iterator[None]:
    """SIGINT and SIGTERM end the world in good order."""
    before = {each: signal.signal(each, lambda *_: publisher.stop()) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


@contextmanager
def _telling(publisher: Publisher) -> Iterator[None]:
    """A line about the progress: kept current on a terminal, every ten seconds elsewhere."""
    done = threading.Event()
    is_live = sys.stderr.isatty()

    def tell() -> None:
        while not done.wait(1.0 if is_live else 10.0):
            tally = publisher.tally
            moment = datetime.fromtimestamp(publisher.now_s, UTC).strftime("%Y-%m-%d %H:%M:%S")
            line = f"{moment}  {tally.published.total():,} published, {tally.acknowledged.total():,} acknowledged"
            print(f"\r{line}" if is_live else line, end="" if is_live else "\n", file=sys.stderr, flush=True)

    thread = threading.Thread(target=tell, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
        if is_live:
            print(file=sys.stderr)


@contextmanager
def _sentences() -> Iterator[Any]:
    """What the world refuses is one sentence."""
    from tieline.sim.microgrid.extra import Unbuildable

    try:
        yield
    except Unbuildable as problem:
        raise Trouble(str(problem), code=MISUSED) from None
