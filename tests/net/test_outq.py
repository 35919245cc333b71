"""The kernel's share: a thin link gets little and stays busy, a fast one is not held up, a stalled one gets nothing."""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from time import sleep
from typing import Any

import pytest

from tests.kits.certificates import Certificates
from tests.kits.dial import Dial
from tests.kits.patience import until
from tieline import Settings
from tieline.conf.schema import Class, Limits
from tieline.net import outq
from tieline.net.link import Link
from tieline.net.outq import FAST, LATER_S, LEAST, MARGIN, SOON_S, OutQueue
from tieline.pytest_plugin import BrokerThread
from tieline.sched.congestion import MOST_S, UNKNOWN
from tieline.wire.codec import encode
from tieline.wire.packets import Publish

#: Bytes of one message.
PACKET = 1_000


class Kernel:
    """A socket buffer in front of a link: what is written leaves at a rate, and is gone half a round trip later."""

    def __init__(self, rate: float, rtt_s: float = 0.0, first: int = LEAST) -> None:
        self.rate = rate
        self.rtt_s = rtt_s
        self.now = 1_000.0
        #: Bytes not acknowledged, and when each portion that has left will be.
        self.unsent = 0.0
        self.in_flight: list[tuple[float, float]] = []
        self.most = 0.0
        self.delivered = 0.0
        self.outq = OutQueue(self, first)  # type: ignore[arg-type]  # it asks for three things, and this answers them

    @property
    def held(self) -> float:
        return self.unsent + sum(size for _, size in self.in_flight)

    def getsockopt(self, level: int, option: int, size: int) -> bytes:
        return bytes(148) + struct.pack("I", int(self.rtt_s * 1e6))

    def fileno(self) -> int:
        return 12_345

    def ioctl(self, fd: int, request: int, answer: Any) -> None:
        assert fd == self.fileno() and request == outq._SIOCOUTQ
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
                self.outq.written += PACKET
                self.unsent += PACKET
                written += PACKET
                if written >= size:
                    break
            if self.outq.is_due:
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
    def make(rate: float, rtt_s: float = 0.0, first: int = LEAST) -> Kernel:
        made = Kernel(rate, rtt_s, first)
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


@pytest.mark.parametrize("rate", [0, 16_000])
def test_a_receiver_of_which_nothing_is_known_gets_a_bounded_share(kernel: Callable[..., Kernel], rate: float) -> None:
    new = kernel(rate, 0.02, FAST)
    new.run(10)
    assert new.most <= FAST + PACKET
    new.run(10)
    assert new.outq.allowance <= 2 * LEAST, "by now it is known"
    assert new.outq.is_slow


def test_a_fast_receiver_is_seldom_looked_at(kernel: Callable[..., Kernel], monkeypatch: pytest.MonkeyPatch) -> None:
    fast = kernel(500_000_000, first=FAST)
    looks = 0

    def count(fd: int, request: int, answer: Any) -> None:
        nonlocal looks
        looks += 1
        fast.ioctl(fd, request, answer)

    monkeypatch.setattr(outq, "ioctl", count)
    delivered = fast.run(1, offered_per_s=20_000_000)
    assert delivered > 0.95 * 20_000_000
    assert looks <= 2 * delivered / FAST


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
    assert thin.outq.drained_in() == SOON_S
    thin.run(3)
    assert SOON_S <= thin.outq.drained_in() <= LATER_S
    thin.rate = 0.0
    thin.run(3)
    assert thin.outq.drained_in() == LATER_S, "many that have stopped reading must not keep the broker busy"


def test_a_reader_that_has_never_read_is_looked_at_seldom(kernel: Callable[..., Kernel]) -> None:
    stopped = kernel(0)
    stopped.run(3)
    assert stopped.outq.path.rate == 0
    assert stopped.outq.drained_in() == LATER_S


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
            queue.written += near.send(bytes(1 << 20))
            assert queue.look(1.0) < 0, "much more than it should have is there"
            assert queue.is_slow


def test_a_socket_without_tcp() -> None:
    near, far = socket.socketpair()
    with near, far:
        queue = OutQueue(near)
        queue.written += near.send(bytes(1_000))
        assert queue.look(1.0) <= LEAST
        assert queue._round_trip_s() == 0.0


def connect_small(address: tuple[str, int], timeout: float, buffer: int = 8_192) -> socket.socket:
    """As ``socket.create_connection``, with a kernel that takes little."""
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
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


@pytest.mark.parametrize("scheme", ["tcp", "tls"])
@pytest.mark.parametrize("size", [1_000, 60])
def test_the_first_urgent_message_of_a_broker_finds_little_in_the_kernel(
    certificates: Certificates, monkeypatch: pytest.MonkeyPatch, scheme: str, size: int
) -> None:
    """No rule, no level anywhere until now: what was written before could not know that anything would be urgent."""
    settings = Settings(listener=certificates.listeners([f"{scheme}://127.0.0.1:0"]))
    context = certificates.context() if scheme == "tls" else None
    count = 3_000_000 // size
    with BrokerThread(settings) as broker, ExitStack() as stack:
        writer = stack.enter_context(Dial(broker.urls[0], context=context))
        with monkeypatch.context() as patch:
            patch.setattr(socket, "create_connection", partial(connect_small, buffer=4_096))
            reader = stack.enter_context(Dial(broker.urls[0], context=context))
        reader.connect("reader")
        reader.subscribe("#")
        writer.connect("writer")
        bulk = encode(Publish(topic="bulk", payload=bytes(size)), 5)
        for _ in range(100):
            writer.send(bulk * (count // 100))
        until(lambda: broker.ask(lambda core: core.account.publishes_in) == count, "everything has arrived")
        assert not broker.ask(lambda core: core.priorities.always_matter)
        sleep(MOST_S)  # by now it is plain that the reader is behind
        urgent = Publish(topic="alarm", payload=b"!", properties={"user_property": [("priority", "3")]})
        writer.send(urgent)
        until(lambda: broker.ask(lambda core: core.account.publishes_in) == count + 1, "the urgent one, too")
        before = 0
        while reader.expect(Publish).topic != "alarm":
            before += 1
        assert before * size < 100 * PACKET


@pytest.mark.parametrize("scheme", ["tcp", "tls"])
def test_large_messages_to_a_reader_that_keeps_up_are_not_held_up(certificates: Certificates, scheme: str) -> None:
    """Its share grows with what it takes, so that a large message needs few looks at the kernel."""
    settings = Settings(listener=certificates.listeners([f"{scheme}://127.0.0.1:0"]))
    context = certificates.context() if scheme == "tls" else None
    with BrokerThread(settings) as broker, ExitStack() as stack:
        writer = stack.enter_context(Dial(broker.urls[0], context=context))
        reader = stack.enter_context(Dial(broker.urls[0], context=context))
        reader.connect("reader")
        reader.subscribe("#")
        writer.connect("writer")
        for _ in range(40):
            writer.send(Publish(topic="large", payload=bytes(250_000)))
            assert len(reader.expect(Publish).payload) == 250_000
        (link,) = broker.ask(lambda core: [conn.link for conn in core.connections if conn.client_id == "reader"])
        assert isinstance(link, Link)
        assert link._outq.allowance >= FAST
        assert not link._outq.is_slow
