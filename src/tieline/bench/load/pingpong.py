"""Latency: one message in flight, from one client's send to another client's receive."""

from __future__ import annotations

import time
from dataclasses import dataclass

from tieline.bench.load.clients import PATIENCE_S, clients, subscribe
from tieline.bench.load.endpoint import Endpoint
from tieline.bench.load.failure import Garbled, Refused, Stalled
from tieline.bench.load.job import Metrics
from tieline.bench.load.quantile import quantile
from tieline.bench.load.stream import encode
from tieline.bench.measure import Meter

_WARM_UP = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class PingPong:
    """So many messages, each sent when the one before has arrived."""

    messages: int
    payload: int = 64
    at_most_s: float = 3.0

    @property
    def patience_s(self) -> float:
        """The messages, and the connecting before."""
        return 20.0 + 3 * self.at_most_s

    def run(self, at: Endpoint) -> Metrics:
        """Quantiles of the time from send to receive, in microseconds."""
        stream = encode(0, ["ping"], payload=self.payload, qos=0, version=4, count=self.messages + _WARM_UP)
        size = stream.layout.packet
        took: list[int] = []
        clock = time.perf_counter_ns
        with clients(at, ["ping-sub", "ping-pub"]) as (receiver, sender):
            subscribe(receiver, ["ping"])
            for sock in (receiver, sender):
                sock.settimeout(PATIENCE_S)
            latest = clock() + int(self.at_most_s * 1e9)
            meter = Meter(at.pid)
            try:
                for number in range(stream.count):
                    sent = bytes(stream.data[number * size : (number + 1) * size])
                    began = clock()
                    sender.send(sent)
                    got = receiver.recv(size)
                    took.append(clock() - began)
                    while len(got) < size:
                        chunk = receiver.recv(size - len(got))
                        if not chunk:
                            raise Refused("the broker closed the subscriber's connection")
                        got += chunk
                    if got != sent:
                        raise Garbled("a message arrived that differs from the one sent")
                    if began > latest:
                        break
            except TimeoutError as error:
                raise Stalled(f"message {len(took)} did not arrive within {PATIENCE_S:.0f} s") from error
            reading = meter.read()
        measured = sorted(took[min(_WARM_UP, len(took) // 10) :])
        return {
            "p50_us": quantile(measured, 0.5) / 1e3,
            "p99_us": quantile(measured, 0.99) / 1e3,
            "cpu_us_inbound": reading.broker_s * 1e6 / len(took),
            "messages": len(measured),
            **reading.shares(),
        }
