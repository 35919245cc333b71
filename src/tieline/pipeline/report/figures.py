"""Numbers and times as people read them in a report."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

from tieline.pipeline.jobs.quality.clauses import Clause
from tieline.pipeline.jobs.quality.limits import Range


def percent(share: float | None, digits: int = 2) -> str:
    """A share in percent. Only all is 100 %, and only nothing is 0 %: 99.996 % prints as 99.99 %."""
    if share is None:
        return "–"
    step = 10 ** (digits + 2)
    shown = round(share * step) / step
    if shown >= 1 > share:
        shown = 1 - 1 / step
    elif shown <= 0 < share:
        shown = 1 / step
    return f"{shown:.{digits}%}".replace("%", "\u202f%")


def duration(seconds: float) -> str:
    """A length of time in the two largest units that matter."""
    whole = round(seconds)
    if whole == 0:
        return "0" if seconds == 0 else "< 1 s"
    days, rest = divmod(whole, 86_400)
    hours, rest = divmod(rest, 3_600)
    minutes, left = divmod(rest, 60)
    parts = [(days, "d"), (hours, "h"), (minutes, "min"), (left, "s")]
    first = next(number for number, (amount, _) in enumerate(parts) if amount)
    return " ".join(f"{amount}\u202f{unit}" for amount, unit in parts[first : first + 2] if amount)


def number(value: float) -> str:
    """Without zeros that say nothing."""
    return f"{value:g}"


def grouped(value: int) -> str:
    """With commas at thousands."""
    return f"{value:,}"


def span(allowed: Range, clause: Clause) -> str:
    """A range with its unit."""
    return f"{allowed.low:g} – {allowed.high:g}\u00a0{'V' if clause.quantity == 'voltage' else 'Hz'}"


def minute(when: datetime) -> str:
    """A point in time, to the minute, UTC."""
    return f"{when.astimezone(UTC):%Y-%m-%d %H:%M}"


def second(when: datetime) -> str:
    """A point in time, to the second, UTC."""
    return f"{when.astimezone(UTC):%Y-%m-%d %H:%M:%S}"


#: By the names that templates use.
FILTERS: Final[dict[str, Callable[..., Any]]] = {
    function.__name__: function for function in (percent, duration, number, grouped, span, minute, second)
}
