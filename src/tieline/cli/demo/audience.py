"""Who listens: one subscriber for each zone, and an operator behind a thin pipe who takes everything."""

from __future__ import annotations

import socket
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Final, Self

from paho.mqtt.client import MQTTMessage

from tieline.cli.demo.actors import Actor
from tieline.cli.demo.ledger import FILTERS, Said

#: Bytes taken at once, and what the kernel is asked to hold; it doubles that number.
_PORTION: Final = 512
_RECEIVE_BUFFER: Final = 2_048


class Pipe:
    """Accepts one connection on a local port, and leads it to the broker."""

    def __init__(self, port: int, *, bytes_per_s: float) -> None:
        self._broker_port = port
        self._bytes_per_s = bytes_per_s
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self._ends: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._lead, daemon=True)]

    def __enter__(self) -> Self:
        self._threads[0].start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        for end in (self._listening, *self._ends):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
        for thread in self._threads:
            thread.join(timeout=2.0)

    def _lead(self) -> None:
        try:
            client, _address = self._listening.accept()
        except OSError:
            return  # closed before anybody came
        broker = socket.socket()
        broker.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BUFFER)  # before connecting: it sets the window
        broker.connect(("127.0.0.1", self._broker_port))
        self._ends += [client, broker]
        upward = threading.Thread(target=_pass, args=(client, broker, None), daemon=True)
        self._threads.append(upward)
        upward.start()
        _pass(broker, client, self._bytes_per_s)


def _pass(source: socket.socket, target: socket.socket, bytes_per_s: float | None) -> None:
    """Bytes one way, until one of the ends is closed."""
    due = time.monotonic()
    with suppress(OSError):
        while data := source.recv(_PORTION if bytes_per_s else 65_536):
            target.sendall(data)
            if bytes_per_s:
                # Time in which nothing came is lost: a link does not save up its capacity.
                due = max(due, time.monotonic() - _PORTION / bytes_per_s) + len(data) / bytes_per_s
                time.sleep(max(0.0, due - time.monotonic()))


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
