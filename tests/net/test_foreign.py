"""Other protocols spoken to the plain MQTT port: a sentence and an orderly end, never a reset."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator

import pytest

from tests.kits.dial import Dial, dial, open_socket, read_to_end
from tests.kits.patience import until
from tieline import Limits, Listener, Settings
from tieline.pytest_plugin import BrokerThread
from tieline.wire.packets import Pingreq, Pingresp

#: More than the broker reads in one turn, so part of it is unread when the answer is already on its way.
_MUCH = 300_000


@pytest.fixture
def broker() -> Iterator[BrokerThread]:
    with BrokerThread() as running:
        yield running


def _say(broker: BrokerThread, data: bytes) -> bytes:
    """Say something, hear the answer to its end."""
    with open_socket(broker.urls[0]) as sock:
        sock.sendall(data)
        return read_to_end(sock)


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "CONNECT", "TRACE"])
def test_http_gets_an_http_answer(broker: BrokerThread, method: str) -> None:
    answer = _say(broker, f"{method} / HTTP/1.1\r\nHost: broker\r\n\r\n".encode())
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ")
    assert f"Content-Length: {len(body)}".encode() in head.split(b"\r\n")
    assert b"Connection: close" in head.split(b"\r\n")
    assert b"speaks MQTT" in body and b"ws://" in body


def test_http_2_without_tls_gets_an_http_answer(broker: BrokerThread) -> None:
    assert b"speaks MQTT" in _say(broker, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")


def test_a_websocket_handshake_is_told_about_ws_listeners(broker: BrokerThread) -> None:
    answer = _say(broker, b"GET /mqtt HTTP/1.1\r\nUpgrade: websocket\r\nSec-WebSocket-Protocol: mqtt\r\n\r\n")
    assert b"ws:// listener" in answer


def test_an_upload_is_not_reset_while_the_answer_is_under_way(broker: BrokerThread) -> None:
    answer = _say(broker, b"POST / HTTP/1.1\r\nContent-Length: 300000\r\n\r\n" + bytes(_MUCH))
    assert answer.endswith(b"MQTT over WebSocket.\n")


def test_http_in_single_bytes_is_recognised_all_the_same(broker: BrokerThread) -> None:
    with open_socket(broker.urls[0]) as sock:
        for read, letter in enumerate(b"GET "):
            until(lambda read=read: broker.ask(lambda core: core.account.bytes_in) == read, "each is read alone")  # type: ignore[misc]
            sock.sendall(bytes([letter]))
        assert b"speaks MQTT" in read_to_end(sock)


def test_a_tls_client_fails_with_a_reason_of_its_own(broker: BrokerThread) -> None:
    with pytest.raises(ssl.SSLError, match=r"(?i)alert protocol version"):
        open_socket(broker.urls[0], context=ssl.create_default_context())


def test_tls_gets_an_alert_and_a_sentence(broker: BrokerThread) -> None:
    answer = _say(broker, _client_hello())
    assert answer.startswith(b"\x15\x03\x01\x00\x02\x02\x46")
    assert b"not TLS" in answer and b"tls://" in answer


def test_each_is_counted_and_told(broker: BrokerThread) -> None:
    _say(broker, b"GET / HTTP/1.1\r\n\r\n")
    _say(broker, _client_hello())
    until(lambda: broker.ask(lambda core: core.account.closed["foreign_protocol"] == 2), "both are counted")
    assert broker.ask(lambda core: not core.connections)


@pytest.mark.parametrize(
    "noise",
    [b"\x00", b"\xff" * 64, b"SSH-2.0-OpenSSH_9.2\r\n", b"\xc0\x00", b"EHLO example.org\r\n", b"\x16\x00\x00\x00"],
    ids=["zero", "ones", "ssh", "pingreq", "smtp", "almost-tls"],
)
def test_other_noise_ends_without_a_reset(broker: BrokerThread, noise: bytes) -> None:
    assert _say(broker, noise + bytes(_MUCH)) == b""


def test_a_protocol_error_after_connect_is_not_drowned_by_what_follows_it(broker: BrokerThread) -> None:
    # the client goes on sending for a while: DISCONNECT must still reach it
    with dial(broker.urls[0], "wrong") as client:
        client.send(b"\xf7\xff\xff\xff\xff", bytes(_MUCH))
        data = read_to_end(client.sock)
    assert data.startswith(b"\xe0") and data[2] == 0x81


def test_nobody_else_notices(broker: BrokerThread) -> None:
    with dial(broker.urls[0], "good") as good:
        for _ in range(20):
            _say(broker, b"GET / HTTP/1.1\r\n\r\n")
        good.send(Pingreq())
        good.expect(Pingresp)


def test_a_connection_without_a_word_is_ended_after_the_connect_timeout() -> None:
    settings = Settings(listener=(Listener(url="tcp://127.0.0.1:0"),), limits=Limits(connect_timeout_s=0.05))
    with BrokerThread(settings) as broker, Dial(broker.urls[0]) as silent:
        silent.expect_end()
        assert broker.ask(lambda core: core.account.closed["connect_timeout"]) == 1


def test_half_closed_after_the_question_still_gets_the_answer(broker: BrokerThread) -> None:
    with open_socket(broker.urls[0]) as sock:
        sock.sendall(b"GET / HTTP/1.1\r\n\r\n")
        sock.shutdown(socket.SHUT_WR)
        assert b"speaks MQTT" in read_to_end(sock)


def _client_hello() -> bytes:
    """The first bytes of a real TLS client."""
    outgoing = ssl.MemoryBIO()
    tls = ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="localhost")
    with pytest.raises(ssl.SSLWantReadError):
        tls.do_handshake()
    return outgoing.read()
