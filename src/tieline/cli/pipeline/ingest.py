"""``tieline pipeline ingest``: bring brokers' logs, and directories of history, into tables."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple

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
from tieline.cli.pipeline.sources import check_files, check_servers
from tieline.cli.trouble import MISUSED, Trouble
from tieline.cli.verbs import new_app, with_blocks

if TYPE_CHECKING:
    import threading

    from pyspark.sql import SparkSession

    from tieline.conf.schema import Settings
    from tieline.pipeline.ingest_metrics import IngestMetrics
    from tieline.pipeline.jobs.ingest_batch import Landed, Logs
    from tieline.pipeline.lake import Lake

#: Batches between two merges of small files, where they disturb no reader.
_COMPACT_EVERY: Final = 100
#: Between two looks at how far the query is.
_LOOK_S: Final = 1
_PERIOD: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)")
_SECONDS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3_600.0}

app = new_app()


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How batches come: how large, how often, until when, and what becomes of the small files that they leave."""

    once: Annotated[bool, typer.Option("--once", help="End when everything that is there now is in the tables.")] = (
        False
    )
    every: Annotated[
        str | None, typer.Option(metavar="TIME", help="Least time between two batches, such as 10s; else none.")
    ] = None
    max_rows: Annotated[int, typer.Option(metavar="COUNT", min=1, help="Offsets in one batch.")] = 1_000_000
    compact_every: Annotated[
        int | None,
        typer.Option(
            metavar="BATCHES",
            min=0,
            help="Merge small files after so many batches, 0 for never; else 100 in Delta tables, and never in plain "
            "ones, where readers would have to list files again.",
        ),
    ] = None

    def every_s(self) -> float | None:
        """Seconds from the beginning of a batch to the next."""
        return None if self.every is None else _seconds(self.every)

    def merged_after(self, lake: Lake) -> int:
        """How many batches there are between two merges; 0 for none."""
        if self.compact_every is not None:
            return self.compact_every
        return _COMPACT_EVERY if lake.document.format == "delta" else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Telling:
    """Who is told how it goes."""

    metrics: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="Serve lag and last batch there, for Prometheus.")
    ] = None
    quiet: Annotated[bool, typer.Option("--quiet", help="Say nothing on the way.")] = False

    def address(self) -> tuple[str, int] | None:
        """Where the page for Prometheus is served, if it is wanted; without a host, this machine alone may ask."""
        if self.metrics is None:
            return None
        host, _, port = self.metrics.rpartition(":")
        if not port.isdecimal() or not 0 < int(port) < 65_536:
            raise Trouble(f'--metrics takes HOST:PORT, such as 127.0.0.1:9885; not "{self.metrics}".', code=MISUSED)
        return host.strip("[]") or "127.0.0.1", int(port)

    @contextmanager
    def told(self) -> Iterator[Told]:
        """Progress on standard error, and the page for Prometheus if it is wanted."""
        with ExitStack() as open_:
            page = None
            if (address := self.address()) is not None:
                from tieline.pipeline.ingest_metrics import IngestMetrics

                page = IngestMetrics()
                open_.enter_context(page.served(*address))
            yield Told(open_.enter_context(Progress(quiet=self.quiet)), page)


class Told(NamedTuple):
    """Everybody who is told about batches."""

    progress: Progress
    page: IngestMetrics | None

    def landed(self, batch: Landed) -> None:
        """A batch is in the tables."""
        self.progress.landed(batch)
        if self.page is not None:
            self.page.landed(batch)


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
    pace: Pace,
    topic: Topics = None,
    where: Annotated[str | None, typer.Option(metavar="EXPRESSION", help="Only messages that say so.")] = None,
    reader: Annotated[
        str | None, typer.Option(metavar="NAME", help="The broker's named reader to move on as batches land.")
    ] = None,
    login: Login,
    delta: Annotated[bool, typer.Option("--delta", help="A new lake keeps its tables in the Delta format.")] = False,
    spark: OnSpark,
    telling: Telling,
) -> None:
    """Bring brokers' logs into the tables of a lake, until SIGINT or SIGTERM.

    Every record of the logs is in the tables once, also after a crash; those that cannot be read are in the table
    quarantine, with the reason. A lake that does not exist is made. Event types come from --config, and are remembered.

    Exit codes: 0 when it was asked to end or has everything, 1 when something failed (nothing is lost: the same command
    goes on), 2 when it was asked for what it cannot mean, 130 when it was interrupted before the first batch.
    """
    if history is not None and (url or reader or topic or where or pace.every):
        raise Trouble(
            "--history takes files: --url, --topic, --where, --reader and --every do not go with it.", code=MISUSED
        )
    pace.every_s()
    telling.address()
    spark.settings()
    with sentences():
        from tieline.pipeline.jobs.ingest_batch import Logs

        options = {"topics": "\n".join(topic or ()), "where": where, "reader": reader, **login.options()}
        logs = Logs(url or [HERE], pace.max_rows, {name: value for name, value in options.items() if value})
        settings = settings_of(config)
        with ExitStack() as held:
            target = _existing(lake, delta=delta)
            if target is not None:
                held.enter_context(target.ingesting())
            if history is not None:
                check_files(history)
            else:
                check_servers(logs.source())
            # everything that was named is there: now something may be made
            if target is None:
                target = _made(lake, settings, delta=delta)
                held.enter_context(target.ingesting())
            elif config is not None:
                target.evolve(settings)
            told, asked = held.enter_context(telling.told()), held.enter_context(stopping())
            with spark.session("tieline ingest") as here:
                if history is not None:
                    _take_history(here, target, history, pace.max_rows, told, asked)
                else:
                    _follow(here, target, logs, told, asked, pace)
            told.progress.say(f"{told.progress.records:,} records brought into {lake}")


def _follow(spark: SparkSession, lake: Lake, logs: Logs, told: Told, asked: threading.Event, pace: Pace) -> None:
    from tieline.pipeline.jobs.ingest import Filling

    filling = Filling(spark, lake, logs, on_landed=told.landed, compact_every=pace.merged_after(lake))
    filling.start(once=pace.once, every_s=pace.every_s())
    try:
        while not asked.is_set() and not filling.wait(_LOOK_S):
            told.progress.tell(filling.behind())
            if told.page is not None:
                told.page.looked(filling.behind_each())
    except Exception:
        # Ctrl-C in a terminal also reaches the Python workers; what they leave unfinished is taken up the next time
        if not asked.is_set():
            raise
    finally:
        filling.stop()


def _take_history(
    spark: SparkSession, lake: Lake, directory: Path, max_rows: int, told: Told, asked: threading.Event
) -> None:
    from tieline.pipeline.jobs.ingest import take_history

    total = 0

    def found(records: int) -> None:
        nonlocal total
        total = records

    def landed(batch: Landed) -> None:
        told.landed(batch)
        told.progress.tell(total - told.progress.records)

    take_history(spark, lake, directory, max_rows=max_rows, on_pending=found, on_landed=landed, asked_to_stop=asked)


def _existing(path: str, *, delta: bool) -> Lake | None:
    """The lake at a place; None if there is none."""
    from tieline.pipeline.lake import Lake

    if not Lake.exists(path, options=storage_options()):
        return None
    found = open_lake(path)
    if delta and found.document.format != "delta":
        raise Trouble(f"{path} keeps its tables as plain Parquet files; --delta is for a new lake.", code=MISUSED)
    return found


def _made(path: str, settings: Settings, *, delta: bool) -> Lake:
    """A new lake, with the event types of a configuration."""
    from tieline.pipeline.lake import Lake
    from tieline.pipeline.lake.document import Format

    form: Format = "delta" if delta or "://" in path else "parquet"
    return Lake.create(path, settings, form=form, options=storage_options())


def _seconds(text: str) -> float:
    found = _PERIOD.fullmatch(text)
    if found is None:
        raise Trouble(f'--every takes a number with its unit (ms, s, m, h), such as 10s; not "{text}".', code=MISUSED)
    return float(found[1]) * _SECONDS[found[2]]
