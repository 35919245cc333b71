"""Clients that break the rules of the protocol: each violation ends one connection, with its name."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kits.dial import Dial
from tests.kits.patience import until
from tests.robust.arena import Arena
from tests.robust.served import serving
from tieline.wire.encode import encode
from tieline.wire.packets import Connect, Disconnect, Puback, Pubcomp, Publish, Pubrec, Pubrel, Subscribe, Subscription
from tieline.wire.reason import Reason

#: Bytes that are not UTF-8, or not the UTF-8 that MQTT allows: too long, a surrogate, cut short, out of range, null.
_BAD_TEXTS = (b"\xc0\x80", b"\xed\xa0\x80", b"\xe2\x82", b"\xf5\x80\x80\x80", b"a\x00b", b"\xff")


def ended(arena: Arena, client: Dial, name: str, reason: Reason) -> None:
    """The client is told the reason, if its version can be, and the connection ends."""
    if client.version == 5:
        client.expect(Disconnect, reason=reason)
    client.expect_end()
    arena.expect_closed(name)


@pytest.mark.parametrize("version", [4, 5])
def test_text_that_is_not_utf_8_ends_the_connection(version: int) -> None:
    with Arena() as arena:
        for number, text in enumerate(_BAD_TEXTS):
            topic = len(text).to_bytes(2, "big") + text
            properties = b"\x00" if version == 5 else b""
            for packet in (
                bytes((0x30, len(topic + properties))) + topic + properties,
                bytes((0x82, len(properties) + len(topic) + 3)) + b"\x00\x01" + properties + topic + b"\x00",
                bytes((0xA2, len(properties) + len(topic) + 2)) + b"\x00\x01" + properties + topic,
            ):
                client = arena.dial(f"bad {number}", version=version)
                client.send(packet)
                if version == 5:
                    assert client.expect(Disconnect).reason in (Reason.MALFORMED_PACKET, Reason.PROTOCOL_ERROR)
                client.expect_end()
        until(lambda: arena.closed("malformed_packet") + arena.closed("protocol_error") == 18, "each has its name")
        arena.expect_log("malformed_packet", "bad 0")


def test_a_client_id_that_is_not_utf_8_is_refused() -> None:
    with Arena() as arena:
        for text in _BAD_TEXTS:
            sock = arena.open()
            hello = encode(Connect(version=5, client_id="x" * len(text)), 5)
            sock.sendall(hello.replace(b"x" * len(text), text))
            answer = sock.recv(1_000)
            assert not answer or (answer[0] == 0x20 and answer[3] >= 0x80)
        arena.expect_log("refused_malformed_packet")


def test_a_payload_may_be_anything() -> None:
    with Arena() as arena:
        client = arena.dial("c")
        client.subscribe("t")
        for payload in _BAD_TEXTS:
            client.send(Publish(topic="t", payload=payload))
            client.expect(Publish, payload=payload)


@pytest.mark.parametrize("version", [4, 5])
def test_a_packet_id_used_again_before_its_release_is_one_message(version: int) -> None:
    with Arena() as arena:
        subscriber, publisher = arena.dial("s"), arena.dial("p", version=version)
        subscriber.subscribe("t")
        for payload in (b"first", b"second", b"third"):
            publisher.send(Publish(topic="t", payload=payload, qos=2, packet_id=7))
            publisher.expect(Pubrec, packet_id=7)
        publisher.send(Pubrel(packet_id=7))
        publisher.expect(Pubcomp, packet_id=7)
        publisher.send(Publish(topic="t", payload=b"fourth", qos=2, packet_id=7))
        publisher.expect(Pubrec, packet_id=7)
        subscriber.expect(Publish, payload=b"first")
        subscriber.expect(Publish, payload=b"fourth")
        assert arena.refusals("packet_identifier_in_use") == 2


def test_one_packet_id_for_everything_confuses_nobody() -> None:
    with Arena() as arena:
        client = arena.dial("c")
        client.subscribe("t", qos=1)
        for number in range(50):
            client.send(
                Subscribe(packet_id=1, subscriptions=(Subscription(filter=f"u/{number}"),)),
                Publish(topic="t", payload=b"%d" % number, qos=1, packet_id=1),
            )
        heard = [client.receive() for _ in range(150)]
        acks = [packet for packet in heard if isinstance(packet, Puback)]
        assert len(acks) == 50


def test_more_unacknowledged_messages_than_allowed_end_the_connection() -> None:
    with Arena(receive_maximum=10) as arena:
        client = arena.dial("greedy")
        client.send(*(Publish(topic="t", payload=b"x", qos=2, packet_id=number) for number in range(1, 12)))
        for _ in range(10):
            client.expect(Pubrec)
        ended(arena, client, "receive_maximum_exceeded", Reason.RECEIVE_MAXIMUM_EXCEEDED)


@pytest.mark.parametrize(
    ("packets", "name", "reason"),
    [
        ([("t", 0)], "topic_alias_invalid", Reason.TOPIC_ALIAS_INVALID),
        ([("t", 11)], "topic_alias_invalid", Reason.TOPIC_ALIAS_INVALID),
        ([("t", 65_535)], "topic_alias_invalid", Reason.TOPIC_ALIAS_INVALID),
        ([("", 3)], "protocol_error", Reason.PROTOCOL_ERROR),
        ([("t", 3), ("", 4)], "protocol_error", Reason.PROTOCOL_ERROR),
    ],
)
def test_an_alias_that_is_not_one_ends_the_connection(
    packets: list[tuple[str, int]], name: str, reason: Reason
) -> None:
    with Arena(topic_alias_maximum=10) as arena:
        client = arena.dial("aliases")
        client.send(*(Publish(topic=topic, payload=b"", properties={"topic_alias": alias}) for topic, alias in packets))
        ended(arena, client, name, reason)


def test_aliases_for_long_topics_hold_no_more_than_their_number() -> None:
    with Arena(topic_alias_maximum=10) as arena:
        client = arena.dial("aliases")
        for number in range(200):
            topic = f"{number:04d}" + "x" * 60_000
            client.send(
                Publish(topic=topic, payload=b"", qos=1, packet_id=1, properties={"topic_alias": number % 10 + 1})
            )
            client.expect(Puback)

        def held() -> int:
            return arena.ask(lambda core: max(len(conn.alias_in) for conn in core.connections))

        assert held() == 10


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (b"\x00\x00", "malformed_packet"),
        (b"\x10\x0d\x00\x04MQTT\x05\x02\x00\x00\x00\x00\x00", "protocol_error"),
        (b"\x20\x03\x00\x00\x00", "protocol_error"),
        (b"\x36\x04\x00\x01t\x00", "malformed_packet"),
        (b"\x82\x02\x00\x01", "malformed_packet"),
        (b"\xf0\x00", "protocol_error"),
        (b"\x30\x80\x80\x80\x80\x01", "malformed_packet"),
        (b"\x32\x06\x00\x01t\x00\x00\x00", "protocol_error"),
    ],
)
def test_what_no_client_may_send_ends_the_connection(data: bytes, name: str) -> None:
    with Arena() as arena:
        client = arena.dial("wrong")
        client.send(data)
        said = client.expect(Disconnect)
        assert said.reason >= Reason.UNSPECIFIED_ERROR
        client.expect_end()
        arena.expect_log("wrong", "closed")
        assert arena.closed(name) == 1, f"told {said}"


def test_a_client_cannot_write_log_lines_of_its_own(tmp_path: Path) -> None:
    """What a client says of itself is text in a line, not lines, and not commands to a terminal."""
    with serving(tmp_path) as broker:
        names = (
            "a\nclosed admin (10.0.0.1:1): forged",
            "b\rforged",
            "c\x1b[2Jforged",
            "d\x9b2Jforged",
            "e\u2028forged",
        )
        for name in names:
            broker.dial(name).send(b"\x00\x00")
        away = broker.dial("away", properties={"session_expiry_interval": 60})
        away.subscribe("#")
        away.close()
        broker.dial("publisher").send(Publish(topic="t\nforged", payload=b""))
        broker.expect_log("closed", "e")
        broker.expect_log("dropped", "offline")
        for line in broker.raw_log().split(b"\n"):
            assert not line.startswith((b"closed admin", b"forged"))
            assert not any(byte < 32 for byte in line)
            assert b"\xc2\x9b" not in line
            assert b"\xe2\x80\xa8" not in line
