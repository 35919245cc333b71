"""The kinds of attributes: what a value found in a message becomes, and which values are of another kind.

Numbers are float64 everywhere, so that an index and an evaluation agree in every bit.  An integer that float64 cannot
hold exactly would make two different values equal; it counts as another kind instead.  Whatever is not of the kind that
was declared is ``MISSING``, which no condition accepts.

The values of a category are known to an index by numbers.  Only values that a configuration lists or a condition names
have a number of their own.  All others share one, because no condition can tell them apart: they are equal to nothing
that anybody named.  So memory grows with what is asked, not with what is sent.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Annotated, Final

import msgspec

from tieline.conf.schema import AttributeKind
from tieline.match.box import MISSING

#: number, integer and timestamp (seconds since 1970 UTC) are floats, a category is a text.
Value = float | str | bool

NUMERIC: Final[frozenset[AttributeKind]] = frozenset({"number", "integer", "timestamp"})

#: Up to here every integer has a float64 of its own.
EXACT: Final = 2**53

#: A text longer than this is no number that anybody measured; reading it could take long.
_LONGEST: Final = 64

_Instant = Annotated[datetime, msgspec.Meta(tz=True)]


def number(raw: object) -> float:
    """A finite number; booleans are none."""
    if isinstance(raw, float):
        return raw if math.isfinite(raw) else MISSING
    if isinstance(raw, int) and not isinstance(raw, bool):
        return float(raw) if -EXACT <= raw <= EXACT else MISSING
    return MISSING


def integer(raw: object) -> float:
    """A whole number; how it was written (5 or 5.0) does not matter."""
    value = number(raw)
    return value if value.is_integer() and -EXACT <= value <= EXACT else MISSING


def category(raw: object) -> Value:
    """A text as it stands; anything else is missing."""
    return raw if isinstance(raw, str) else MISSING


def boolean(raw: object) -> Value:
    """True or false, and nothing that merely counts as such."""
    return raw if isinstance(raw, bool) else MISSING


def timestamp(raw: object) -> float:
    """Seconds since 1970 UTC: a number of them, or a date and time with its offset from UTC (RFC 3339)."""
    if isinstance(raw, str):
        try:
            return msgspec.convert(raw, _Instant).timestamp()
        except (ValueError, OverflowError):
            return MISSING
    return raw.timestamp() if isinstance(raw, datetime) else number(raw)


def decimal(text: str | bytes) -> float:
    """The number that a text spells in decimal, blanks around it allowed."""
    if len(text) > _LONGEST or not text.isascii():
        return MISSING
    try:
        value = float(text)
    except ValueError:
        return MISSING
    # Python also takes 1_000, nan and infinity for numbers
    if not math.isfinite(value) or (b"_" in text if isinstance(text, bytes) else "_" in text):
        return MISSING
    if abs(value) < EXACT:
        return value
    try:
        return number(int(text))
    except ValueError:  # written with a point or an exponent
        return value


def _text_boolean(text: str) -> Value:
    return {"true": True, "false": False}.get(text, MISSING)


def _text_timestamp(text: str) -> float:
    value = timestamp(text)
    return decimal(text) if value == MISSING else value


#: What a value found in a payload becomes, by the kind declared.
OF_KIND: Final[dict[AttributeKind, Callable[[object], Value]]] = {
    "number": number,
    "integer": integer,
    "category": category,
    "boolean": boolean,
    "timestamp": timestamp,
}

#: What the text of a user property becomes, by the kind declared.
OF_TEXT: Final[dict[AttributeKind, Callable[[str], Value]]] = {
    "number": decimal,
    "integer": lambda text: integer(decimal(text)),
    "category": category,
    "boolean": _text_boolean,
    "timestamp": _text_timestamp,
}


def undeclared(raw: object) -> Value | None:
    """A value for which no kind was declared: itself, if it is a number, a text or a boolean."""
    if isinstance(raw, str | bool):
        return raw
    value = timestamp(raw)
    return None if value == MISSING else value


def undeclared_text(text: str) -> Value:
    """The text of a user property for which no kind was declared: the number or boolean it would be in JSON, if any."""
    if len(text) > _LONGEST:
        return text
    try:
        value = undeclared(msgspec.json.decode(text.encode(), type=bool | int | float))
    except ValueError:
        return text
    return text if value is None else value


#: The number of every value that nobody named.
OTHER: Final = -1.0

#: Values of one attribute that may have a number of their own.
MOST: Final = 1 << 20


class CodesExhausted(ValueError):
    """A category has as many named values as a broker keeps."""


class Codes:
    """Numbers for the values of one category, given on demand."""

    __slots__ = ("_most", "_next", "_numbers")

    def __init__(self, values: Iterable[str] = (), *, most: int = MOST) -> None:
        #: A missing value is among them, so that a message costs one look, whether it has the attribute or not.
        self._numbers: dict[Value, float] = {MISSING: MISSING}
        self._numbers |= {value: float(number) for number, value in enumerate(dict.fromkeys(values))}
        #: Greater than every number ever given, so that none is given twice.
        self._next = len(self)
        self._most = most

    def __len__(self) -> int:
        return len(self._numbers) - 1

    def named(self, value: str) -> float:
        """The number of a value that a condition names, from now on its own."""
        number = self._numbers.get(value)
        if number is None:
            if len(self) >= self._most:
                raise CodesExhausted(f"conditions already name {self._most:,} values of this category")
            number = self._numbers[value] = float(self._next)
            self._next += 1
        return number

    def sent(self, value: Value) -> float:
        """The number of a value that a message carries; a missing one stays missing."""
        return self._numbers.get(value, OTHER)

    def all_named(self) -> dict[str, float]:
        """Every value that has a number of its own, with that number."""
        return {value: number for value, number in self._numbers.items() if isinstance(value, str)}

    def keep(self, numbers: Iterable[float]) -> None:
        """Forget every value whose number is not among these; the others keep theirs."""
        kept = {MISSING, *numbers}
        self._numbers = {value: number for value, number in self._numbers.items() if number in kept}
