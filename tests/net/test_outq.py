"""The kernel's share: a thin link gets little and stays busy, a fast one is not held up, a stalled one gets nothing."""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable
from contextlib import ExitStack
from time import sleep
from typing import Any

import pytest

from tests.kits.certificates import Certificates
from tests.kits.dial import Dial
from tests.kits.patience import until
from tieline import Settings
from tieline.conf.schema import Class, Limits
from tieline.net import outq
from tieline.net.outq import FAST, LEAST, MARGIN, OutQueue
from tieline.pytest_plugin import BrokerThread
from tieline.sched.congestion import MOST_S, UNKNOWN
from tieline.wire.packets import Publish

#: Bytes of one message.
PACKET = 1_000


class Kernel:
    """A socket buffer in front of a link: what is written leaves at a rate, and is gone half a round trip later."""

    def __init__(self, rate: float, rtt_s: float = 0.0) -> None:
        self.rate = rate
        self.rtt_s = rtt_s
        self.now = 1_000.0
        #: Bytes not acknowledged, and when each portion that has left will be.
        self.unsent = 0.0
        self.in_flight: list[tuple[float, float]] = []
        self.most = 0.0
        self.delivered = 0.0
        self.outq = OutQueue(self)  # type: ignore[arg-type]  # it asks for two things, and this answers both

    @property
    def held(self) -> float:
        return self.unsent + sum(size for _, size in self.in_flight)

    def getsockopt(self, level: int, option: int, size: int) -> bytes:
        return bytes(148) + struct.pack("I", int(self.rtt_s * 1e6))

    def ioctl(self, sock: Kernel, request: int, answer: Any) -> None:
        assert sock is self and request == outq._SIOCOUTQ
        answer[0] = round(self.held)

    def pass_time(self, seconds: float) -> None:
        self.now += seconds
        leaving = min(self.unsent, self.rate * seconds)
        self.unsent -= leaving
        if leaving:
            self.in_flight.append((self.now + self.rtt_s, leaving))
        while self.in_flight and self.in_flight[0][0] <= self.now:
            self.delivered += self.in_flight.pop(0)[1]

    def offer(self, size: float) -> float:
        """What a link does with so many waiting bytes: writes packets while there is room; how many were written."""
        written = 0.0
        while written < size and (not self.outq.is_due or self.outq.look(self.now) > 0):
            for _ in range(max(1, -(-self.outq.room // PACKET))):
                self.outq.wrote(PACKET)
                self.unsent += PACKET
                written += PACKET
                if written >= size:
                    break
            self.outq.probe()
        self.most = max(self.most, self.held)
        return written

    def run(self, seconds: float, step: float = 0.001, offered_per_s: float = float("inf")) -> float:
        """Offer bytes for a while; how many were delivered."""
        before, waiting = self.delivered, 0.0
        for _ in range(round(seconds / step)):
            self.pass_time(step)
            waiting = min(1e9, waiting + offered_per_s * step)
            if waiting >= PACKET:
                waiting -= self.offer(min(waiting, 65_536))
        return self.delivered - before


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Kernel]:
    def make(rate: float, rtt_s: float = 0.0) -> Kernel:
        made = Kernel(rate, rtt_s)
        monkeypatch.setattr(outq, "ioctl", made.ioctl)
        return made

    return make


def test_a_thin_link_gets_little_from_the_beginning_and_stays_busy(kernel: Callable[..., Kernel]) -> None:
    thin = kernel(16_000, 0.02)
    delivered = thin.run(10)
    assert delivered > 0.98 * 160_000, "the link was hardly ever idle"
    assert thin.most <= 2 * LEAST + PACKET, "not even before it was known to be slow"
    thin.most = 0.0
    thin.run(10)
    assert thin.most <= LEAST + PACKET
    assert thin.outq.is_slow
    assert thin.outq.path.rate == pytest.approx(16_000, rel=0.1)
    assert thin.outq.path.rtt_s == pytest.approx(0.02, rel=0.01)


def test_a_long_link_gets_what_is_on_the_way(kernel: Callable[..., Kernel]) -> None:
    long = kernel(1_000_000, 0.1)
    long.run(5)
    long.most = 0.0
    delivered = long.run(5)
    assert delivered > 0.85 * 5_000_000
    assert long.most <= 2 * MARGIN * 1_000_000 * 0.1 + PACKET


def test_a_fast_receiver_is_not_held_up(kernel: Callable[..., Kernel]) -> None:
    fast = kernel(500_000_000)
    delivered = fast.run(0.5, offered_per_s=20_000_000)
    assert delivered > 0.95 * 10_000_000
    assert not fast.outq.is_slow
    assert fast.outq.allowance >= FAST


@pytest.mark.parametrize("per_s", [1_000, 10_000, 100_000])
def test_a_receiver_that_is_sent_little_is_not_slow(kernel: Callable[..., Kernel], per_s: float) -> None:
    quiet = kernel(10_000_000, 0.0005)
    quiet.run(3, offered_per_s=per_s)
    quiet.pass_time(0.001)
    quiet.pass_time(0.001)
    assert quiet.outq.look(quiet.now) > 0
    assert not quiet.outq.is_slow
    assert quiet.outq.path is UNKNOWN or quiet.outq.path.rate > 1_000_000, "how much was sent is no rate of the link"


def test_bursts_to_a_healthy_receiver_are_no_measure_of_it(kernel: Callable[..., Kernel]) -> None:
    """Right after a write the kernel always holds something; what counts is whether it held it all the time."""
    healthy = kernel(10_000_000, 0.0005)
    for _ in range(30):
        healthy.offer(20_000)
        healthy.outq.look(healthy.now)
        for _ in range(100):
            healthy.pass_time(0.001)
    assert healthy.outq.path is UNKNOWN


def test_a_thin_link_that_is_sent_little_stays_thin(kernel: Callable[..., Kernel]) -> None:
    """An urgent message now and then finds the link empty: that is no reason to open it for the next flood."""
    thin = kernel(16_000, 0.02)
    thin.run(5)
    thin.run(10, offered_per_s=1_000)
    assert thin.outq.allowance <= 2 * LEAST
    thin.most = 0.0
    thin.run(2)
    assert thin.most <= 2 * LEAST + PACKET


def test_a_receiver_that_stops_reading_gets_no_more(kernel: Callable[..., Kernel]) -> None:
    stalled = kernel(16_000)
    stalled.run(2)
    stalled.rate = 0.0
    stalled.run(1)
    before = stalled.held
    assert before <= LEAST + PACKET
    stalled.run(5)
    assert stalled.held == before
    assert stalled.outq.is_slow
    assert stalled.outq.path.rate < 100


def test_a_receiver_that_was_slow_may_become_fast_again(kernel: Callable[..., Kernel]) -> None:
    again = kernel(16_000)
    again.run(3)
    assert again.outq.is_slow
    again.rate = 100_000_000
    delivered = again.run(2)
    assert again.outq.allowance >= FAST
    assert delivered > 10_000_000


def test_a_receiver_that_was_fast_may_become_slow(kernel: Callable[..., Kernel]) -> None:
    tired = kernel(10_000_000)
    tired.run(1)
    tired.rate = 16_000
    tired.run(30)
    tired.most = 0.0
    tired.run(5)
    assert tired.most <= LEAST + PACKET


def test_when_to_look_again(kernel: Callable[..., Kernel]) -> None:
    thin = kernel(16_000)
    thin.run(3)
    assert 0.001 <= thin.outq.drained_in() <= 0.1
    thin.rate = 0.0
    thin.run(3)
    assert 0.001 <= thin.outq.drained_in() <= 0.1


@pytest.mark.parametrize(("info", "seconds"), [(b"", 0.0), (bytes(148), 0.0), (bytes(148) + b"\xff" * 4, 0.0)])
def test_a_kernel_that_does_not_know_the_round_trip(
    kernel: Callable[..., Kernel], monkeypatch: pytest.MonkeyPatch, info: bytes, seconds: float
) -> None:
    old = kernel(16_000)
    monkeypatch.setattr(old, "getsockopt", lambda level, option, size: info)
    assert old.outq._round_trip_s() == seconds


def test_a_real_socket() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as far:
        near, _ = server.accept()
        with near:
            far.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            near.setblocking(False)
            queue = OutQueue(near)
            near.send(b"x" * 100)
            far.recv(100)
            assert queue._round_trip_s() > 0
            queue.wrote(near.send(bytes(1 << 20)))
            assert queue.look(1.0) < 0, "much more than it should have is there"
            assert queue.is_slow


def test_a_socket_without_tcp() -> None:
    near, far = socket.socketpair()
    with near, far:
        queue = OutQueue(near)
        queue.wrote(near.send(bytes(1_000)))
        assert queue.look(1.0) <= LEAST
        assert queue._round_trip_s() == 0.0


def connect_small(address: tuple[str, int], timeout: float) -> socket.socket:
    """As ``socket.create_connection``, with a kernel that takes little."""
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8_192)
    sock.settimeout(timeout)
    sock.connect(address)
    return sock


@pytest.mark.parametrize("scheme", ["tcp", "tls"])
@pytest.mark.parametrize("qos", [0, 1])
def test_a_reader_that_has_fallen_behind_gets_the_urgent_message_first(
    certificates: Certificates, monkeypatch: pytest.MonkeyPatch, scheme: str, qos: int
) -> None:
    """Megabytes wait for it; before the urgent message it reads no more than what the two kernels held."""
    settings = Settings(
        listener=certificates.listeners([f"{scheme}://127.0.0.1:0"]),
        class_=(Class(name="alarm", filter="alarm", level=3),),
        limits=Limits(inflight=65_535, receive_maximum=65_535),
    )
    context = certificates.context() if scheme == "tls" else None
    count = 2_000
    with BrokerThread(settings) as broker, ExitStack() as stack:
        writer = stack.enter_context(Dial(broker.urls[0], context=context))
        with monkeypatch.context() as patch:
            patch.setattr(socket, "create_connection", connect_small)
            reader = stack.enter_context(Dial(broker.urls[0], context=context))
        reader.connect("reader")
        reader.subscribe("#", qos)
        writer.connect("writer")
        for number in range(1, count + 1):
            writer.send(Publish(topic="bulk", payload=bytes(PACKET), qos=qos, packet_id=qos * number))
        writer.send(Publish(topic="alarm", payload=b"!", qos=qos, packet_id=qos * (count + 1)))
        until(lambda: broker.ask(lambda core: core.account.publishes_in) == count + 1, "everything has arrived")
        assert broker.ask(lambda core: len(core.sessions["reader"].queue)) > count / 2
        sleep(MOST_S)  # by now it is plain that the reader is behind
        before = 0
        while reader.expect(Publish).topic != "alarm":
            before += 1
        assert before * PACKET < 64_000
