"""Listening sockets: several at once, free ports, limits, and sentences instead of tracebacks."""

from __future__ import annotations

import errno
import gc
import socket
from contextlib import ExitStack

import pytest

from tests.kits.certificates import Certificates
from tests.kits.dial import Dial, dial, open_socket
from tests.kits.patience import until
from tests.kits.websocket import WebSocketDial
from tieline import Limits, Listener, Settings
from tieline.conf.urls import parse
from tieline.net import link as links
from tieline.net import listener as listeners
from tieline.net.link import SocketLink
from tieline.net.listener import ListenError
from tieline.pytest_plugin import BrokerThread
from tieline.wire.encode import encode
from tieline.wire.packets import Connack, Connect, Disconnect, Pingreq, Pingresp, Publish

_FREE = "tcp://127.0.0.1:0"


def _has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as sock:
            sock.bind(("::1", 0))
    except OSError:
        return False
    return True


def _is_refused(url: str) -> bool:
    """The broker closes the connection before it says a word."""
    with open_socket(url) as sock:
        try:
            return sock.recv(1) == b""
        except ConnectionResetError:
            return True


def test_one_message_reaches_clients_of_every_listener(certificates: Certificates) -> None:
    urls = [f"{scheme}://127.0.0.1:0" for scheme in ("tcp", "tls", "ws", "wss", "tcp")]
    with BrokerThread(Settings(listener=certificates.listeners(urls))) as broker, ExitStack() as stack:
        assert [parse(url).scheme for url in broker.urls] == ["tcp", "tls", "ws", "wss", "tcp"]
        assert len({parse(url).port for url in broker.urls}) == 5
        plain, tls, ws, wss, other = broker.urls
        context = certificates.context()
        clients = [
            stack.enter_context(dial(plain, "tcp")),
            stack.enter_context(dial(tls, "tls", context=context)),
            stack.enter_context(dial(other, "other", version=4)),
        ]
        for client in clients:
            client.subscribe("all")
        for url in (ws, wss):
            websocket = stack.enter_context(WebSocketDial(url, context=context if url == wss else None))
            websocket.send(encode(Connect(version=5, client_id=url), 5))
            assert isinstance(websocket.packet(), Connack)
            websocket.send(encode(Publish(topic="all", payload=url.encode()), 5))
            for client in clients:
                client.expect(Publish, topic="all", payload=url.encode())


def test_port_0_becomes_the_port_it_got() -> None:
    with BrokerThread(listen=[_FREE]) as broker:
        assert broker.port != 0
        assert broker.urls == [f"tcp://127.0.0.1:{broker.port}"]
        with dial(broker.urls[0], "a"):
            pass


def test_an_address_in_use_gives_a_sentence() -> None:
    with BrokerThread() as first:
        with pytest.raises(ListenError) as caught, BrokerThread(listen=first.urls):
            pass
        assert str(caught.value).startswith(f"cannot listen on {first.urls[0]}: ")
        assert str(caught.value).endswith("Is another broker running?")
        with dial(first.urls[0], "unharmed"):
            pass


def test_all_listeners_or_none() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        probe.listen()
        taken = f"tcp://127.0.0.1:{probe.getsockname()[1]}"
        with socket.socket() as other:
            other.bind(("127.0.0.1", 0))
            free = f"tcp://127.0.0.1:{other.getsockname()[1]}"
        with pytest.raises(ListenError), BrokerThread(listen=[free, taken]):
            pass
        with pytest.raises(ConnectionRefusedError):
            open_socket(free)


@pytest.mark.parametrize("url", ["tcp://no-such-host.invalid:1883", "tcp://192.0.2.1:1883"])
def test_an_address_that_is_not_ours_gives_a_sentence(url: str) -> None:
    with pytest.raises(ListenError, match=rf"^cannot listen on {url}: .*\.$"), BrokerThread(listen=[url]):
        pass


def test_a_failed_listener_leaves_nothing_open() -> None:
    with pytest.raises(ListenError), BrokerThread(listen=["tcp://192.0.2.1:1883"]):
        pass
    gc.collect()  # an open socket would be warned about here, and warnings are errors


@pytest.mark.skipif(not _has_ipv6(), reason="this machine has no IPv6 loopback")
def test_ipv6() -> None:
    with BrokerThread(listen=["tcp://[::1]:0"]) as broker:
        assert broker.urls == [f"tcp://[::1]:{broker.port}"]
        assert broker.host == "::1"
        with dial(broker.urls[0], "six") as client:
            peer = broker.ask(lambda core: next(iter(core.connections)).peer)
            assert peer == f"[::1]:{client.sock.getsockname()[1]}"


def test_a_name_is_looked_up() -> None:
    with BrokerThread(listen=["tcp://localhost:0"]) as broker, dial(broker.urls[0], "named"):
        assert broker.host == "localhost"


def test_a_listener_lets_in_as_many_as_it_may() -> None:
    settings = Settings(listener=(Listener(url=_FREE, connections=2), Listener(url=_FREE)))
    with BrokerThread(settings) as broker, ExitStack() as stack:
        small, large = broker.urls
        first = stack.enter_context(dial(small, "1"))
        stack.enter_context(dial(small, "2"))
        assert _is_refused(small)
        assert broker.ask(lambda core: core.account.closed["too_many_connections"]) == 1
        stack.enter_context(dial(large, "elsewhere"))
        first.close()
        until(lambda: broker.ask(lambda core: len(core.connections)) == 2, "a place is free")
        with dial(small, "3"):
            assert _is_refused(small)


def test_the_broker_lets_in_as_many_as_it_may_on_all_listeners_together() -> None:
    settings = Settings(listener=(Listener(url=_FREE), Listener(url=_FREE)), limits=Limits(connections=2))
    with BrokerThread(settings) as broker, dial(broker.urls[0], "1"), dial(broker.urls[1], "2") as second:
        assert _is_refused(broker.urls[0]) and _is_refused(broker.urls[1])
        second.send(Pingreq())
        second.expect(Pingresp)


def test_zero_connections_means_zero() -> None:
    with BrokerThread(Settings(listener=(Listener(url=_FREE, connections=0),))) as broker:
        assert _is_refused(broker.urls[0])


def test_more_arrivals_than_one_turn_accepts() -> None:
    with BrokerThread() as broker, ExitStack() as stack:
        many = [stack.enter_context(Dial(broker.urls[0])) for _ in range(3 * listeners.ACCEPTS_PER_TURN)]
        for number, client in enumerate(many):
            client.send(Connect(version=5, client_id=str(number)))
        for client in many:
            client.expect(Connack)
        assert broker.ask(lambda core: len(core.sessions)) == len(many)


def test_a_connection_that_is_over_leaves_nothing_behind() -> None:
    with BrokerThread() as broker:
        for number in range(50):
            dial(broker.urls[0], str(number)).close()
        until(lambda: broker.ask(lambda core: not core.connections), "all are gone")
        gc.collect()
        core = broker._server.core
        assert not [thing for thing in gc.get_objects() if type(thing) is SocketLink and thing._loop.broker is core]


def test_a_client_that_never_hangs_up_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(links, "LINGER_S", 0.05)
    with BrokerThread() as broker, dial(broker.urls[0], "sticky") as sticky:
        sticky.send(Disconnect())
        sticky.expect_end()
        # our side is still open; the broker's descriptor is not
        until(lambda: len(broker._server._loop._watched) == 1, "only the listener is left")  # type: ignore[union-attr]


def test_no_descriptors_left_is_a_pause_not_a_spin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listeners, "PAUSE_S", 0.05)
    with BrokerThread() as broker:
        listening = broker._server._listeners[0]
        real = listening._sock
        exhausted = _Exhausted(real)
        listening._sock = exhausted  # type: ignore[assignment]
        with Dial(broker.urls[0]) as client:
            until(lambda: exhausted.asked, "the broker tried to accept")
            assert broker.ask(lambda core: core.account.closed["no_descriptors"]) == exhausted.asked == 1
            listening._sock = real
            client.connect("patient")


class _Exhausted:
    """A listening socket of a process that has no descriptor left."""

    def __init__(self, real: socket.socket) -> None:
        self.close = real.close
        self.asked = 0

    def _accept(self) -> tuple[int, tuple[str, int]]:
        self.asked += 1
        raise OSError(errno.EMFILE, "Too many open files")
