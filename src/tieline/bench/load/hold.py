"""Connections: how fast they are accepted, and how much memory an idle one takes."""

from __future__ import annotations

import time
from dataclasses import dataclass

from tieline.bench.load.clients import clients, subscribe
from tieline.bench.load.endpoint import Endpoint
from tieline.bench.load.job import Metrics
from tieline.bench.measure import Meter, family, memory_bytes

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
        meter = Meter(at.pid)
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
        meter = Meter(at.pid)
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
