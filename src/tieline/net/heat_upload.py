"""Heat tables from outside, as they come in: a piece at a time, checked beside the broker's own work.

Theory of operation
-------------------
A table may have a hundred thousand entries, and taking them in takes a second of one core.  So it comes in pieces of at
most :data:`MOST_PIECE` bytes, each a JSON object of filters and numbers, and while a piece is taken in others get their
turn after every few hundred entries.  What was taken in is nobody's business until the table is complete; then it
replaces the one before it in one step.  A piece that is wrong ends the whole table.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal  # Any: values of JSON

import msgspec
from msgspec import Meta, Struct

from tieline.conf.quantities import Duration, seconds
from tieline.core.routing.heat_table import MOST_SHOWN, PERIOD_S, HeatError, HeatTable, check_period

if TYPE_CHECKING:
    from tieline.core.broker import Broker

#: The longest piece, in bytes.
MOST_PIECE: Final = 65_536
#: Entries between two turns of others.
_TURN: Final = 256


_OBJECT: Final = msgspec.json.Decoder(dict[str, Any])


class HeatRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``{"do": "heat", …}``: look at the table, give one, or return to the broker's own heat."""

    do: Literal["heat"]
    act: Literal["show", "put", "clear"] = "show"
    #: Filters and numbers; the numbers are checked one by one, because the broker's words for them are better.
    topics: dict[str, Any] = {}
    #: For how long the table holds: seconds, or a number with its unit.
    period: float | str = PERIOD_S
    #: Another piece of the same table follows on this connection.
    more: bool = False
    #: Entries to show.
    most: Annotated[int, Meta(ge=0, le=MOST_SHOWN)] = 10


class HeatUpload:
    """A table in the making; one for each connection that brings one."""

    def __init__(self, *, pause_s: float = 0.0) -> None:
        """``pause_s`` is how long others get between two turns of the work."""
        self._pause_s = pause_s
        self._table: HeatTable | None = None
        self._entries = 0

    async def add(self, topics: dict[str, Any], max_levels: int) -> None:
        """Take a piece in; raises HeatError, and then the table is of no use: :meth:`drop` it."""
        table = self._table
        if table is None:
            table = self._table = HeatTable(max_levels)
        for filter_, heat in topics.items():
            table.add(filter_, heat)
            self._entries += 1
            if self._entries % _TURN == 0:
                await asyncio.sleep(self._pause_s)

    def take(self) -> HeatTable:
        """The finished table; the next piece begins another one.  Raises HeatError if there is none."""
        table, self._table = self._table, None
        if table is None:
            raise HeatError("the table is empty")
        return table

    def drop(self) -> None:
        """Forget what was taken in."""
        self._table = None


async def answer(core: Broker, upload: HeatUpload, request: dict[str, Any]) -> dict[str, Any]:
    """Do what a request on the management channel asks for; raises HeatError, and then nothing has changed."""
    try:
        return await _answer(core, upload, request)
    except HeatError:
        upload.drop()
        raise


async def _answer(core: Broker, upload: HeatUpload, request: dict[str, Any]) -> dict[str, Any]:
    try:
        asked = msgspec.convert(request, HeatRequest)
    except msgspec.ValidationError as problem:
        raise HeatError(str(problem).lower()) from None
    if asked.act == "clear":
        core.heat_source.clear(by="management")
    elif asked.act == "put":
        period_s = period_of(asked.period)
        await upload.add(asked.topics, core.settings.limits.topic_levels)
        if not asked.more:
            core.heat_source.put(upload.take(), period_s, monotonic(), by="management")
    return shown(core, monotonic(), 0 if asked.more else asked.most)


def shown(core: Broker, now: float, most: int = 10) -> dict[str, Any]:
    """Whose heat counts, for how long, and how hot the hottest are."""
    source = core.heat_source
    table = source.table
    return {
        "source": source.name,
        "entries": 0 if table is None else len(table),
        "period_s": source.period_s,
        "left_s": source.left_s(now),
        "hottest": [] if table is None else table.hottest(most),
    }


def pieces(body: bytes) -> Iterator[dict[str, Any]]:
    """The pieces of a table: one JSON object, or one on each line if it is longer than a piece; raises HeatError."""
    if len(body) <= MOST_PIECE:
        try:
            yield _OBJECT.decode(body)
        except msgspec.DecodeError:
            pass  # several lines, perhaps
        else:
            return
    number = start = 0
    while start < len(body):
        number += 1
        end = body.find(b"\n", start)
        end = len(body) if end < 0 else end
        if end - start > MOST_PIECE:
            raise HeatError(f"line {number} has more than {MOST_PIECE:,} bytes: write several objects, one on a line")
        line, start = body[start:end], end + 1
        if line.strip():
            try:
                yield _OBJECT.decode(line)
            except msgspec.DecodeError:
                raise HeatError(f"line {number} is no JSON object of filters and numbers") from None


def period_of(written: float | str) -> float:
    """A period in seconds, as a number or as configuration writes it; raises HeatError."""
    try:
        period_s = float(written)
    except (ValueError, OverflowError):
        try:
            period_s = seconds(msgspec.convert(written, Duration))
        except msgspec.ValidationError:
            raise HeatError("the period is none: write seconds, or a number with s, m or h") from None
    check_period(period_s)
    return period_s
