"""What the world has published, as its publisher saw it: the account against which everything else is checked.

The zones of the voltage/frequency plane of EN 50160, for an island of 230 V and 50 Hz, are said in two ways here: as
the conditions of content subscriptions, for the broker, and as plain comparisons, to know what it should have
delivered.  Zone 1 is normal, zone 2 tolerated for a while, zone 3 never.
"""

from __future__ import annotations

import statistics
import threading
import time
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import msgspec

from tieline.sim.microgrid.messages import LEVELS, Message

#: Voltage and frequency: what is normal, and what is tolerated.
NORMAL: Final = ((207.0, 253.0), (49.0, 51.0))
TOLERATED: Final = ((195.5, 253.0), (42.5, 57.5))

_READINGS: Final = "microgrid/+/+/reading"
_IS_TOLERATED: Final = "195.5 <= voltage <= 253 and 42.5 <= frequency <= 57.5"

#: What a subscriber to each zone asks for.  Any client can spell it; the first two put the condition in front of the
#: filter, which works with every filter, the third behind it.
FILTERS: Final = {
    1: f"$where/207 <= voltage <= 253 and 49 <= frequency <= 51/{_READINGS}",
    2: f"$where/{_IS_TOLERATED} and (voltage < 207 or frequency < 49 or frequency > 51)/{_READINGS}",
    3: f"{_READINGS}?voltage < 195.5 or voltage > 253 or frequency < 42.5 or frequency > 57.5",
}


class Reading(msgspec.Struct):
    """What a meter says, as far as zones go."""

    node: str
    voltage: float
    frequency: float | None


def zone_of(voltage: float, frequency: float | None) -> int | None:
    """1, 2 or 3; None if nothing is known of the frequency and the voltage alone does not tell."""
    if _is_outside(voltage, TOLERATED[0]) or (frequency is not None and _is_outside(frequency, TOLERATED[1])):
        return 3
    if frequency is None:
        return None
    is_normal = not _is_outside(voltage, NORMAL[0]) and not _is_outside(frequency, NORMAL[1])
    return 1 if is_normal else 2


def _is_outside(value: float, bounds: tuple[float, float]) -> bool:
    return value < bounds[0] or value > bounds[1]


_decode = msgspec.json.Decoder(Reading).decode

#: A message as a subscriber sees it; readings and reports carry their time, so none is like another.
Said = tuple[str, bytes]


@dataclass(slots=True)
class Now:
    """The last that meters said."""

    frequency: float | None = None
    voltages: dict[str, float] = field(default_factory=dict)


class Ledger:
    """A witness of the publisher; its methods are called from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        #: When each message was handed to its client, and how urgent it is.
        self.sent_at: dict[Said, tuple[float, int]] = {}
        #: For each zone the readings that are in it.
        self.zones: dict[int, set[Said]] = {1: set(), 2: set(), 3: set()}
        #: Client id and ``seq`` of what the broker took responsibility for, and of what was sent at all.
        self.acknowledged_: set[tuple[str, str]] = set()
        self.numbered: set[tuple[str, str]] = set()
        self.now = Now()

    def sent(self, message: Message, client_id: str, seq: str | None) -> None:
        """Note a message; its zone is found here, not asked of the broker."""
        said = (message.topic, message.payload)
        self.sent_at[said] = (time.monotonic(), LEVELS[message.kind])
        if seq is not None:
            self.numbered.add((client_id, seq))
        if message.kind == "reading":
            reading = _decode(message.payload)
            zone = zone_of(reading.voltage, reading.frequency)
            if zone is not None:
                self.zones[zone].add(said)
            self.now.voltages[reading.node] = reading.voltage
            if reading.frequency is not None:
                self.now.frequency = reading.frequency

    def acknowledged(self, message: Message, client_id: str, seq: str | None) -> None:
        """Note that the broker answers for a message from now on."""
        if seq is not None:
            with self._lock:
                self.acknowledged_.add((client_id, seq))


#: From this level on a message counts as urgent here: commands, faults, protection.
URGENT = 2


@dataclass(frozen=True, slots=True)
class Wait:
    """One level: how many of its messages arrived of how many, and how long they waited."""

    level: int
    sent: int
    arrived: int
    #: Of those that have not arrived, the time until now counts.
    median_s: float
    longest_s: float


def waits(sent: Mapping[Said, tuple[float, int]], arrived: Mapping[Said, float], now: float) -> list[Wait]:
    """The waits of each level that was used, the most urgent first."""
    by_level: dict[int, list[tuple[float, bool]]] = {}
    for said, (when, level) in list(sent.items()):
        came = arrived.get(said)
        by_level.setdefault(level, []).append(((now if came is None else came) - when, came is not None))
    return [
        Wait(
            level,
            len(found),
            sum(is_here for _wait, is_here in found),
            statistics.median(wait for wait, _is_here in found),
            max(wait for wait, _is_here in found),
        )
        for level, found in sorted(by_level.items(), reverse=True)
    ]


def before(sent: Mapping[Said, tuple[float, int]], moment: float) -> dict[Said, tuple[float, int]]:
    """What was sent until then."""
    return {said: each for said, each in [*sent.items()] if each[0] <= moment}


def median_wait(
    sent: Mapping[Said, tuple[float, int]], arrived: Mapping[Said, float], begin: float, end: float, now: float
) -> float | None:
    """How long half of the readings waited that were sent in a span of time; what is not here has waited until now."""
    found = [
        arrived.get(said, now) - when for said, (when, level) in [*sent.items()] if level == 0 and begin <= when < end
    ]
    return statistics.median(found) if found else None


def got_through(
    sent: Mapping[Said, tuple[float, int]], arrived: Mapping[Said, float], begin: float, end: float
) -> float | None:
    """How many readings arrived in a span of time, as a share of those sent in it; above 1 while a backlog shrinks."""
    readings = [(when, arrived.get(said, -1.0)) for said, (when, level) in [*sent.items()] if level == 0]
    left = sum(begin <= when < end for when, _came in readings)
    return sum(begin <= came < end for _when, came in readings) / left if left else None


def overtaken(sent: Mapping[Said, tuple[float, int]], arrived: Mapping[Said, float]) -> list[int]:
    """For each urgent message that arrived: how many less urgent ones were sent before it and had not arrived yet."""
    bulk = [(when, arrived.get(said, float("inf"))) for said, (when, level) in sent.items() if level < URGENT]
    sent_order = sorted(when for when, _came in bulk)
    counts = []
    for said, (when, level) in sent.items():
        came = arrived.get(said)
        if level >= URGENT and came is not None:
            before = bisect_left(sent_order, when)
            # Whatever arrived before this one was also sent before it, or else it is no delay of ours.
            here = sum(arrival <= came and start < when for start, arrival in bulk)
            counts.append(before - here)
    return counts
