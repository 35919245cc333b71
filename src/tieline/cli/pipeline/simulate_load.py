"""``tieline pipeline simulate-load``: publish what the tables hold to a broker, at a chosen speed."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.console import Console

from tieline.cli.pipeline.flags import Master, Since, Until, Verbose, sentences, session, stopping
from tieline.cli.pipeline.sources import Files, PasswordFile, Urls, User, records
from tieline.cli.trouble import FAILED, MISUSED, Trouble

if TYPE_CHECKING:
    from datetime import datetime

    from pyspark.sql import DataFrame, SparkSession

    from tieline.pipeline.jobs.players import Played

#: Between two lines of progress.
_TOLD_S: Final = 2.0

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def simulate_load(
    *,
    broker: Annotated[
        str, typer.Option(metavar="URL", help="Where to publish: mqtt://HOST:PORT or mqtts://HOST:PORT.")
    ],
    lake: Annotated[Path | None, typer.Option("--lake", metavar="DIR", help="Replay tables.")] = None,
    history: Files = None,
    url: Urls = None,
    topic: Annotated[
        list[str] | None, typer.Option(metavar="FILTER", help="Only these topics, + and # allowed. Repeatable.")
    ] = None,
    speed: Annotated[str, typer.Option(metavar="SPEED", help="10x, 0.5x, or max.")] = "1x",
    clients: Annotated[int, typer.Option(metavar="COUNT", min=1, max=1_000, help="Connections to publish over.")] = 1,
    qos: Annotated[int | None, typer.Option(metavar="QOS", min=0, max=2, help="For all; else as recorded.")] = None,
    levels: Annotated[bool, typer.Option("--levels", help="Say how urgent each was, as a user property.")] = False,
    since: Since = None,
    until: Until = None,
    user: User = None,
    password_file: PasswordFile = None,
    master: Master = None,
    verbose: Verbose = False,
) -> None:
    """Publish recorded messages again, in the order of their times, until they end or SIGINT or SIGTERM.

    Messages come from tables, or from a log as it is. Times between them are kept, divided by --speed.
    """
    if lake is not None and (history is not None or url):
        raise Trouble(
            "messages come from tables (--lake) or from a log (--url, --history), not from both.", code=MISUSED
        )
    with sentences():
        from tieline.pipeline.broker import NAMES, read_broker
        from tieline.pipeline.jobs.players import Pace, Player, play, speed_of
        from tieline.pipeline.jobs.replay import LOGGED, from_log, in_order, of_topics
        from tieline.pipeline.options import Given

        pace = Pace(speed_of(speed), time.monotonic)
        given = {"broker": broker}
        if user is not None:
            given["user"] = user
        if password_file is not None:
            given["passwordFile"] = str(password_file)
        target = read_broker(Given("mqtt", NAMES, given))
        with (
            session(master, "tieline simulate-load", verbose=verbose) as spark,
            stopping() as asked,
            ExitStack() as open_,
        ):
            if lake is not None:
                messages = _on_tables(spark, lake, since, until)
            else:
                told = records(
                    spark,
                    "log",
                    url,
                    history,
                    user=user,
                    password_file=password_file,
                    since=since,
                    until=until,
                    columns=LOGGED,
                )
                messages = from_log(told)
            players = [
                open_.enter_context(Player(target, f"replay-{number}-{time.time_ns():x}")) for number in range(clients)
            ]
            rows = in_order(of_topics(messages, "topic", topic or ()))
            played = play(rows, players, pace, asked, qos=qos, levels=levels, on_sent=_teller())
        print(_line(played))
        if played.refused:
            raise Trouble(f"the broker refused {played.refused:,} of the messages.", code=FAILED)


def _on_tables(spark: SparkSession, lake: Path, since: datetime | None, until: datetime | None) -> DataFrame:
    from pyspark.sql import DataFrame

    from tieline.pipeline.jobs.replay import from_others, from_table
    from tieline.pipeline.lake import OTHER, Lake

    opened = Lake.open(lake)
    tables = [
        from_table(opened.read(spark, name, since, until), name, known.declared)
        for name, known in opened.document.types.items()
    ]
    return reduce(DataFrame.unionByName, tables, from_others(opened.read(spark, OTHER, since, until)))


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
