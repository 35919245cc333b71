"""Latency of a promise: from sending a QoS 1 message to its acknowledgement, one at a time."""

from __future__ import annotations

import socket
import time
from dataclasses import dataclass

from tieline.bench.load import acks, packets
from tieline.bench.load.clients import PATIENCE_S, clients, forget, subscribe
from tieline.bench.load.endpoint import Endpoint
from tieline.bench.load.failure import Garbled, Refused, Stalled
from tieline.bench.load.job import Metrics
from tieline.bench.load.quantile import quantile
from tieline.bench.load.stream import encode
from tieline.bench.measure import Meter

_WARM_UP = 100
_RECEIVER, _SENDER = "promise-sub", "promise-pub"
_TOPIC = "promise"


@dataclass(frozen=True, slots=True, kw_only=True)
class Assure:
    """So many messages, each sent when the one before was acknowledged and has arrived."""

    messages: int
    payload: int = 64
    at_most_s: float = 3.0

    @property
    def patience_s(self) -> float:
        """The messages, and the connecting before."""
        return 20.0 + 3 * self.at_most_s

    def run(self, at: Endpoint) -> Metrics:
        """Quantiles of the time from send to acknowledgement, in microseconds."""
        stream = encode(0, [_TOPIC], payload=self.payload, qos=1, version=4, count=self.messages + _WARM_UP)
        size = stream.layout.packet
        took: list[int] = []
        clock = time.perf_counter_ns
        forget(at, [_RECEIVER])
        with clients(at, [_RECEIVER], clean=False) as (receiver,), clients(at, [_SENDER]) as (sender,):
            subscribe(receiver, [_TOPIC], qos=1)
            for sock in (receiver, sender):
                sock.settimeout(PATIENCE_S)
            latest = clock() + int(self.at_most_s * 1e9)
            meter = Meter(at.pid)
            try:
                for number in range(stream.count):
                    sent = bytes(stream.data[number * size : (number + 1) * size])
                    began = clock()
                    sender.send(sent)
                    acks.check_acks(_exactly(sender, acks.ACK), bytes([packets.PUBACK]))
                    took.append(clock() - began)
                    got = _exactly(receiver, size)
                    identifier = stream.layout.identifier
                    if got[:identifier] + got[identifier + 2 :] != sent[:identifier] + sent[identifier + 2 :]:
                        raise Garbled("a message arrived that differs from the one sent")
                    receiver.send(acks.answer(got, packet=size, identifier=identifier, kind=packets.PUBACK))
                    if began > latest:
                        break
            except TimeoutError as error:
                raise Stalled(f"message {len(took)} was not answered within {PATIENCE_S:.0f} s") from error
            reading = meter.read()
        measured = sorted(took[min(_WARM_UP, len(took) // 10) :])
        return {
            "p50_us": quantile(measured, 0.5) / 1e3,
            "p99_us": quantile(measured, 0.99) / 1e3,
            "cpu_us_inbound": reading.broker_s * 1e6 / len(took),
            "messages": len(measured),
            **reading.shares(),
        }


def _exactly(sock: socket.socket, size: int) -> bytes:
    data = sock.recv(size)
    while len(data) < size:
        chunk = sock.recv(size - len(data))
        if not chunk:
            raise Refused("the broker closed a connection")
        data += chunk
    return data
