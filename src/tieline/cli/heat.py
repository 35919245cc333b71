"""``tieline heat``: give a running broker the heat of its topics, look at it, or take it back."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from tieline.cli.frame import duration, number, printable
from tieline.cli.management import Management
from tieline.cli.trouble import MISUSED, Trouble
from tieline.conf.paths import management_socket
from tieline.conf.schema import Settings

app = typer.Typer(
    help="Give a running broker the heat of its topics, look at it, or take it back.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

_NAME = Settings().name
#: Bytes of filters in one request: well below the longest line that a broker reads, with everything around them.
_PIECE = 24_576

Data = Annotated[Path | None, typer.Option(metavar="DIR", help="The broker's --data directory.")]
Name = Annotated[str, typer.Option(metavar="NAME", help="The broker's --name, if it has no data directory.")]
Socket = Annotated[Path | None, typer.Option(metavar="PATH", help="The management socket itself.")]


@app.command()
def put(
    file: Annotated[str, typer.Argument(metavar="FILE", help="The table; - reads standard input.")],
    *,
    period: Annotated[str, typer.Option(metavar="TIME", help="How long it holds: seconds, or with s, m or h.")] = "60s",
    data: Data = None,
    name: Name = _NAME,
    socket: Socket = None,
) -> None:
    """Let topics be as hot as a table says, for a while.

    The table is a JSON object of topics or filters and numbers, {"plant/7/state": 12.5, "plant/+/log": 0}, or several,
    one on each line. It replaces the one before it, whole or not at all. When its time is over the broker's own heat
    counts again, so whoever computes heat gives a new table before that.
    """
    table = _read(file)
    with _reach(data, name, socket) as broker:
        print(said(give(broker, table, period)))


@app.command()
def show(
    *,
    most: Annotated[int, typer.Option(metavar="N", help="Show so many of the hottest entries.", min=0, max=1000)] = 10,
    as_json: Annotated[bool, typer.Option("--json", help="Print the broker's answer as JSON.")] = False,
    data: Data = None,
    name: Name = _NAME,
    socket: Socket = None,
) -> None:
    """Say whose heat counts, for how long, and how hot the hottest are."""
    with _reach(data, name, socket) as broker:
        answer = broker.ask("heat", most=most)
    if as_json:
        print(json.dumps(answer))
    elif answer["source"] == "own":
        print("own: topics are as hot as the broker finds them")
    else:
        print(f"given: {answer['entries']:,} entries, {duration(answer['left_s'])} left")
        for filter_, heat in answer["hottest"]:
            print(f"{number(heat):>12}  {printable(filter_)}")


@app.command()
def clear(*, data: Data = None, name: Name = _NAME, socket: Socket = None) -> None:
    """Return to the broker's own heat, before the time of the table is over."""
    with _reach(data, name, socket) as broker:
        broker.ask("heat", act="clear")
    print("own")


def give(broker: Management, table: dict[str, Any], period: str) -> dict[str, Any]:
    """Let a table count, in as many requests as it takes; the broker's last answer."""
    parts = [*pieces(table)] or [{}]
    for part in parts[:-1]:
        broker.ask("heat", act="put", topics=part, period=period, more=True)
    return broker.ask("heat", act="put", topics=parts[-1], period=period)


def said(given: dict[str, Any]) -> str:
    """A broker's answer to a table, for people."""
    return f"given: {given['entries']:,} entries for {duration(given['period_s'])}"


def _reach(data: Path | None, name: str, socket: Path | None) -> Management:
    return Management(socket or management_socket(str(data) if data is not None else None, name))


def _read(file: str) -> dict[str, Any]:
    """The table in a file: one object, or one on each line."""
    try:
        text = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except OSError as problem:
        raise Trouble(f"cannot read {file}: {(problem.strerror or str(problem)).lower()}.") from None
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except msgspec.DecodeError as problem:
        whole = problem
    table: dict[str, Any] = {}
    try:
        for line in text.splitlines():
            if line.strip():
                piece = msgspec.json.decode(line, type=dict[str, Any])
                if twice := table.keys() & piece.keys():
                    raise Trouble(f'{file} has "{printable(min(twice))}" twice', code=MISUSED)
                table |= piece
    except msgspec.DecodeError:
        raise Trouble(f"{file} holds no JSON object of filters and numbers: {whole}", code=MISUSED) from None
    return table


def pieces(table: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The table in parts that fit in a request, and in a line of one over HTTP."""
    piece: dict[str, Any] = {}
    size = 0
    for filter_, heat in table.items():
        cost = len(msgspec.json.encode((filter_, heat)))
        if piece and size + cost > _PIECE:
            yield piece
            piece, size = {}, 0
        piece[filter_] = heat
        size += cost
    if piece:
        yield piece
