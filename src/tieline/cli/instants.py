"""Points in time as people write them on a command line."""

from __future__ import annotations

import re
from datetime import UTC, datetime, time, timedelta
from typing import Final

import typer

_AGO: Final = re.compile(r"(\d{1,9})([smhd])")
_UNITS_S: Final = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}


def instant(text: str) -> datetime:
    """A point in time as people write it: a date, or a date and time; in UTC where no offset is given."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise typer.BadParameter(f'"{text}" is no time; write 2026-03-01 or 2026-03-01T12:00:00Z.') from None
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)


def point_in_time(text: str) -> float:
    """The same or, as it was last, a time of day, or how long ago; in seconds since 1970."""
    return _point_in_time(text, datetime.now(UTC))


def _point_in_time(text: str, now: datetime) -> float:
    if ago := _AGO.fullmatch(text):
        return now.timestamp() - int(ago[1]) * _UNITS_S[ago[2]]
    if re.fullmatch(r"\d\d?:\d\d(:\d\d)?", text):
        try:
            of_day = time.fromisoformat(text.zfill(len(text) + (text.index(":") == 1)))
        except ValueError:
            raise typer.BadParameter(f'"{text}" is no time of day; write 14:00 or 14:00:30.') from None
        found = datetime.combine(now.date(), of_day, UTC)
        return (found if found <= now else found - timedelta(days=1)).timestamp()
    return instant(text).timestamp()
