"""Connections: how fast they are accepted, how much memory an idle one takes, and short visits."""

from __future__ import annotations

import select
import socket
import time
from dataclasses import dataclass

from tieline.bench.load import packets
from tieline.bench.load.clients import IN_FLIGHT, NO_LINGER, PATIENCE_S, clients, subscribe
from tieline.bench.load.job import Endpoint, Garbled, Metrics, Stalled
from tieline.bench.measure import CostMeter, family, memory_bytes

_SETTLE_S = 0.7


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectMany:
    """Connections opened as fast as they are accepted: TCP, CONNECT, CONNACK."""

    connections: int

    @property
    def patience_s(self) -> float:
        """A slow broker takes milliseconds for each."""
        return 30.0 + 0.02 * self.connections

    def run(self, at: Endpoint) -> Metrics:
        """Connections per second, and the broker's CPU for each."""
        names = [f"rate{number}" for number in range(self.connections)]
        meter = CostMeter(at.pid)
        with clients(at, names):
            reading = meter.read()
        return {
            "rate": self.connections / reading.wall_s,
            "cpu_us_connection": reading.broker_s * 1e6 / self.connections,
            **reading.shares(),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldIdle:
    """Connections that do nothing, first without and then with one subscription each."""

    connections: int
    tls: bool = False

    @property
    def patience_s(self) -> float:
        """A TLS handshake takes both sides some milliseconds."""
        return 60.0 + 0.03 * self.connections

    def run(self, at: Endpoint) -> Metrics:
        """Growth of the broker's memory for each connection."""
        with clients(at, ["first"], tls=self.tls):  # whatever is loaded on first use is not the connections' doing
            pass
        time.sleep(_SETTLE_S)
        pids = family(at.pid)
        empty = memory_bytes(pids)
        meter = CostMeter(at.pid)
        names = [f"idle{number}" for number in range(self.connections)]
        with clients(at, names, tls=self.tls) as socks:
            reading = meter.read()
            time.sleep(_SETTLE_S)
            connected = memory_bytes(pids)
            for number, sock in enumerate(socks):
                subscribe(sock, [f"idle/{number}/state"])
            time.sleep(_SETTLE_S)
            subscribed = memory_bytes(pids)
        return {
            "bytes_connection": (connected - empty) / self.connections,
            "bytes_subscribed": (subscribed - empty) / self.connections,
            "base_bytes": empty,
            "connections": self.connections,
            "rate": self.connections / reading.wall_s,
            "cpu_us_connection": reading.broker_s * 1e6 / self.connections,
            **reading.shares(),
        }


_WARM_UP = 256
#: What the broker is to answer.  The end of the connection is an answer too: only then has it done its part.
_CONNECTED = bytes([packets.CONNACK, 2, 0, 0])
_SUBSCRIBED = bytes([packets.SUBACK, 3, 0, 1, 0])
_GONE = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Visits:
    """So many clients, some of them at the same time, each waiting for every answer before it goes on."""

    visits: int

    @property
    def patience_s(self) -> float:
        """A slow broker takes milliseconds for each."""
        return 30.0 + 0.02 * self.visits

    def run(self, at: Endpoint) -> Metrics:
        """Visits per second, and the broker's CPU for each."""
        with select.epoll() as poller:
            _Reception(at, poller, "early", _WARM_UP).receive()
            reception = _Reception(at, poller, "visit", self.visits)
            meter = CostMeter(at.pid)
            reception.receive()
            reading = meter.read()
        return {
            "rate": self.visits / reading.wall_s,
            "cpu_us_connection": reading.broker_s * 1e6 / self.visits,
            "generator_us_connection": reading.generator_s * 1e6 / self.visits,
            "connections": self.visits,
            **reading.shares(),
        }


class _Reception:
    """Visits under way: the socket of each and the answer that it waits for."""

    def __init__(self, at: Endpoint, poller: select.epoll, name: str, visits: int) -> None:
        self._place = (at.host, at.port)
        self._poller = poller
        numbers = range(visits)
        self._connects = [packets.connect(f"{name}{number}", version=4) for number in numbers]
        self._subscribes = [packets.subscribe(1, [f"{name}/{number}"], qos=0, version=4) for number in numbers]
        #: By descriptor: the socket, the visit's number and the answer it waits for.
        self._waiting: dict[int, tuple[socket.socket, int, bytes]] = {}

    def receive(self) -> None:
        """Let everybody come and go."""
        waiting, poll = self._waiting, self._poller.poll
        begun, visits = 0, len(self._connects)
        last = time.perf_counter()
        try:
            while waiting or begun < visits:
                while len(waiting) < IN_FLIGHT and begun < visits:
                    self._enter(begun)
                    begun += 1
                events = poll(0.25)
                now = time.perf_counter()
                if events:
                    last = now
                elif now - last > PATIENCE_S:
                    raise Stalled(f"{len(waiting)} visits were not answered within {PATIENCE_S:.0f} s")
                for fd, _ in events:
                    self._advance(fd)
        finally:
            for sock, _, _ in waiting.values():
                sock.close()

    def _enter(self, number: int) -> None:
        sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        fd = sock.fileno()
        self._waiting[fd] = (sock, number, _CONNECTED)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, NO_LINGER)
        sock.connect(self._place)
        sock.send(self._connects[number])
        self._poller.register(fd, select.EPOLLIN)

    def _advance(self, fd: int) -> None:
        sock, number, due = self._waiting[fd]
        got = sock.recv(64)
        if got != due:
            raise Garbled(f"a visitor waited for {due.hex(' ') or 'the end'} and got {got.hex(' ') or 'the end'}")
        if due is _CONNECTED:
            sock.send(self._subscribes[number])
            self._waiting[fd] = (sock, number, _SUBSCRIBED)
        elif due is _SUBSCRIBED:
            sock.send(packets.DISCONNECT)
            self._waiting[fd] = (sock, number, _GONE)
        else:
            sock.close()
            del self._waiting[fd]
