"""Names and numbers: a broker has a name everywhere, and a small number that only this broker means it by.

Nobody gives out numbers for all.  Each end of a connection says which numbers it uses for which names before it uses
them, and the other end translates what comes (:class:`Translation`).  Our own numbers are kept with what is owed, since
that is kept by number.
"""

from __future__ import annotations

from typing import Final

from tieline.overlay.frames.fields import BadFrame
from tieline.overlay.frames.hello import Refused

#: Brokers that one broker can know; a number takes one byte in a path.
MOST_BROKERS: Final = 255


class Directory:
    """The brokers that are known here, by the numbers that are used here."""

    __slots__ = ("_numbers", "names")

    def __init__(self, names: dict[int, str]) -> None:
        self.names = dict(names)
        self._numbers = {name: number for number, name in names.items()}

    def find(self, name: str) -> int | None:
        """The number of a broker; None if it is not known."""
        return self._numbers.get(name)

    def add(self, name: str) -> int:
        """Give a broker that is not known the next number; raises :class:`Refused` when there is none left."""
        number = len(self.names) + 1
        if number > MOST_BROKERS:
            raise Refused(f"broker {name} would be one more than the {MOST_BROKERS} brokers that can be known")
        self.names[number] = name
        self._numbers[name] = number
        return number


class Translation:
    """Our numbers for those that the other end of one connection uses."""

    __slots__ = ("table",)

    def __init__(self) -> None:
        #: By their number ours, or 0 for what was not named.
        self.table = bytes(256)

    def learn(self, pairs: dict[int, int]) -> None:
        """Take in their numbers with ours; a number means one broker as long as the connection lasts."""
        table = bytearray(self.table)
        for theirs, ours in pairs.items():
            if table[theirs] not in (0, ours):
                raise BadFrame(f"the number {theirs} has two meanings")
            table[theirs] = ours
        self.table = bytes(table)

    def broker(self, theirs: int) -> int:
        """Our number for one of theirs."""
        ours = self.table[theirs]
        if not ours:
            raise BadFrame(f"{theirs} is the number of no broker that was named")
        return ours
