from __future__ import annotations

import pytest

from tests.kits.world import World
from tieline.core.inbound.first_packet import describe_foreign as describe
from tieline.core.inbound.first_packet import foreign_sentence as sentence

HTTP = b"GET /index.html HTTP/1.1\r\nHost: here\r\n\r\n"
TLS = bytes.fromhex("1603010200010001fc0303")


@pytest.mark.parametrize("data", [HTTP, b"POST / HTTP/1.1\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\n"])
def test_http_is_answered_in_http(data: bytes) -> None:
    answer = sentence(data)
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ")
    assert f"Content-Length: {len(body)}".encode() in head
    assert b"MQTT" in body
    assert "HTTP" in describe(data)


def test_tls_is_answered_with_an_alert_and_a_sentence() -> None:
    answer = sentence(TLS)
    assert answer.startswith(b"\x15\x03")
    assert b"MQTT" in answer
    assert "TLS" in describe(TLS)


@pytest.mark.parametrize("data", [b"\x10\x10", b"\x00", b"SSH-2.0-x", b"", b"\xff" * 20])
def test_other_bytes_are_not_recognised(data: bytes) -> None:
    assert sentence(data) == b""


@pytest.mark.parametrize("data", [HTTP, TLS])
def test_the_connection_ends_with_a_name(data: bytes) -> None:
    world = World()
    client = world.open(0)
    client.send(data)
    assert client.closed
    assert b"MQTT" in client.raw
    assert world.broker.account.closed == {"foreign_protocol": 1}
    assert world.broker.account.events[-1].text == f"foreign_protocol: {describe(data)}"
