"""``tieline pipeline simulate-load``: publish what the tables hold to a broker, at a chosen speed."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import reduce
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.console import Console

from tieline.cli.pipeline.flags import OnSpark, TimeSpan, Topics, open_lake
from tieline.cli.pipeline.running import sentences, stopping
from tieline.cli.pipeline.sources import Messages
from tieline.cli.trouble import FAILED, Trouble
from tieline.cli.verbs import new_app, with_blocks

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from tieline.pipeline.jobs.players import Played

#: Between two lines of progress.
_TOLD_S: Final = 2.0

app = new_app()


@app.command()
@with_blocks
def simulate_load(  # one for each option
    *,
    broker: Annotated[
        str, typer.Option(metavar="URL", help="Where to publish: mqtt://HOST:PORT or mqtts://HOST:PORT.")
    ],
    source: Messages,
    topic: Topics = None,
    speed: Annotated[str, typer.Option(metavar="SPEED", help="10x, 0.5x, or max.")] = "1x",
    clients: Annotated[int, typer.Option(metavar="COUNT", min=1, max=1_000, help="Connections to publish over.")] = 1,
    qos: Annotated[int | None, typer.Option(metavar="QOS", min=0, max=2, help="For all; else as recorded.")] = None,
    levels: Annotated[bool, typer.Option("--levels", help="Say how urgent each was, as a user property.")] = False,
    spark: OnSpark,
) -> None:
    """Publish recorded messages again, in the order of their times, until they end or SIGINT or SIGTERM.

    Messages come from tables, or from a log as it is. Times between them are kept, divided by --speed.
    """
    with sentences():
        from tieline.pipeline.broker import NAMES, read_broker
        from tieline.pipeline.jobs.players import Player, ReplayClock, play, speed_of
        from tieline.pipeline.jobs.replay import LOGGED, from_log, in_order, of_topics
        from tieline.pipeline.options import Given

        pace = ReplayClock(speed_of(speed), time.monotonic)
        target = read_broker(Given("mqtt", NAMES, {"broker": broker, **source.login.options()}))
        source.check()
        with (
            spark.session("tieline simulate-load") as here,
            stopping() as asked,
            ExitStack() as open_,
        ):
            if source.lake is not None:
                messages = _on_tables(here, source.lake, source.span)
            else:
                messages = from_log(source.read_log(here, LOGGED))
            players = [
                open_.enter_context(Player(target, f"replay-{number}-{time.time_ns():x}")) for number in range(clients)
            ]
            rows = in_order(of_topics(messages, "topic", topic or ()))
            played = play(rows, players, pace, asked, qos=qos, levels=levels, on_sent=_teller())
        print(_line(played))
        if played.refused:
            raise Trouble(f"the broker refused {played.refused:,} of the messages.", code=FAILED)


def _on_tables(spark: SparkSession, lake: str, span: TimeSpan) -> DataFrame:
    from pyspark.sql import DataFrame

    from tieline.pipeline.jobs.replay import from_others, from_table
    from tieline.pipeline.lake import OTHER

    opened = open_lake(lake)
    tables = [
        from_table(opened.read(spark, name, span.since, span.until), name, known.declared)
        for name, known in opened.document.types.items()
    ]
    return reduce(DataFrame.unionByName, tables, from_others(opened.read(spark, OTHER, span.since, span.until)))


def _teller() -> Callable[[int], None]:
    """Says now and then how far it is; on standard error."""
    console = Console(stderr=True)
    told: list[float] = [time.monotonic(), 0]

    def tell(published: int) -> None:
        now = time.monotonic()
        if now - told[0] >= _TOLD_S:
            console.print(f"{published:,} published, {(published - told[1]) / (now - told[0]):,.0f} per second")
            told[:] = [now, published]

    return tell


def _line(played: Played) -> str:
    rate = played.published / played.seconds if played.seconds else 0.0
    text = (
        f"{played.published:,} published in {played.seconds:,.1f} s ({rate:,.0f} per second), "
        f"{played.acknowledged:,} acknowledged, {played.late:,} late"
    )
    text += f" by up to {played.most_late_s:,.1f} s" if played.late else ""
    return f"{text}; stopped before the end" if played.is_stopped else text
