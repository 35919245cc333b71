"""What the world has published, as its publisher saw it: the account against which everything else is checked."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field

import msgspec

from tieline.cli.demo.zones import Reading, zone_of
from tieline.sim.microgrid.messages import LEVELS, Message

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
