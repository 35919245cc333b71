"""``tieline log``: read the log that a broker keeps, follow it, or serve it to programs elsewhere."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal  # Any: the stream decides what its records are

import msgspec
import typer

from tieline.cli.instants import point_in_time
from tieline.cli.records import Format, Output, follow
from tieline.cli.trouble import FAILED, MISUSED, Trouble
from tieline.cli.verbs import new_app, with_blocks
from tieline.conf.error import ConfError
from tieline.conf.load import load
from tieline.conf.schema import Settings
from tieline.extras import library_in, remedy
from tieline.net.logserver import question
from tieline.net.logserver.offsets import Offsets, Readers, offsets_of
from tieline.net.logserver.question import (
    MOST_OFFSET,
    STREAMS,
    Beyond,
    Question,
    Stream,
    Unanswerable,
    meant,
)
from tieline.net.store.reading import Gap, Log
from tieline.net.store.schema import Damaged, Unusable

#: The exit code when records that were asked for are no longer there.
GAP: Final = 3

app = new_app("Read the log that a broker keeps, follow it, or serve it to others.")

Style = Annotated[Format, typer.Option("--format", help="For people, or one JSON object on each line.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogOptions:
    """Whose log it is."""

    data: Annotated[Path | None, typer.Option(metavar="DIR", help="The broker's --data directory.")] = None
    config: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The broker's configuration: its event types, and its directory."),
    ] = None

    def find(self, name: str | None = None) -> tuple[Settings, Path]:
        """The broker's settings, as far as they are known, and its directory."""
        try:
            settings = Settings() if self.config is None else _load(self.config, name)
        except ConfError as problem:
            raise Trouble(str(problem), code=MISUSED) from None
        place = self.data if self.data is not None else settings.data
        if place is None:
            raise Trouble("give the broker's directory: --data DIR, or --config FILE that names it.", code=MISUSED)
        if self.config is None and name is not None:
            settings = msgspec.structs.replace(settings, name=name)
        return settings, Path(place)


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedRecords:
    """Which records are printed, and how."""

    stream: Annotated[Stream, typer.Option(help="Messages, or what happened in the broker.")] = "log"
    topic: Annotated[
        list[str] | None,
        typer.Option("--topic", metavar="FILTER", help="Only these topics, + and # allowed. Repeatable."),
    ] = None
    where: Annotated[
        str | None, typer.Option(metavar="EXPRESSION", help="Only messages that say so, as in 'voltage > 240'.")
    ] = None
    allow_gap: Annotated[bool, typer.Option("--allow-gap", help="Go on behind records that retention removed.")] = False
    style: Style = "human"

    def open(self, place: Path) -> Log[Any]:  # Any: the stream decides which records there are
        """The stream, as a directory holds it."""
        return Log(place) if self.stream == "log" else Log(place, stream="events")

    def output(self, log: Log[Any], settings: Settings) -> Output:
        """What prints them, as the options say."""
        asked = Question(
            stream=self.stream,
            topics=question.topics(self.topic or []),
            where=None if self.where is None else question.where(self.where),
        )
        return Output(log, asked, settings, self.style, allow_gap=self.allow_gap)


@app.command()
@with_blocks
def read(
    *,
    first: Annotated[
        int | None, typer.Option("--from", metavar="OFFSET", min=0, max=MOST_OFFSET, help="The first offset.")
    ] = None,
    since: Annotated[
        float | None,
        typer.Option(
            metavar="TIME",
            parser=point_in_time,
            help="Instead: what came since 14:00, 2026-03-01 or 2026-03-01T12:00:00Z, in UTC; or 15m, 2h or 3d ago.",
        ),
    ] = None,
    last: Annotated[int | None, typer.Option(metavar="N", min=1, max=1_000_000, help="Instead: the last N.")] = None,
    end: Annotated[
        int | None,
        typer.Option("--to", metavar="OFFSET", min=0, max=MOST_OFFSET, help="Up to, and without, this one; else all."),
    ] = None,
    at: LogOptions,
    wanted: WantedRecords,
) -> None:
    """Print the records of a range: from an offset, since a time, or the last few of those that are asked for.

    Exit code 3 means that retention has removed records that were asked for; the sentence on standard error says which.
    """
    if sum(each is not None for each in (first, since, last)) != 1:
        raise Trouble("say where to begin, with one of --from OFFSET, --since TIME and --last N.", code=MISUSED)
    if last is not None and end is not None:
        raise Trouble("--last counts from the end: --to does not go with it.", code=MISUSED)
    settings, place = at.find()
    with _sentences(), wanted.open(place) as log:
        output = wanted.output(log, settings)
        if last is not None:
            output.print_last(last)
        elif first is not None:
            output.print(meant(log, first, end))
        elif since is not None:
            begin = log.since(since)
            output.print(meant(log, begin if end is None else min(begin, end), end), since_s=since)


@app.command()
@with_blocks
def tail(
    *,
    first: Annotated[
        str, typer.Option("--from", metavar="OFFSET", help="Where to begin; `end` waits for new ones.")
    ] = "end",
    at: LogOptions,
    wanted: WantedRecords,
) -> None:
    """Print records as they come, until Ctrl-C."""
    settings, place = at.find()
    with _sentences(), wanted.open(place) as log:
        output = wanted.output(log, settings)
        begin = log.latest() if first == "end" else meant(log, question.offset("--from", first), None).first
        try:
            follow(output, log, begin)
        except KeyboardInterrupt:
            return


@app.command()
@with_blocks
def offsets(*, at: LogOptions, style: Style = "human") -> None:
    """Print where the streams begin and end, how much they hold, and how old the oldest record is."""
    _, place = at.find()
    with _sentences():
        found = [offsets_of(place, each) for each in STREAMS]
    if style == "json":
        for each in found:
            print(msgspec.json.encode(each._asdict()).decode())
        return
    _table(("stream", "earliest", "latest", "bytes", "oldest"), [_offsets_row(each) for each in found])


@app.command()
@with_blocks
def readers(*, at: LogOptions, style: Style = "human") -> None:
    """Print the named readers: where each has got to, and how far behind the end it is."""
    settings, place = at.find()
    with _sentences():
        latest = offsets_of(place, "log").latest
        found = Readers(place, None if at.config is None else settings.log.readers).positions()
    if style == "json":
        for name, there in found.items():
            print(msgspec.json.encode({"name": name, "position": there, "behind": latest - (there or 0)}).decode())
        return
    rows = [
        (name, "-" if there is None else f"{there:,}", f"{latest - (there or 0):,}") for name, there in found.items()
    ]
    _table(("reader", "position", "behind"), rows)


@app.command()
@with_blocks
def serve(  # one for each option
    *,
    at: LogOptions,
    url: Annotated[str, typer.Option(metavar="URL", help="Where to listen; https:// needs a certificate.")] = (
        "http://127.0.0.1:9884"
    ),
    certificate: Annotated[Path | None, typer.Option(metavar="FILE", help="PEM certificate chain.")] = None,
    key: Annotated[Path | None, typer.Option(metavar="FILE", help="PEM private key.")] = None,
    name: Annotated[str | None, typer.Option(metavar="NAME", help="The broker's name, for readers of several.")] = None,
    reads: Annotated[int, typer.Option(metavar="COUNT", min=1, max=1_000, help="Ranges read at the same time.")] = 8,
    rows: Annotated[int, typer.Option(metavar="COUNT", min=1, help="Offsets that one request may span.")] = 10_000_000,
    log_level: Annotated[Literal["debug", "info", "warning", "error"], typer.Option(help="Least level written.")] = (
        "info"
    ),
    log_format: Annotated[Format, typer.Option(help="Log lines for people or for programs.")] = "human",
) -> None:
    r"""Serve ranges of the log over HTTP, as Arrow streams, until SIGTERM or SIGINT.

    Needs the extra: pip install 'tieline\[log]'. Users and rules are those of --config; without users only programs on
    this machine are served.
    """
    settings, place = at.find(name)
    config = at.config
    try:
        from tieline.net.auth.passwords import PasswordFileError
        from tieline.net.logserver.app import Bounds
        from tieline.net.logserver.serve import Unservable, address, run
    except ModuleNotFoundError as missing:
        raise Trouble(f"the log server needs {library_in(missing)}: {remedy('log')}") from None
    try:
        run(
            place,
            address(url, certificate, key),
            settings,
            Bounds(reads=reads, rows=rows),
            reload=None if config is None else lambda: _load(config, name),
            log_level=log_level,
            log_format=log_format,
        )
    except (Unservable, PasswordFileError) as problem:
        raise Trouble(str(problem), code=MISUSED) from None


def _load(config: Path, name: str | None) -> Settings:
    settings = load(config)
    return settings if name is None else msgspec.structs.replace(settings, name=name)


@contextmanager
def _sentences() -> Iterator[None]:
    """Whatever the log refuses is one sentence and an exit code."""
    try:
        yield
    except Gap as gap:
        missing = gap.last - gap.first
        raise Trouble(f"{gap}; {missing} records are missing. --allow-gap goes on behind them.", code=GAP) from None
    except Unanswerable as problem:
        raise Trouble(f"--where: {problem}" if problem.rule == "where" else str(problem), code=MISUSED) from None
    except (Beyond, Damaged, Unusable) as problem:
        raise Trouble(str(problem), code=FAILED) from None
    except sqlite3.Error as problem:
        raise Trouble(f"the store cannot be read ({problem}): run `tieline store check`.", code=FAILED) from None


def _offsets_row(found: Offsets) -> tuple[str, ...]:
    age = "-" if found.oldest is None else _age(max(0.0, time.time() - found.oldest))
    return found.stream, f"{found.earliest:,}", f"{found.latest:,}", f"{found.bytes:,}", age


def _age(seconds: float) -> str:
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.1f} s"


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> None:
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    for row in (head, *rows):
        first, *rest = (cell.rjust(width) for cell, width in zip(row, widths, strict=True))
        print("  ".join((first.strip().ljust(widths[0]), *rest)))
