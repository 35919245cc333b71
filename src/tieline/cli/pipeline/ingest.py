"""``tieline pipeline ingest``: bring brokers' logs, and directories of history, into tables."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from tieline.cli.pipeline.flags import (
    HERE,
    Config,
    LakePath,
    Login,
    OnSpark,
    Topics,
    Urls,
    open_lake,
    settings_of,
    storage_options,
)
from tieline.cli.pipeline.output import Progress
from tieline.cli.pipeline.running import sentences, stopping
from tieline.cli.trouble import MISUSED, Trouble
from tieline.cli.verbs import new_app, with_blocks

if TYPE_CHECKING:
    import threading

    from pyspark.sql import SparkSession

    from tieline.pipeline.jobs.ingest_batch import Logs
    from tieline.pipeline.lake import Lake

#: Between two looks at how far the query is.
_LOOK_S: Final = 1
_PERIOD: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)")
_SECONDS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3_600.0}

app = new_app()


@app.command()
@with_blocks
def ingest(  # one for each option
    *,
    lake: LakePath,
    url: Urls = None,
    config: Config = None,
    history: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Take the Parquet files of a directory instead, each once.")
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="End when everything that is there now is in the tables.")] = (
        False
    ),
    every: Annotated[
        str | None, typer.Option(metavar="TIME", help="Least time between two batches, such as 10s; else none.")
    ] = None,
    max_rows: Annotated[int, typer.Option(metavar="COUNT", min=1, help="Offsets in one batch.")] = 1_000_000,
    topic: Topics = None,
    where: Annotated[str | None, typer.Option(metavar="EXPRESSION", help="Only messages that say so.")] = None,
    reader: Annotated[
        str | None, typer.Option(metavar="NAME", help="The broker's named reader to move on as batches land.")
    ] = None,
    login: Login,
    delta: Annotated[bool, typer.Option("--delta", help="A new lake keeps its tables in the Delta format.")] = False,
    spark: OnSpark,
    quiet: Annotated[bool, typer.Option("--quiet", help="Say nothing on the way.")] = False,
) -> None:
    """Bring brokers' logs into the tables of a lake, until SIGINT or SIGTERM.

    Every record of the logs is in the tables once, also after a crash; those that cannot be read are in the table
    quarantine, with the reason. A lake that does not exist is made. Event types come from --config, and are remembered.
    """
    if history is not None and (url or reader or topic or where or every):
        raise Trouble(
            "--history takes files: --url, --topic, --where, --reader and --every do not go with it.", code=MISUSED
        )
    every_s = None if every is None else _seconds(every)
    with sentences():
        from tieline.pipeline.jobs.ingest_batch import Logs

        target = _lake(lake, config, delta=delta)
        options = {"topics": "\n".join(topic or ()), "where": where, "reader": reader, **login.options()}
        logs = Logs(url or [HERE], max_rows, {name: value for name, value in options.items() if value})
        with (
            target.ingesting(),
            stopping() as asked,
            spark.session("tieline ingest") as here,
            Progress(quiet=quiet) as progress,
        ):
            if history is not None:
                _take_history(here, target, history, max_rows, progress, asked)
            else:
                _follow(here, target, logs, progress, asked, once=once, every_s=every_s)
            progress.say(f"{progress.records:,} records brought into {lake}")


def _follow(
    spark: SparkSession,
    lake: Lake,
    logs: Logs,
    progress: Progress,
    asked: threading.Event,
    *,
    once: bool,
    every_s: float | None,
) -> None:
    from tieline.pipeline.jobs.ingest import Filling

    filling = Filling(spark, lake, logs, on_landed=progress.landed)
    filling.start(once=once, every_s=every_s)
    try:
        while not asked.is_set() and not filling.wait(_LOOK_S):
            progress.tell(filling.behind())
    except Exception:
        # Ctrl-C in a terminal also reaches the Python workers; what they leave unfinished is taken up the next time
        if not asked.is_set():
            raise
    finally:
        filling.stop()


def _take_history(
    spark: SparkSession, lake: Lake, directory: Path, max_rows: int, progress: Progress, asked: threading.Event
) -> None:
    from tieline.pipeline.jobs.ingest import take_history
    from tieline.pipeline.jobs.ingest_batch import Landed

    total = 0

    def found(records: int) -> None:
        nonlocal total
        total = records

    def landed(batch: Landed) -> None:
        progress.landed(batch)
        progress.tell(total - progress.records)

    take_history(spark, lake, directory, max_rows=max_rows, on_pending=found, on_landed=landed, asked_to_stop=asked)


def _lake(path: str, config: Path | None, *, delta: bool) -> Lake:
    """The lake at a place, made if there is none, with the event types of a configuration."""
    from tieline.pipeline.lake import Lake

    settings, options = settings_of(config), storage_options()
    if not Lake.exists(path, options=options):
        return Lake.create(path, settings, form="delta" if delta or "://" in path else "parquet", options=options)
    found = open_lake(path)
    if delta and found.document.format != "delta":
        raise Trouble(f"{path} keeps its tables as plain Parquet files; --delta is for a new lake.", code=MISUSED)
    if config is not None:
        found.evolve(settings)
    return found


def _seconds(text: str) -> float:
    found = _PERIOD.fullmatch(text)
    if found is None:
        raise Trouble(f'--every takes a number with its unit (ms, s, m, h), such as 10s; not "{text}".', code=MISUSED)
    return float(found[1]) * _SECONDS[found[2]]
