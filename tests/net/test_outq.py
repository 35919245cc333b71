"""The kernel's share of a socket: what it says of itself, and urgent messages past it."""

from __future__ import annotations

import socket
from contextlib import ExitStack
from functools import partial
from time import sleep

import pytest

from tests.kits.certificates import Certificates
from tests.kits.dial import Dial
from tests.kits.patience import until
from tieline import Settings
from tieline.conf.schema import Class, Limits
from tieline.net.link import SocketLink
from tieline.net.outq import SocketBuffer
from tieline.pytest_plugin import BrokerThread
from tieline.sched.congestion import MOST_S
from tieline.sched.outflow import FAST, LEAST, Outflow
from tieline.wire.encode import encode
from tieline.wire.packets import Publish

#: Bytes of one message.
PACKET = 1_000


@pytest.mark.parametrize(("info", "seconds"), [(b"", 0.0), (bytes(148), 0.0), (bytes(148) + b"\xff" * 4, 0.0)])
def test_a_kernel_that_does_not_know_the_round_trip(info: bytes, seconds: float) -> None:
    class Old(socket.socket):
        def getsockopt(self, level: int, option: int, size: int = 0) -> bytes:  # type: ignore[override]  # always sized
            return info

    with Old() as old:
        assert SocketBuffer(old).round_trip_s() == seconds


def test_a_real_socket() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as far:
        near, _ = server.accept()
        with near:
            far.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            near.setblocking(False)
            queue = Outflow(SocketBuffer(near))
            near.send(b"x" * 100)
            far.recv(100)
            assert SocketBuffer(near).round_trip_s() > 0
            queue.written += near.send(bytes(1 << 20))
            assert queue.look(1.0) < 0, "much more than it should have is there"
            assert queue.is_slow


def test_a_socket_without_tcp() -> None:
    near, far = socket.socketpair()
    with near, far:
        queue = Outflow(SocketBuffer(near))
        queue.written += near.send(bytes(1_000))
        assert queue.look(1.0) <= LEAST
        assert SocketBuffer(near).round_trip_s() == 0.0


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
        assert isinstance(link, SocketLink)
        assert link._outq.allowance >= FAST
        assert not link._outq.is_slow
