"""Options that jobs share, each declared once: single ones, and blocks that reach a job as one value."""

from __future__ import annotations

import os
import tomllib
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import msgspec
import typer

from tieline.cli.instants import instant
from tieline.cli.management import password_in
from tieline.cli.pipeline.running import is_server, session
from tieline.cli.trouble import MISUSED, Trouble
from tieline.conf.error import ConfError
from tieline.conf.load import load
from tieline.conf.quantities import Duration, seconds
from tieline.conf.schema import Settings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from tieline.pipeline.lake import Lake

#: Where a log server listens unless told otherwise.
HERE: Final = "http://127.0.0.1:9884"


LakePath = Annotated[
    str,
    typer.Option("--lake", metavar="DIR", help="The directory of the tables, or s3://, abfss://, gs:// or hdfs://."),
]
Config = Annotated[
    Path | None, typer.Option("--config", metavar="FILE", help="The broker's configuration: its event types.")
]
Urls = Annotated[
    list[str] | None, typer.Option("--url", metavar="URL", help=f"A broker's log server. Repeatable; else {HERE}.")
]
Topics = Annotated[
    list[str] | None, typer.Option("--topic", metavar="FILTER", help="Only these topics, + and # allowed. Repeatable.")
]
Json = Annotated[bool, typer.Option("--json", help="For programs: one JSON object.")]


#: A job over so many rows is over before a JVM that compiles well has paid off.
_FEW_ROWS: Final = 2_000_000

#: Names the file with what an object store is told; in the environment, because every verb that has a lake needs it.
_STORAGE: Final = "TIELINE_STORAGE"


def storage_options() -> dict[str, str]:
    """What the object store of a lake is told besides what is in the environment: keys, an endpoint, a region."""
    file = os.environ.get(_STORAGE)
    if not file:
        return {}
    try:
        found = tomllib.loads(Path(file).read_text())
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as problem:
        raise Trouble(f"{_STORAGE} names {file}, which cannot be read: {problem}.", code=MISUSED) from None
    if wrong := [name for name, value in found.items() if not isinstance(value, str)]:
        raise Trouble(f'{file}: {", ".join(wrong)}: every option is a text, NAME = "VALUE".', code=MISUSED)
    return found


def open_lake(where: str) -> Lake:
    """The lake at a place."""
    from tieline.pipeline.lake import Lake

    return Lake.open(where, options=storage_options())


def settings_of(config: Path | None) -> Settings:
    """The broker's settings; the defaults where no file is given."""
    if config is None:
        return Settings()
    try:
        return load(config)
    except ConfError as problem:
        raise Trouble(str(problem), code=MISUSED) from None


def whole_seconds(flag: str, text: str) -> int:
    """A length of time in whole seconds, as configuration writes it: 30s, 5m, 1h."""
    try:
        found = seconds(msgspec.convert(text, Duration))
    except msgspec.ValidationError:
        raise Trouble(f'{flag} takes a length of time, such as 30s, 5m or 1h; not "{text}".', code=MISUSED) from None
    if found < 1 or found != int(found):
        raise Trouble(f"{flag} takes whole seconds, at least one; not {text}.", code=MISUSED)
    return int(found)


# --- blocks -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class OnSpark:
    """Where a job runs."""

    master: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Where Spark runs: local[*], spark://HOST:7077, sc://HOST; else as spark-submit or spark-defaults "
            "say, or here.",
        ),
    ] = None
    conf: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE",
            help="A setting of Spark, such as spark.executor.memory=4g. Repeatable.",
            show_default=False,
        ),
    ] = None
    verbose: Annotated[bool, typer.Option("--verbose", help="Let Spark tell what it does.")] = False

    @property
    def is_connect(self) -> bool:
        """Whether the master is a Spark Connect server."""
        return is_server(self.master)

    def session(
        self, name: str, *, rows: int | None = None, work: str | None = None
    ) -> AbstractContextManager[SparkSession]:
        """A session that ends with the block; ``rows`` is about how many the job reads, if that is known.

        Such a job ends by itself.  With few, most of the time goes into a JVM that compiles what it runs once: then it
        compiles quickly instead.  People are told that ``work`` is done, if that is said.
        """
        given = self.settings()
        if rows is not None and rows <= _FEW_ROWS and self.master is None:
            from tieline.pipeline.session import brief

            given = {**brief(), **given}
        return session(self.master, name, settings=given, verbose=self.verbose, ends=rows is not None, work=work)

    def settings(self) -> dict[str, str]:
        """The settings given with ``--conf``, by name; fails on what is none of Spark's."""
        found: dict[str, str] = {}
        for each in self.conf or ():
            key, is_there, value = each.partition("=")
            if not is_there or not key.startswith("spark."):
                raise Trouble(f'--conf takes a setting of Spark, spark.NAME=VALUE; not "{each}".', code=MISUSED)
            found[key] = value
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeSpan:
    """A span of time."""

    since: Annotated[
        datetime | None,
        typer.Option("--from", metavar="TIME", parser=instant, help="Only events from this time on; UTC if not said."),
    ] = None
    until: Annotated[
        datetime | None,
        typer.Option("--to", metavar="TIME", parser=instant, help="Only events before this time; UTC if not said."),
    ] = None

    def of(self, rows: DataFrame, column: str) -> DataFrame:
        """The rows whose column lies in it: from one moment up to, and without, another."""
        from pyspark.sql import functions as sql

        if self.since is not None:
            rows = rows.where(sql.col(column) >= sql.lit(self.since))
        return rows if self.until is None else rows.where(sql.col(column) < sql.lit(self.until))


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """Who asks log servers and brokers."""

    user: Annotated[str | None, typer.Option(metavar="NAME", help="The user for the broker and its log server.")] = None
    password_file: Annotated[Path | None, typer.Option(metavar="FILE", help="A file with the user's password.")] = None

    def options(self) -> dict[str, str]:
        """What Spark's source is told about it.

        Not the file's name: behind Spark Connect it would be read on another machine.
        """
        given = {"user": self.user, "password": password_in(self.password_file)}
        return {name: value for name, value in given.items() if value is not None}
