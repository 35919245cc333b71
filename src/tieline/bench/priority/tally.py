"""Every message of a flow: when it was sent, and when it arrived, if it did."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from tieline.bench.load.quantile import quantile
from tieline.bench.priority.packets import MARK


@dataclass(slots=True)
class Tally:
    """One flow as its sender and its receiver saw it; times of the wall clock in nanoseconds."""

    sent: list[int] = field(default_factory=list)
    arrived: dict[int, int] = field(default_factory=dict)
    #: Messages that came twice, and messages that came after a later one of the flow: none should.
    duplicates: int = 0
    disordered: int = 0
    #: The latest message that has come.
    latest: int = -1

    def payload(self, size: int) -> bytes:
        """The payload of the next message, marked with its number and the time."""
        number, now = len(self.sent), time.time_ns()
        self.sent.append(now)
        return MARK.pack(number, now).ljust(size, b".")

    def arrival(self, number: int, when_ns: int) -> None:
        """Message ``number`` has arrived."""
        if number in self.arrived:
            self.duplicates += 1
            return
        self.arrived[number] = when_ns
        self.disordered += number < self.latest
        self.latest = max(self.latest, number)

    def before(self, when_ns: int) -> Tally:
        """Only the messages that were sent before this time."""
        count = sum(sent < when_ns for sent in self.sent)
        return Tally(self.sent[:count], {number: came for number, came in self.arrived.items() if number < count})

    @property
    def lost(self) -> int:
        """Messages that have not arrived."""
        return len(self.sent) - len(self.arrived)

    def waits_s(self, missing_s: float | None = None) -> list[float]:
        """Time from send to receive in order of sending; a missing message counts as so long, or not at all."""
        waits = []
        for number, sent in enumerate(self.sent):
            came = self.arrived.get(number)
            if came is not None:
                waits.append((came - sent) / 1e9)
            elif missing_s is not None:
                waits.append(missing_s)
        return waits

    def quantile_s(self, q: float, missing_s: float | None = None) -> float:
        """A quantile of the waits; nothing sent is a wait of zero."""
        return quantile_of(self.waits_s(missing_s), q)


def quantile_of(waits_s: list[float], q: float) -> float:
    """A nearest-rank quantile of seconds, zero of an empty sample."""
    return quantile(sorted(round(wait * 1e9) for wait in waits_s), q) / 1e9 if waits_s else 0.0
