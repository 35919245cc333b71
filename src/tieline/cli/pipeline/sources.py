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

from tieline.cli.pipeline.flags import HERE, Login, Span, Urls, open_lake
from tieline.cli.trouble import MISUSED, Trouble

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: How long a log server may be away when a job begins; later it may be away for longer.
_FIRST_S: Final = 5.0


def check_servers(options: Mapping[str, str]) -> None:
    """Ask every log server once; raises the sentence of one that does not answer, or lets nobody in."""
    from tieline.pipeline.source.offsets import survey
    from tieline.pipeline.source.options import read_options

    read = read_options(options)
    survey(replace(read, patience_s=min(_FIRST_S, read.patience_s)))


def check_files(directory: Path) -> None:
    """Refuse a directory without Parquet files."""
    if not directory.is_dir():
        raise Trouble(f"{directory} is no directory.", code=MISUSED)
    if next(directory.rglob("*.parquet"), None) is None:
        raise Trouble(f"{directory} has no Parquet files.", code=MISUSED)


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
    span: Span
    login: Login

    def check(self) -> None:
        """Look whether servers answer, or files are there."""
        _check(self.options(), self.url, self.events)

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
    span: Span
    login: Login

    def check(self) -> None:
        """Refuse more than one place, and one that is not there."""
        if self.lake is not None and (self.history is not None or self.url):
            raise Trouble(
                "messages come from tables (--lake) or from a log (--url, --history), not from both.", code=MISUSED
            )
        if self.lake is not None:
            open_lake(self.lake)
        else:
            _check(_source("log", self.url, self.login), self.url, self.history)

    def read_log(self, spark: SparkSession, columns: Sequence[str]) -> DataFrame:
        """At least these columns of the log, in the span of time, by when messages arrived.

        A log server makes no others: what a message says (``attributes``) costs it more than all the rest.
        """
        asked = _source("log", self.url, self.login) | {"columns": ",".join(columns)}
        return _records(spark, asked, self.history, self.span, "received")


def _source(stream: Literal["log", "events"], urls: list[str] | None, login: Login) -> dict[str, str]:
    return {"stream": stream, "url": ",".join(urls or [HERE]), **login.options()}


def _check(asked: Mapping[str, str], urls: list[str] | None, files: Path | None) -> None:
    if files is None:
        check_servers(asked)
        return
    if urls:
        raise Trouble("records come from log servers or from files, not from both.", code=MISUSED)
    check_files(files)


def _records(spark: SparkSession, asked: Mapping[str, str], files: Path | None, span: Span, time: str) -> DataFrame:
    if files is None:
        return span.of(spark.read.format("tieline").options(**asked).load(), time)
    return span.of(spark.read.parquet(str(files.absolute())), time)
