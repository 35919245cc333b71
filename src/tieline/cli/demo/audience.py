"""Who listens: one subscriber for each zone, and an operator behind a thin pipe who takes everything."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from types import TracebackType
from typing import Final, Self

from paho.mqtt.client import MQTTMessage

from tieline.cli.demo.actors import Actor
from tieline.cli.demo.ledger import Said
from tieline.cli.demo.pipe import Pipe
from tieline.cli.demo.zones import FILTERS

#: What the operator's link carries: 128 kbit/s, a fraction of what the meters say.
PIPE_BYTES_PER_S: Final = 16_000.0


class Audience:
    """Stock clients, subscribed before the world begins; they remember what they heard."""

    def __init__(self, port: int) -> None:
        #: For each zone, how often each message was delivered to its subscriber.
        self.zones: dict[int, Counter[Said]] = {zone: Counter() for zone in FILTERS}
        #: When each message reached the operator.
        self.operator: dict[Said, float] = {}
        self._port = port
        self._pipe = Pipe(port, bytes_per_s=PIPE_BYTES_PER_S)
        self._actors: list[Actor] = []

    def __enter__(self) -> Self:
        self._pipe.__enter__()
        for zone, filter_ in FILTERS.items():
            # MQTT 3.1.1 for one of them: a condition needs no new protocol.
            actor = Actor(f"zone-{zone}", port=self._port, version=4 if zone == 3 else 5, heard=self._listener(zone))
            self._actors.append(actor)
            actor.subscribe(filter_, 1)
        operator = Actor("operator", port=self._pipe.port, heard=self._heard)
        self._actors.append(operator)
        operator.subscribe("microgrid/#")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        for actor in self._actors:
            actor.leave()
        self._pipe.__exit__(kind, problem, trace)

    def _listener(self, zone: int) -> Callable[[MQTTMessage], None]:
        heard = self.zones[zone]

        def listen(message: MQTTMessage) -> None:
            heard[message.topic, bytes(message.payload)] += 1

        return listen

    def _heard(self, message: MQTTMessage) -> None:
        self.operator.setdefault((message.topic, bytes(message.payload)), time.monotonic())
