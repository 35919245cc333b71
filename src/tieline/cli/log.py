"""``tieline log``: read the log that a broker keeps, follow it, or serve it to programs elsewhere."""

from __future__ import annotations

import select
import sqlite3
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import msgspec
import typer

from tieline.cli.records import Format, line
from tieline.cli.trouble import FAILED, MISUSED, Trouble
from tieline.cli.verbs import new_app
from tieline.conf.error import ConfError
from tieline.conf.load import load
from tieline.conf.schema import Settings
from tieline.extras import library_in, remedy
from tieline.log.record import Occurrence, Record
from tieline.net.logserver import question
from tieline.net.logserver.offsets import Offsets, Readers, offsets_of
from tieline.net.logserver.question import (
    MOST_OFFSET,
    STREAMS,
    Beyond,
    Question,
    Span,
    Stream,
    Unanswerable,
    meant,
    portions,
)
from tieline.net.logserver.selection import Selection
from tieline.net.store.reading import Gap, Log
from tieline.net.store.schema import Damaged, Unusable

#: The exit code when records that were asked for are no longer there.
GAP: Final = 3
#: How long to wait before looking for more records: at first, and when there have been none for a while.
_SOON_S: Final = 0.05
_LATER_S: Final = 1.0

app = new_app("Read the log that a broker keeps, follow it, or serve it to others.")

Data = Annotated[Path | None, typer.Option(metavar="DIR", help="The broker's --data directory.")]
Config = Annotated[
    Path | None, typer.Option(metavar="FILE", help="The broker's configuration: its event types, and its directory.")
]
OneStream = Annotated[Stream, typer.Option(help="Messages, or what happened in the broker.")]
Topics = Annotated[
    list[str] | None, typer.Option("--topic", metavar="FILTER", help="Only these topics, + and # allowed. Repeatable.")
]
Where = Annotated[
    str | None, typer.Option(metavar="EXPRESSION", help="Only messages that say so, as in 'voltage > 240'.")
]
AllowGap = Annotated[bool, typer.Option("--allow-gap", help="Go on behind records that retention removed.")]
Style = Annotated[Format, typer.Option("--format", help="For people, or one JSON object on each line.")]


@app.command()
def read(
    *,
    first: Annotated[int, typer.Option("--from", metavar="OFFSET", min=0, max=MOST_OFFSET, help="The first offset.")],
    last: Annotated[
        int | None,
        typer.Option("--to", metavar="OFFSET", min=0, max=MOST_OFFSET, help="Up to, and without, this one; else all."),
    ] = None,
    data: Data = None,
    config: Config = None,
    stream: OneStream = "log",
    topic: Topics = None,
    where: Where = None,
    allow_gap: AllowGap = False,
    style: Style = "human",
) -> None:
    """Print the records of a range.

    Exit code 3 means that retention has removed records that were asked for; the sentence on standard error says which.
    """
    settings, place = _settings(config, data)
    with _sentences(), _open(place, stream) as log:
        output = _Output(log, _question(stream, topic, where), settings, style, allow_gap=allow_gap)
        output.print(meant(log, first, last))


@app.command()
def tail(
    *,
    first: Annotated[
        str, typer.Option("--from", metavar="OFFSET", help="Where to begin; `end` waits for new ones.")
    ] = "end",
    data: Data = None,
    config: Config = None,
    stream: OneStream = "log",
    topic: Topics = None,
    where: Where = None,
    allow_gap: AllowGap = False,
    style: Style = "human",
) -> None:
    """Print records as they come, until Ctrl-C."""
    settings, place = _settings(config, data)
    with _sentences(), _open(place, stream) as log:
        output = _Output(log, _question(stream, topic, where), settings, style, allow_gap=allow_gap)
        begin = log.latest() if first == "end" else meant(log, question.offset("--from", first), None).first
        try:
            _follow(output, log, begin)
        except KeyboardInterrupt:
            return


@app.command()
def offsets(*, data: Data = None, config: Config = None, style: Style = "human") -> None:
    """Print where the streams begin and end, how much they hold, and how old the oldest record is."""
    _, place = _settings(config, data)
    with _sentences():
        found = [offsets_of(place, each) for each in STREAMS]
    if style == "json":
        for each in found:
            print(msgspec.json.encode(each._asdict()).decode())
        return
    _table(("stream", "earliest", "latest", "bytes", "oldest"), [_offsets_row(each) for each in found])


@app.command()
def readers(*, data: Data = None, config: Config = None, style: Style = "human") -> None:
    """Print the named readers: where each has got to, and how far behind the end it is."""
    settings, place = _settings(config, data)
    with _sentences():
        latest = offsets_of(place, "log").latest
        found = Readers(place, None if config is None else settings.log.readers).positions()
    if style == "json":
        for name, at in found.items():
            print(msgspec.json.encode({"name": name, "position": at, "behind": latest - (at or 0)}).decode())
        return
    rows = [(name, "-" if at is None else f"{at:,}", f"{latest - (at or 0):,}") for name, at in found.items()]
    _table(("reader", "position", "behind"), rows)


@app.command()
def serve(
    *,
    data: Data = None,
    config: Config = None,
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
    settings, place = _settings(config, data, name)
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


# --- what the commands share ------------------------------------------------------------------------------------------


class _Output:
    """Prints those records of a log that are asked for."""

    def __init__(self, log: Log[Any], asked: Question, settings: Settings, style: Format, *, allow_gap: bool) -> None:
        self._selection = Selection(asked, settings)
        self._log = log
        self._is_log = asked.stream == "log"
        self._style: Format = style
        self._allow_gap = allow_gap

    def print(self, span: Span) -> None:
        """Print a range."""
        if self._is_log:
            # a broker may have started with other event types since the last range
            self._selection.types = self._log.types()
        kind: Any = Record if self._is_log else Occurrence
        while span.first < span.last:
            try:
                for portion in portions(self._log, kind, span):
                    sys.stdout.writelines(f"{each}\n" for each in self._lines(portion))
                break
            except Gap as gap:
                sys.stdout.flush()
                if not self._allow_gap:
                    raise
                print(f"tieline: {gap}; {gap.last - gap.first} records are missing.", file=sys.stderr)
                span = Span(gap.last, span.last)
        sys.stdout.flush()

    def _lines(self, records: Sequence[Record] | Sequence[Occurrence]) -> Iterator[str]:
        """Those that are asked for, as lines."""
        selection = self._selection
        for each in records:
            if isinstance(each, Occurrence):
                if selection.takes_occurrence(each):
                    yield line(each, self._style)
            elif selection.takes(each):
                if self._style == "json":
                    # people see the payload itself
                    selection.types.complete(each)
                yield line(each, self._style)


def _follow(output: _Output, log: Log[Any], place: int) -> None:
    """Print what comes; look less often while nothing does."""
    gone = select.poll()
    gone.register(sys.stdout.fileno(), 0)  # only that it has broken
    wait_s = _SOON_S
    while True:
        latest = log.latest()
        if latest > place:
            output.print(Span(place, latest))
            place, wait_s = latest, _SOON_S
        elif gone.poll(wait_s * 1_000):
            raise BrokenPipeError
        else:
            wait_s = min(2 * wait_s, _LATER_S)


def _question(stream: Stream, filters: list[str] | None, where: str | None) -> Question:
    return Question(
        stream=stream,
        topics=question.topics(filters or []),
        where=None if where is None else question.where(where),
    )


def _settings(config: Path | None, data: Path | None, name: str | None = None) -> tuple[Settings, Path]:
    """The broker's settings, as far as they are known, and its directory."""
    try:
        settings = Settings() if config is None else _load(config, name)
    except ConfError as problem:
        raise Trouble(str(problem), code=MISUSED) from None
    place = data if data is not None else settings.data
    if place is None:
        raise Trouble("give the broker's directory: --data DIR, or --config FILE that names it.", code=MISUSED)
    if config is None and name is not None:
        settings = msgspec.structs.replace(settings, name=name)
    return settings, Path(place)


def _load(config: Path, name: str | None) -> Settings:
    settings = load(config)
    return settings if name is None else msgspec.structs.replace(settings, name=name)


def _open(place: Path, stream: Stream) -> Log[Any]:
    return Log(place) if stream == "log" else Log(place, stream="events")


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
