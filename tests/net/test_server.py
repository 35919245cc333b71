"""The running broker, embedded with ``async with``: its beginning and its end."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from time import monotonic

import pytest
from websockets.frames import Frame, Opcode

import tieline
from tests.kits.certificates import Certificates
from tests.kits.dial import Dial, dial, open_socket
from tests.kits.interpreted import replaces_methods
from tests.kits.patience import PATIENCE_S, until
from tests.kits.websocket import WebSocketDial
from tieline import Settings
from tieline.core.broker import Broker as Core
from tieline.core.client import Connection
from tieline.net import server as servers
from tieline.net.link import SocketLink
from tieline.pytest_plugin import BrokerThread
from tieline.wire.encode import encode
from tieline.wire.packets import Connack, Connect, Disconnect, Pingreq, Pingresp, Puback, Publish, Will
from tieline.wire.reason import Reason

_FREE = "tcp://127.0.0.1:0"


# --- embedded -------------------------------------------------------------------------------------------------------


async def _converse(port: int) -> bytes:
    """CONNECT and hear the first bytes of the answer, from inside the broker's own event loop."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(encode(Connect(version=4, client_id="inside"), 4))
    answer = await reader.readexactly(4)
    writer.close()
    await writer.wait_closed()
    return answer


def test_async_with() -> None:
    async def program() -> None:
        async with tieline.Broker(listen=[_FREE], name="embedded") as broker:
            assert broker.urls == [f"tcp://127.0.0.1:{broker.port}"]
            assert repr(broker) == f"<Broker embedded {broker.urls[0]}>"
            assert await _converse(broker.port) == b"\x20\x02\x00\x00"
        assert broker.urls == []
        assert repr(broker) == "<Broker embedded not running>"

    asyncio.run(program())


def test_it_listens_on_a_free_loopback_port_by_default() -> None:
    async def program() -> None:
        async with tieline.Broker() as broker:
            assert re.fullmatch(r"tcp://127\.0\.0\.1:[1-9]\d+", broker.urls[0])

    asyncio.run(program())


def test_two_brokers_in_one_loop_are_strangers() -> None:
    async def program() -> None:
        async with tieline.Broker() as one, tieline.Broker() as two:
            await asyncio.gather(_converse(one.port), _converse(two.port))
            assert one.core.account.connections == two.core.account.connections == 1

    asyncio.run(program())


def test_it_can_be_started_again() -> None:
    async def program() -> None:
        broker = tieline.Broker()
        for _ in range(3):
            async with broker:
                assert await _converse(broker.port) == b"\x20\x02\x00\x00"

    asyncio.run(program())


def test_it_stops_when_the_block_fails_and_the_failure_is_the_programs() -> None:
    async def program() -> None:
        broker = tieline.Broker()
        with pytest.raises(ZeroDivisionError):
            async with broker:
                raise ZeroDivisionError
        assert broker.urls == []

    asyncio.run(program())


def test_stop_without_start_is_nothing() -> None:
    async def program() -> None:
        await tieline.Broker().stop()

    asyncio.run(program())


def test_the_core_is_there_only_while_it_runs() -> None:
    with pytest.raises(RuntimeError, match="not running"):
        _ = tieline.Broker().core


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_it_runs_under_either_loop(loop: str) -> None:
    factory = pytest.importorskip("uvloop").new_event_loop if loop == "uvloop" else asyncio.new_event_loop

    async def program() -> None:
        async with tieline.Broker() as broker:
            assert await _converse(broker.port) == b"\x20\x02\x00\x00"

    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(program())


# --- the end of a broker --------------------------------------------------------------------------------------------


@contextmanager
def _stoppable(settings: Settings | None = None) -> Iterator[BrokerThread]:
    """A broker that the test may stop by itself."""
    running = BrokerThread(settings).__enter__()
    try:
        yield running
    finally:
        with suppress(RuntimeError):  # its loop is closed already
            _stop(running)
        running._thread.join(PATIENCE_S)
    assert not running._thread.is_alive()


@pytest.fixture
def broker() -> Iterator[BrokerThread]:
    with _stoppable() as running:
        yield running


def _stop(broker: BrokerThread) -> None:
    """Tell the broker to stop, without waiting for it."""
    assert broker._loop is not None and broker._stopping is not None
    broker._loop.call_soon_threadsafe(broker._stopping.set)


def test_mqtt_5_clients_are_told_others_see_an_orderly_end(broker: BrokerThread) -> None:
    (url,) = broker.urls
    with dial(url, "five") as five, dial(url, "four", version=4) as four, Dial(url) as nobody:
        until(lambda: broker.ask(lambda core: len(core.connections)) == 3, "all are there")
        _stop(broker)
        five.expect(Disconnect, reason=Reason.SERVER_SHUTTING_DOWN)
        five.expect_end()
        four.expect_end()
        nobody.expect_end()


def test_wills_are_published_before_the_goodbye(broker: BrokerThread) -> None:
    (url,) = broker.urls
    delayed = Will(topic="wills/b", payload=b"delayed", properties={"will_delay_interval": 600})
    with (
        dial(url, "watcher") as watcher,
        dial(url, "a", will=Will(topic="wills/a", payload=b"at once")),
        dial(url, "b", will=delayed, properties={"session_expiry_interval": 600}),
    ):
        watcher.subscribe("wills/#", 1)
        _stop(broker)
        *messages, farewell = watcher.rest()
    assert isinstance(farewell, Disconnect)
    found = {packet.topic: packet.payload for packet in messages if isinstance(packet, Publish)}
    assert found == {"wills/a": b"at once", "wills/b": b"delayed"}


def test_what_was_published_before_the_end_is_delivered_before_the_end(broker: BrokerThread) -> None:
    (url,) = broker.urls
    numbers = [number.to_bytes(2, "big") for number in range(500)]
    with dial(url, "reader") as reader, dial(url, "writer") as writer:
        reader.subscribe("a")
        for number in numbers:
            writer.send(Publish(topic="a", payload=number * 500))
        writer.send(Publish(topic="end", qos=1, packet_id=1))
        writer.expect(Puback)
        _stop(broker)
        found = [packet.payload[:2] for packet in reader.rest() if isinstance(packet, Publish)]
    assert found == numbers


def test_nobody_can_delay_the_end_for_ever(broker: BrokerThread, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(servers, "_STOP_S", 0.2)
    (url,) = broker.urls
    with dial(url, "stubborn") as stubborn:
        stubborn.subscribe("a")
        with dial(url, "writer") as writer:
            for _ in range(100):
                writer.send(Publish(topic="a", payload=bytes(100_000)))
        _stop(broker)
        until(lambda: not broker._thread.is_alive(), "the broker has ended")


def test_sockets_that_wait_for_their_peers_are_closed_with_the_rest(
    broker: BrokerThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A peer that was told to go and does not close is over for the core, and its socket is still ours."""
    monkeypatch.setattr(servers, "_STOP_S", 0.1)
    with dial(broker.urls[0], "slow") as slow:
        (link,) = broker.ask(lambda core: [conn.link for conn in core.connections])
        assert isinstance(link, SocketLink)
        slow.send(b"\x00\x00")
        until(lambda: not broker.ask(lambda core: core.connections), "it is over for the core")
        assert link.fd >= 0
        _stop(broker)
        until(lambda: not broker._thread.is_alive(), "the broker has ended")
        assert link.fd < 0


def test_the_goodbye_travels_through_every_layer(certificates: Certificates) -> None:
    listeners = certificates.listeners(["tls://127.0.0.1:0", "wss://127.0.0.1:0"])
    context = certificates.context()
    with _stoppable(Settings(listener=listeners)) as broker:
        tls, wss = broker.urls
        with dial(tls, "tls", context=context) as client, WebSocketDial(wss, context=context) as websocket:
            websocket.send(encode(Connect(version=5, client_id="wss"), 5))
            assert isinstance(websocket.packet(), Connack)
            _stop(broker)
            client.expect(Disconnect, reason=Reason.SERVER_SHUTTING_DOWN)
            client.expect_end()
            farewell = websocket.packet()
            assert isinstance(farewell, Disconnect) and farewell.reason is Reason.SERVER_SHUTTING_DOWN
            frame = websocket.event()
            assert isinstance(frame, Frame) and frame.opcode is Opcode.CLOSE


@replaces_methods
def test_a_fault_with_one_connection_does_not_stop_the_others(
    broker: BrokerThread, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    core = broker._server.core
    receive = core.receive

    def fail(conn: Connection, data: bytes, now: float) -> None:
        if conn.client_id == "unlucky":
            raise ZeroDivisionError("a fault of ours")
        receive(conn, data, now)

    (url,) = broker.urls
    with dial(url, "unlucky") as unlucky, dial(url, "lucky") as lucky:
        monkeypatch.setattr(core, "receive", fail)
        unlucky.send(Pingreq())
        unlucky.expect_end()
        lucky.send(Pingreq())
        lucky.expect(Pingresp)
    assert core.account.closed["internal_error"] == 1
    assert "internal error, please report it" in caplog.text and "a fault of ours" in caplog.text


def test_a_fault_in_a_timer_does_not_stop_the_others(broker: BrokerThread, caplog: pytest.LogCaptureFixture) -> None:
    fired = threading.Event()

    def fail(_now: float) -> None:
        raise ZeroDivisionError("a fault of ours")

    def set_timers(core: Core) -> None:
        core.timers.at(monotonic(), fail)
        core.timers.at(monotonic(), lambda _now: fired.set())

    broker.ask(set_timers)
    assert fired.wait(PATIENCE_S)
    assert "internal error" in caplog.text and "a fault of ours" in caplog.text


def test_nobody_is_let_in_after_the_end_began(broker: BrokerThread) -> None:
    (url,) = broker.urls
    with dial(url, "last") as last:
        _stop(broker)
        last.expect(Disconnect)
        with pytest.raises((ConnectionRefusedError, ConnectionResetError)):
            open_socket(url).close()
