"""Latency with one message in flight: until it arrives, or until the broker has promised to keep it."""

from __future__ import annotations

import socket
import time
from dataclasses import dataclass

from tieline.bench.load import packets
from tieline.bench.load.clients import PATIENCE_S, clients, forget, subscribe
from tieline.bench.load.job import Endpoint, Garbled, Metrics, Refused, Stalled, quantile
from tieline.bench.load.stream import encode
from tieline.bench.measure import Meter, Reading

_WARM_UP, _PROMISE_WARM_UP = 300, 100


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
        with clients(at, ["ping-sub"]) as (receiver,), clients(at.entrance, ["ping-pub"]) as (sender,):
            subscribe(receiver, ["ping"])
            for sock in (receiver, sender):
                sock.settimeout(PATIENCE_S)
            latest = clock() + int(self.at_most_s * 1e9)
            meter = Meter(*at.pids)
            try:
                for number in range(stream.count):
                    sent = bytes(stream.data[number * size : (number + 1) * size])
                    began = clock()
                    sender.send(sent)
                    got = receiver.recv(size)
                    took.append(clock() - began)
                    if len(got) < size:
                        got += exactly(receiver, size - len(got))
                    if got != sent:
                        raise Garbled("a message arrived that differs from the one sent")
                    if began > latest:
                        break
            except TimeoutError as error:
                raise Stalled(f"message {len(took)} did not arrive within {PATIENCE_S:.0f} s") from error
            reading = meter.read()
        return _numbers(took, _WARM_UP, reading)


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
        stream = encode(0, [_TOPIC], payload=self.payload, qos=1, version=4, count=self.messages + _PROMISE_WARM_UP)
        size = stream.layout.packet
        took: list[int] = []
        clock = time.perf_counter_ns
        forget(at, [_RECEIVER])
        with clients(at, [_RECEIVER], clean=False) as (receiver,), clients(at.entrance, [_SENDER]) as (sender,):
            subscribe(receiver, [_TOPIC], qos=1)
            for sock in (receiver, sender):
                sock.settimeout(PATIENCE_S)
            latest = clock() + int(self.at_most_s * 1e9)
            meter = Meter(*at.pids)
            try:
                for number in range(stream.count):
                    sent = bytes(stream.data[number * size : (number + 1) * size])
                    began = clock()
                    sender.send(sent)
                    packets.check_acks(exactly(sender, packets.ACK), bytes([packets.PUBACK]))
                    took.append(clock() - began)
                    got = exactly(receiver, size)
                    identifier = stream.layout.identifier
                    if got[:identifier] + got[identifier + 2 :] != sent[:identifier] + sent[identifier + 2 :]:
                        raise Garbled("a message arrived that differs from the one sent")
                    receiver.send(packets.answer(got, packet=size, identifier=identifier, kind=packets.PUBACK))
                    if began > latest:
                        break
            except TimeoutError as error:
                raise Stalled(f"message {len(took)} was not answered within {PATIENCE_S:.0f} s") from error
            reading = meter.read()
        return _numbers(took, _PROMISE_WARM_UP, reading)


def _numbers(took: list[int], warm_up: int, reading: Reading) -> Metrics:
    measured = sorted(took[min(warm_up, len(took) // 10) :])
    return {
        "p50_us": quantile(measured, 0.5) / 1e3,
        "p99_us": quantile(measured, 0.99) / 1e3,
        "cpu_us_inbound": reading.broker_s * 1e6 / len(took),
        "messages": len(measured),
        **reading.shares(),
    }


def exactly(sock: socket.socket, size: int) -> bytes:
    """So many bytes, however many pieces they come in; a closed connection is a failure."""
    data = sock.recv(size)
    while len(data) < size:
        chunk = sock.recv(size - len(data))
        if not chunk:
            raise Refused("the broker closed a connection")
        data += chunk
    return data
