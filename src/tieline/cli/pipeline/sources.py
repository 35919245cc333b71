"""Where jobs read what brokers wrote down: log servers by their addresses, or directories with the same columns."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

import msgspec
import typer

from tieline.cli.trouble import MISUSED, Trouble
from tieline.conf.schema import Duration, seconds

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: Where a log server listens unless told otherwise.
HERE: Final = "http://127.0.0.1:9884"

Urls = Annotated[
    list[str] | None, typer.Option("--url", metavar="URL", help=f"A broker's log server. Repeatable; else {HERE}.")
]
Files = Annotated[
    Path | None, typer.Option("--history", metavar="DIR", help="Read Parquet files with the log's columns instead.")
]
EventFiles = Annotated[
    Path | None,
    typer.Option("--events", metavar="DIR", help="Read Parquet files with the columns of the events instead."),
]
User = Annotated[str | None, typer.Option(metavar="NAME", help="The user for the broker and its log server.")]
PasswordFile = Annotated[Path | None, typer.Option(metavar="FILE", help="A file with the user's password.")]


def records(
    spark: SparkSession,
    stream: Literal["log", "events"],
    urls: list[str] | None,
    files: Path | None,
    *,
    user: str | None = None,
    password_file: Path | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    columns: Sequence[str] | None = None,
) -> DataFrame:
    """What brokers wrote down, in a span of time, by when they did; of the log at least ``columns``, if they are given.

    A log server makes no others then: what a message says (``attributes``) costs it more than all the rest.
    """
    if files is not None and urls:
        raise Trouble("records come from log servers or from files, not from both.", code=MISUSED)
    if files is not None:
        if not files.is_dir():
            raise Trouble(f"{files} is no directory.", code=MISUSED)
        found = spark.read.parquet(str(files.absolute()))
    else:
        asked = options(stream, urls, user, password_file)
        if columns is not None:
            asked["columns"] = ",".join(columns)
        found = spark.read.format("tieline").options(**asked).load()
    return between(found, "received" if stream == "log" else "time", since, until)


def options(stream: str, urls: list[str] | None, user: str | None, password_file: Path | None) -> dict[str, str]:
    """The options of Spark's source for some log servers."""
    found = {"stream": stream, "url": ",".join(urls or [HERE])}
    if user is not None:
        found["user"] = user
    password = password_in(password_file)
    if password is not None:
        # not the file's name: behind Spark Connect it would be read on another machine
        found["password"] = password
    return found


def between(rows: DataFrame, column: str, since: datetime | None, until: datetime | None) -> DataFrame:
    """The rows from one moment up to, and without, another."""
    from pyspark.sql import functions as sql

    if since is not None:
        rows = rows.where(sql.col(column) >= sql.lit(since))
    return rows if until is None else rows.where(sql.col(column) < sql.lit(until))


def password_in(file: Path | None) -> str | None:
    """The password that a file holds."""
    if file is None:
        return None
    try:
        return file.read_text().rstrip("\r\n")
    except OSError as problem:
        raise Trouble(f"cannot read {file}: {(problem.strerror or str(problem)).lower()}.") from None


def whole_seconds(flag: str, text: str) -> int:
    """A length of time in whole seconds, as configuration writes it: 30s, 5m, 1h."""
    try:
        found = seconds(msgspec.convert(text, Duration))
    except msgspec.ValidationError:
        raise Trouble(f'{flag} takes a length of time, such as 30s, 5m or 1h; not "{text}".', code=MISUSED) from None
    if found < 1 or found != int(found):
        raise Trouble(f"{flag} takes whole seconds, at least one; not {text}.", code=MISUSED)
    return int(found)
