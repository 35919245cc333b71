"""Time from send to receive: with one message in flight, and of many clients that each send now and then.

Where clients are paced, a broker hardly ever finds two messages at once.  They form a ring: each publishes to the topic
of the next.  Sends are spread evenly over time, one message to a segment, and every message carries the time at which
it was due.
"""

from __future__ import annotations

import contextlib
import select
import socket
import ssl
import struct
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

from tieline.bench.load import packets
from tieline.bench.load.clients import PATIENCE_S, clients, forget, subscribe
from tieline.bench.load.job import Endpoint, Garbled, Lost, Metrics, Stalled, TurnedDown, quantile
from tieline.bench.load.packets import PacketLayout, encode, layout_of
from tieline.bench.measure import CostMeter, Costs


@dataclass(frozen=True, slots=True, kw_only=True)
class PingPong:
    """So many messages, each sent when the one before has arrived."""

    messages: int
    payload: int = 64
    at_most_s: float = 3.0
    qos: ClassVar[int] = 0
    topic: ClassVar[str] = "ping"
    warm_up: ClassVar[int] = 300

    @property
    def patience_s(self) -> float:
        """The messages, and the connecting before."""
        return 20.0 + 3 * self.at_most_s

    def run(self, at: Endpoint) -> Metrics:
        """Quantiles of the time from send to receive, or to acknowledgement, in microseconds."""
        stream = encode(
            0, [self.topic], payload=self.payload, qos=self.qos, version=4, count=self.messages + self.warm_up
        )
        took: list[int] = []
        clock = time.perf_counter_ns
        to, of = f"{self.topic}-sub", f"{self.topic}-pub"
        if self.qos:
            forget(at, [to])
        with clients(at, [to], clean=not self.qos) as (receiver,), clients(at.entrance, [of]) as (sender,):
            subscribe(receiver, [self.topic], qos=self.qos)
            for sock in (receiver, sender):
                sock.settimeout(PATIENCE_S)
            latest = clock() + int(self.at_most_s * 1e9)
            meter = CostMeter(*at.pids)
            try:
                for number in range(stream.count):
                    began = clock()
                    took.append(self._exchange(sender, receiver, stream.layout, stream.packet(number)))
                    if began > latest:
                        break
            except TimeoutError as error:
                raise Stalled(f"message {len(took)} was not answered within {PATIENCE_S:.0f} s") from error
            reading = meter.read()
        return _numbers(took, self.warm_up, reading)

    def _exchange(self, sender: socket.socket, receiver: socket.socket, layout: PacketLayout, sent: bytes) -> int:
        """One message and what is to follow it; how long was waited, in nanoseconds."""
        return passed_on(sender, receiver, sent)


def passed_on(sender: socket.socket, receiver: socket.socket, sent: bytes) -> int:
    """Nanoseconds from sending a packet until the first of it arrives; it must be the same."""
    began = time.perf_counter_ns()
    sender.send(sent)
    got = receiver.recv(len(sent))
    took = time.perf_counter_ns() - began
    if len(got) < len(sent):
        got += exactly(receiver, len(sent) - len(got))
    if got != sent:
        raise Garbled("a message arrived that differs from the one sent")
    return took


@dataclass(frozen=True, slots=True, kw_only=True)
class Assure(PingPong):
    """The same for a session that stays, each sent when the one before was acknowledged and has arrived."""

    qos: ClassVar[int] = 1
    topic: ClassVar[str] = "promise"
    warm_up: ClassVar[int] = 100

    def _exchange(self, sender: socket.socket, receiver: socket.socket, layout: PacketLayout, sent: bytes) -> int:
        began = time.perf_counter_ns()
        sender.send(sent)
        packets.check_acks(exactly(sender, packets.ACK), bytes([packets.PUBACK]))
        took = time.perf_counter_ns() - began
        got, at = exactly(receiver, layout.packet), layout.identifier
        if got[:at] + got[at + 2 :] != sent[:at] + sent[at + 2 :]:
            raise Garbled("a message arrived that differs from the one sent")
        receiver.send(packets.answer(got, packet=layout.packet, identifier=at, kind=packets.PUBACK))
        return took


def _numbers(took: list[int], warm_up: int, reading: Costs) -> Metrics:
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
            raise TurnedDown("the broker closed a connection")
        data += chunk
    return data


_STAMP = struct.Struct("!Q")
_DRAIN_S = 3.0
_WARM_UP_S = 0.3
_WARM_UP_RATE = 2_000.0
#: Clients that keep the broker warm for those who have not published before.
_OTHERS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class PacedClients:
    """``clients`` connections that publish ``per_second`` messages each."""

    clients: int
    per_second: float
    seconds: float
    tls: bool = False
    #: Every message is the first of its client and of its topic; others have warmed the broker up.
    first: bool = False
    payload: int = 64

    @property
    def patience_s(self) -> float:
        """TLS handshakes come first: some milliseconds each."""
        return 30.0 + 3 * self.seconds + 0.02 * self.clients

    def run(self, at: Endpoint) -> Metrics:
        """CPU of the broker over the spell, per message and as a share of a core, and the delivery times."""
        rate = self.clients * self.per_second
        # select() takes descriptors below 1024 only: the poller gets its number before the clients do.
        with select.epoll() as poller, self._ring(at, poller, "paced", self.clients) as ring:
            if self.first:
                with self._ring(at, poller, "early", _OTHERS) as others:
                    others.turn(_WARM_UP_RATE, _OTHERS / _WARM_UP_RATE)
                    others.turn(rate, _WARM_UP_S)
                    reading, sent = self._measure(at, ring, rate)
            else:
                # every client sends once before it counts: a topic's first message costs a broker more than later ones
                ring.turn(_WARM_UP_RATE, self.clients / _WARM_UP_RATE)
                ring.turn(rate, _WARM_UP_S)
                ring.took.clear()
                reading, sent = self._measure(at, ring, rate)
        took = sorted(ring.took)
        return {
            "rate": sent / reading.wall_s,
            "offered_rate": rate,
            "cpu_us_delivered": reading.broker_s * 1e6 / sent,
            "p50_us": quantile(took, 0.5) / 1e3,
            "p99_us": quantile(took, 0.99) / 1e3,
            "delivered": len(took),
            **reading.shares(),
        }

    def _measure(self, at: Endpoint, ring: _Ring, rate: float) -> tuple[Costs, int]:
        meter = CostMeter(at.pid)
        sent = ring.turn(rate, self.clients / rate if self.first else self.seconds)
        return meter.read(), sent

    @contextlib.contextmanager
    def _ring(self, at: Endpoint, poller: select.epoll, name: str, count: int) -> Iterator[_Ring]:
        with clients(at, [f"{name}{number}" for number in range(count)], tls=self.tls) as socks:
            topics = [f"{name}/{number:05d}" for number in range(count)]
            for sock, topic in zip(socks, topics, strict=True):
                subscribe(sock, [topic])
                poller.register(sock, select.EPOLLIN)
            yield _Ring(socks, topics, poller, self.payload)


@dataclass(slots=True)
class _Ring:
    socks: list[socket.socket]
    topics: list[str]
    poller: select.epoll
    payload: int
    #: Nanoseconds from due to received, one for each message.
    took: list[int] = field(default_factory=list)

    def turn(self, rate: float, seconds: float) -> int:
        """Send at this total rate for a while and see everything arrive; returns the number of messages."""
        layout = layout_of(topic_bytes=len(self.topics[0]), payload=self.payload, qos=0, version=4)
        count = len(self.socks)
        heads = [layout.head + self.topics[(number + 1) % count].encode() for number in range(count)]
        filler = bytes(self.payload - _STAMP.size)
        clients = {sock.fileno(): sock for sock in self.socks}
        wanted = int(rate * seconds)
        arrived = len(self.took) + wanted
        gap = 1e9 / rate
        clock = time.perf_counter_ns
        began = clock()
        latest = began + int((2 * seconds + _DRAIN_S) * 1e9)
        sent = 0
        while len(self.took) < arrived:
            now = clock()
            while sent < wanted and began + sent * gap <= now:
                number = sent % count
                self._send(self.socks[number], heads[number] + _STAMP.pack(clock()) + filler)
                sent += 1
            pause = (began + sent * gap - clock()) / 1e9 if sent < wanted else 0.1
            ready, _, _ = select.select([self.poller], [], [], max(0.0, pause))
            if ready:
                for fd, _ in self.poller.poll(0):
                    self._receive(clients[fd], layout)
            if now > latest:
                raise Lost(f"{arrived - len(self.took)} of {wanted} paced messages did not arrive in time")
        return wanted

    def _send(self, sock: socket.socket, packet: bytes) -> None:
        try:
            if sock.send(packet) != len(packet):
                raise Lost("a paced client's socket is full")
        except (BlockingIOError, ssl.SSLWantWriteError) as error:
            raise Lost("a paced client's socket is full: the broker does not read") from error

    def _receive(self, sock: socket.socket, layout: PacketLayout) -> None:
        try:
            data = sock.recv(65_536)
        except (BlockingIOError, ssl.SSLWantReadError):
            return
        now = time.perf_counter_ns()
        if not data:
            raise TurnedDown("the broker closed a paced client's connection")
        if len(data) % layout.packet or not data.startswith(layout.head):
            raise Garbled(f"a paced client received {data[:16].hex(' ')}")
        for start in range(layout.payload.start, len(data), layout.packet):
            self.took.append(now - _STAMP.unpack_from(data, start)[0])
        if isinstance(sock, ssl.SSLSocket) and sock.pending():
            self._receive(sock, layout)
