"""Where jobs read: brokers' log servers, files with the same columns, tables; looked at before Spark starts.

Spark takes many seconds to start, and a name that is wrong is known before.  So each block of options can check itself:
servers are asked where their logs end, directories have to have files, a lake has to be one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer

from tieline.cli.pipeline.flags import HERE, Login, TimeSpan, Urls, open_lake
from tieline.cli.trouble import MISUSED, Trouble

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from tieline.pipeline.lake import Lake

#: How long a log server may be away when a job begins; later it may be away for longer.
_FIRST_S: Final = 5.0


def check_servers(options: Mapping[str, str]) -> int:
    """Ask every log server once; raises the sentence of one that does not answer, or lets nobody in.

    How many records there are.
    """
    from tieline.pipeline.source.offsets import survey
    from tieline.pipeline.source.options import read_options

    read = read_options(options)
    found = survey(replace(read, patience_s=min(_FIRST_S, read.patience_s)))
    return sum(each.offsets.latest - each.offsets.earliest for each in found.values())


def check_files(directory: Path) -> int:
    """Refuse a directory without Parquet files; how many rows these have."""
    import pyarrow.parquet as pq

    if not directory.is_dir():
        raise Trouble(f"{directory} is no directory.", code=MISUSED)
    files = list(directory.rglob("*.parquet"))
    if not files:
        raise Trouble(f"{directory} has no Parquet files.", code=MISUSED)
    try:
        return sum(pq.read_metadata(path).num_rows for path in files)
    except (OSError, ValueError) as problem:
        raise Trouble(f"{directory} has a file that is no Parquet file: {problem}") from None


def rows_in(lake: Lake) -> int:
    """How many rows ever landed in a lake."""
    return sum(lake.state().rows.values())


def check_target(file: Path) -> None:
    """Refuse a file that could not be written because its directory is not there."""
    if file.is_dir() or not file.absolute().parent.is_dir():
        raise Trouble(f"{file} cannot be written: {file.parent} is no directory, or {file.name} is one.", code=MISUSED)


@dataclass(frozen=True, slots=True, kw_only=True)
class EventRecords:
    """Where the events of brokers are read: from their log servers, or from files with the same columns."""

    url: Urls = None
    events: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Read Parquet files with the columns of the events instead."),
    ] = None
    span: TimeSpan
    login: Login

    def check(self) -> int:
        """Look whether servers answer, or files are there; how many records they have."""
        return _check(self.options(), self.url, self.events)

    def read(self, spark: SparkSession) -> DataFrame:
        """What brokers wrote down in the span of time, by when they did."""
        return _records(spark, self.options(), self.events, self.span, "time")

    def options(self) -> dict[str, str]:
        """The options of Spark's source for the log servers."""
        return _source("events", self.url, self.login)


@dataclass(frozen=True, slots=True, kw_only=True)
class Messages:
    """Where messages are read that were sent: from tables, from log servers, or from files with the log's columns."""

    lake: Annotated[str | None, typer.Option(metavar="DIR", help="Read the tables of a lake.")] = None
    history: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Read Parquet files with the log's columns instead.")
    ] = None
    url: Urls = None
    span: TimeSpan
    login: Login

    def check(self) -> int:
        """Refuse more than one place, and one that is not there; how many rows it has."""
        if self.lake is not None and (self.history is not None or self.url):
            raise Trouble(
                "messages come from tables (--lake) or from a log (--url, --history), not from both.", code=MISUSED
            )
        if self.lake is not None:
            return rows_in(open_lake(self.lake))
        return _check(_source("log", self.url, self.login), self.url, self.history)

    def read_log(self, spark: SparkSession, columns: Sequence[str]) -> DataFrame:
        """At least these columns of the log, in the span of time, by when messages arrived.

        A log server makes no others: what a message says (``attributes``) costs it more than all the rest.
        """
        asked = _source("log", self.url, self.login) | {"columns": ",".join(columns)}
        return _records(spark, asked, self.history, self.span, "received")


def _source(stream: Literal["log", "events"], urls: list[str] | None, login: Login) -> dict[str, str]:
    return {"stream": stream, "url": ",".join(urls or [HERE]), **login.options()}


def _check(asked: Mapping[str, str], urls: list[str] | None, files: Path | None) -> int:
    if files is None:
        return check_servers(asked)
    if urls:
        raise Trouble("records come from log servers or from files, not from both.", code=MISUSED)
    return check_files(files)


def _records(spark: SparkSession, asked: Mapping[str, str], files: Path | None, span: TimeSpan, time: str) -> DataFrame:
    from tieline.pipeline.session import has_sources

    if files is None:
        if not has_sources(spark):
            raise Trouble(
                f"Spark {spark.version} cannot read log servers by itself, as Spark 4.0 can: give this job tables or "
                "files. Ingest works with both."
            )
        return span.of(spark.read.format("tieline").options(**asked).load(), time)
    return span.of(spark.read.parquet(str(files.absolute())), time)
