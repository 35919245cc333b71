"""``tieline heat``: give a running broker the heat of its topics, look at it, or take it back."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Final  # Any: values of JSON
from urllib.parse import quote

import msgspec
import typer

from tieline.cli.management import Management, RunningBroker, Visitor, ask_over_http
from tieline.cli.terminal import duration, number
from tieline.cli.trouble import MISUSED, Trouble
from tieline.cli.verbs import new_app, with_blocks
from tieline.net.log import printable

app = new_app("Give a running broker the heat of its topics, look at it, or take it back.")

#: Bytes of filters in one request: well below the longest line that a broker reads, with everything around them.
_PIECE = 24_576


@app.command()
@with_blocks
def put(
    file: Annotated[str, typer.Argument(metavar="FILE", help="The table; - reads standard input.")],
    *,
    period: Annotated[str, typer.Option(metavar="TIME", help="How long it holds: seconds, or with s, m or h.")] = "60s",
    at: RunningBroker,
) -> None:
    """Let topics be as hot as a table says, for a while.

    The table is a JSON object of topics or filters and numbers, {"plant/7/state": 12.5, "plant/+/log": 0}, or several,
    one on each line. It replaces the one before it, whole or not at all. When its time is over the broker's own heat
    counts again, so whoever computes heat gives a new table before that.
    """
    table = _read(file)
    with at.reach() as broker:
        print(said(give(broker, table, period)))


@app.command()
@with_blocks
def show(
    *,
    most: Annotated[int, typer.Option(metavar="N", help="Show so many of the hottest entries.", min=0, max=1000)] = 10,
    as_json: Annotated[bool, typer.Option("--json", help="Print the broker's answer as JSON.")] = False,
    at: RunningBroker,
) -> None:
    """Say whose heat counts, for how long, and how hot the hottest are."""
    with at.reach() as broker:
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
@with_blocks
def clear(*, at: RunningBroker) -> None:
    """Return to the broker's own heat, before the time of the table is over."""
    with at.reach() as broker:
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


_PATH: Final = "/v1/heat"


def give_over_http(
    url: str, table: dict[str, Any], period: str, *, user: str | None = None, password: str | None = None
) -> dict[str, Any]:
    """Let a table count; the broker's answer."""
    body = b"\n".join(msgspec.json.encode(each) for each in pieces(table))
    return ask_over_http(url, "PUT", f"{_PATH}?period={quote(period)}", body, Visitor(user, password))
