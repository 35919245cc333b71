"""Messages that are published once, however often they are sent: producers and the highest number of each.

An MQTT 5 PUBLISH with QoS 1 or 2 may say in the user property ``$once`` which message of which producer it is, as
``PRODUCER/NUMBER``.  Numbers grow.  A number that is not larger than the highest one accepted of that producer is
acknowledged and goes nowhere.  This holds across connections, sessions and restarts, where a packet id does not: a job
that begins a batch anew sends what it sent before, in a session that knows nothing of it.

The highest number alone says what was accepted only if nothing below it was left out.  So once a message was refused
for want of room, later ones of its producer are refused too, on that connection, until it comes again.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from tieline.core.client import Connection
from tieline.core.durable.journal import Journal
from tieline.wire.properties import Properties

PROPERTY: Final = "$once"
#: What is said to a client that does not keep to it.
RULE: Final = "$once is PRODUCER/NUMBER, once: 1 to 64 characters without /, and 0 to 9223372036854775807"
_LONGEST: Final = 64
_LARGEST: Final = 2**63 - 1
#: Producers of one connection that wait for a refused number to come again.
MOST_STOPPED: Final = 64


class Numbered(NamedTuple):
    """Which message of which producer a PUBLISH is."""

    #: The producer behind the user and a slash, or alone where the user is nobody in particular.
    producer: str
    number: int


class MalformedNumber(Exception):
    """A ``$once`` that cannot be understood, or more than one."""


def read_number(properties: Properties, user: str | None) -> Numbered | None:
    """What a PUBLISH says of itself; None if it says nothing, :class:`MalformedNumber` if that cannot be understood."""
    said = [value for name, value in properties.get("user_property", ()) if name == PROPERTY]
    if not said:
        return None
    producer, slash, digits = said[0].partition("/")
    is_number = digits.isascii() and digits.isdigit() and len(digits) <= len(str(_LARGEST)) and int(digits) <= _LARGEST
    if len(said) > 1 or not slash or not 1 <= len(producer) <= _LONGEST or not is_number:
        raise MalformedNumber
    return Numbered(producer if user is None else f"{user}/{producer}", int(digits))


class Producers:
    """The highest number accepted of each producer; of so many, the one unused longest is forgotten."""

    __slots__ = ("_highest", "_journal", "_most", "forgotten")

    def __init__(self, journal: Journal, most: int) -> None:
        self._journal = journal
        self._most = most
        #: By producer, the one unused longest first.
        self._highest: dict[str, int] = {}
        #: How many were forgotten for want of room.
        self.forgotten = 0

    def __len__(self) -> int:
        return len(self._highest)

    def has(self, numbered: Numbered) -> bool:
        """Whether a message was accepted before."""
        highest = self._highest.get(numbered.producer)
        return highest is not None and numbered.number <= highest

    def accept(self, numbered: Numbered, at: float) -> None:
        """A message is accepted: what the store keeps of it, and this, become permanent together."""
        self._highest.pop(numbered.producer, None)
        self._highest[numbered.producer] = numbered.number
        if not self._journal.is_volatile:
            self._journal.produced(numbered.producer, numbered.number, at)
        self._forget()

    def restore(self, rows: Iterable[tuple[str, int]]) -> None:
        """What a predecessor knew, the producer unused longest first."""
        self._highest = dict(rows)
        self._forget()

    def limit(self, most: int) -> None:
        """Remember so many from now on."""
        self._most = most
        self._forget()

    def _forget(self) -> None:
        while len(self._highest) > self._most:
            producer = next(iter(self._highest))
            del self._highest[producer]
            self.forgotten += 1
            if not self._journal.is_volatile:
                self._journal.unproduced(producer)


def is_out_of_turn(conn: Connection, numbered: Numbered) -> bool:
    """Whether an earlier number of the producer has to come first, because it was refused on this connection."""
    stopped = conn.stopped
    if stopped is None:
        return False
    first = stopped.get(numbered.producer)
    return len(stopped) >= MOST_STOPPED if first is None else numbered.number > first


def go_on(conn: Connection, numbered: Numbered) -> None:
    """A message comes in its turn: the later ones of its producer wait for nothing."""
    if conn.stopped is not None:
        conn.stopped.pop(numbered.producer, None)


def stop(conn: Connection, numbered: Numbered) -> None:
    """A message was refused for want of room: later ones of its producer wait for it."""
    if conn.stopped is None:
        conn.stopped = {}
    conn.stopped[numbered.producer] = numbered.number
