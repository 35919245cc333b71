"""The numbers by which an index knows the values of a category.

Only values that a configuration lists or a condition names have a number of their own.  All others share one, because
no condition can tell them apart: they are equal to nothing that anybody named.  So memory grows with what is asked, not
with what is sent.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from tieline.match.box import MISSING
from tieline.match.events.kinds import Value

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
