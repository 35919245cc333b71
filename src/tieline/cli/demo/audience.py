"""Who listens: a subscriber for each zone, an operator at the control centre, and a neighbour at the other feeder."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from types import TracebackType
from typing import Final, Self

from paho.mqtt.client import MQTTMessage

from tieline.cli.demo.actors import Actor
from tieline.cli.demo.brokers import CENTRE, INTERLOCK, NORTH, SOUTH, Brokers
from tieline.cli.demo.ledger import FILTERS, Said

#: Between two signals of the interlock.
_SIGNAL_S: Final = 0.2


class Audience:
    """Stock clients, subscribed before the world begins; they remember what they heard."""

    def __init__(self, brokers: Brokers) -> None:
        #: For each zone, how often each message was delivered to its subscriber.
        self.zones: dict[int, Counter[Said]] = {zone: Counter() for zone in FILTERS}
        #: When each message reached the operator at the control centre.
        self.operator: dict[Said, float] = {}
        self.interlock = Interlock(brokers)
        self._brokers = brokers
        self._actors: list[Actor] = []

    def __enter__(self) -> Self:
        for zone, filter_ in FILTERS.items():
            # MQTT 3.1.1 for one of them: a condition needs no new protocol.
            actor = Actor(
                f"zone-{zone}",
                port=self._brokers.port(CENTRE),
                version=4 if zone == 3 else 5,
                is_clean=False,
                returns=True,
                heard=self._listener(zone),
            )
            self._actors.append(actor)
            actor.subscribe(filter_, 2)
        operator = Actor("operator", port=self._brokers.port(CENTRE), is_clean=False, returns=True, heard=self._heard)
        self._actors.append(operator)
        operator.subscribe("microgrid/#", 1)
        # the neighbour wants to know of the other feeder's battery, so that the second link has readings of both
        neighbour = Actor("neighbour", port=self._brokers.port(SOUTH), heard=_ignore)
        self._actors.append(neighbour)
        neighbour.subscribe("microgrid/+/I2/#")
        self._actors += self.interlock.begin()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.interlock.end()
        for actor in self._actors:
            actor.leave()

    def _listener(self, zone: int) -> Callable[[MQTTMessage], None]:
        heard = self.zones[zone]

        def listen(message: MQTTMessage) -> None:
            heard[message.topic, bytes(message.payload)] += 1

        return listen

    def _heard(self, message: MQTTMessage) -> None:
        self.operator.setdefault((message.topic, bytes(message.payload)), time.monotonic())


def _ignore(_message: MQTTMessage) -> None:
    """For a subscriber that is there for what it makes brokers carry."""


class Interlock:
    """A device at one feeder that signals to one at the other, over both links, five times a second."""

    def __init__(self, brokers: Brokers) -> None:
        self._brokers = brokers
        self._over = threading.Event()
        self._thread: threading.Thread | None = None
        #: When each signal was sent, and when it came.
        self.sent: dict[bytes, float] = {}
        self.came: dict[bytes, float] = {}

    def begin(self) -> list[Actor]:
        """Connect both devices; the signals begin with :meth:`signal`."""
        there = Actor("interlock-south", port=self._brokers.port(SOUTH), heard=self._hear)
        there.subscribe(INTERLOCK, 1)
        here = Actor("interlock-north", port=self._brokers.port(NORTH))
        self._thread = threading.Thread(target=self._signal, args=(here,), daemon=True)
        return [there, here]

    def signal(self) -> None:
        """Signal from now on."""
        assert self._thread is not None
        self._thread.start()

    def end(self) -> None:
        """Send no more signals, and wait for the one that is being sent."""
        self._over.set()
        if self._thread is not None and self._thread.is_alive():
            self._thread.join()

    def waits(self) -> list[float]:
        """How long each signal took; one that has not come has taken forever."""
        return sorted(self.came.get(payload, float("inf")) - when for payload, when in [*self.sent.items()])

    def _signal(self, here: Actor) -> None:
        number = 0
        while not self._over.wait(_SIGNAL_S):
            payload = b"%d" % number
            self.sent[payload] = time.monotonic()
            here.publish(INTERLOCK, payload.decode(), 1)
            number += 1

    def _hear(self, message: MQTTMessage) -> None:
        self.came.setdefault(bytes(message.payload), time.monotonic())
