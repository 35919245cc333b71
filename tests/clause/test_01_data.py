"""Chapter 1.5: how text and numbers are represented."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.clause import raw
from tests.clause.marker import clause
from tests.kits.world import World
from tieline.wire.packets import Publish, Suback
from tieline.wire.reason import Reason

BOTH = pytest.mark.parametrize("version", [5, 4], ids=["v5", "v311"])

#: Text of every kind that a client can send after CONNECT, as a function of the version and the text's bytes.
FIELDS: dict[str, Callable[[int, bytes], bytes]] = {
    "topic name": raw.publish,
    "filter in SUBSCRIBE": lambda version, data: raw.subscribe(version, raw.text(data), b"\0"),
    "filter in UNSUBSCRIBE": lambda version, data: raw.unsubscribe(version, raw.text(data)),
}
#: Text in MQTT 5 properties of a PUBLISH.
PROPERTIES: dict[str, Callable[[bytes], bytes]] = {
    "content type": lambda data: bytes([raw.CONTENT_TYPE]) + raw.text(data),
    "response topic": lambda data: bytes([raw.RESPONSE_TOPIC]) + raw.text(data),
    "name of a user property": lambda data: bytes([raw.USER_PROPERTY]) + raw.text(data) + raw.text("value"),
    "value of a user property": lambda data: bytes([raw.USER_PROPERTY]) + raw.text("name") + raw.text(data),
}


@clause("MQTT-1.5.4-1", "MQTT311-1.5.3-1")
@BOTH
@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("data", raw.ILL_FORMED, ids=lambda data: data.hex())
def test_1_5_4_1_ill_formed_text_ends_the_connection(world: World, version: int, field: str, data: bytes) -> None:
    client = world.client(version=version)
    client.send(FIELDS[field](version, b"a" + data))
    client.expect_end(Reason.MALFORMED_PACKET)


@clause("MQTT-1.5.4-1", "MQTT-1.5.7-1", "MQTT-3.3.2-13", "MQTT-3.3.2-19")
@pytest.mark.parametrize("field", PROPERTIES)
@pytest.mark.parametrize("data", raw.ILL_FORMED, ids=lambda data: data.hex())
def test_1_5_7_1_ill_formed_text_in_a_property_ends_the_connection(world: World, field: str, data: bytes) -> None:
    client = world.client()
    client.send(raw.publish(5, "a", props=PROPERTIES[field](b"a" + data)))
    client.expect_end(Reason.MALFORMED_PACKET)


@clause("MQTT-1.5.4-2", "MQTT311-1.5.3-2")
@BOTH
@pytest.mark.parametrize("field", FIELDS)
def test_1_5_4_2_text_with_a_null_character_ends_the_connection(world: World, version: int, field: str) -> None:
    client = world.client(version=version)
    client.send(FIELDS[field](version, b"a\0b"))
    client.expect_end(Reason.MALFORMED_PACKET)


@clause("MQTT-1.5.4-2", "MQTT-1.5.7-1")
@pytest.mark.parametrize("field", PROPERTIES)
def test_1_5_4_2_a_property_with_a_null_character_ends_the_connection(world: World, field: str) -> None:
    client = world.client()
    client.send(raw.publish(5, "a", props=PROPERTIES[field](b"a\0b")))
    client.expect_end(Reason.MALFORMED_PACKET)


@clause("MQTT-1.5.4-3", "MQTT311-1.5.3-3")
@BOTH
def test_1_5_4_3_a_byte_order_mark_is_part_of_the_text(world: World, version: int) -> None:
    client = world.client(version=version)
    client.subscribe("#")
    client.send(raw.publish(version, b"\xef\xbb\xbfa"))
    assert client.expect(Publish).topic == "\ufeffa"
    client.subscribe("a")
    client.send(raw.publish(version, b"a\xef\xbb\xbf"))
    assert [message.topic for message in client.messages()] == ["a\ufeff"]


@clause("MQTT-1.5.5-1")
@pytest.mark.parametrize("encoded", [b"\x80\x00", b"\x80\x80\x00", b"\x81\x00"], ids=lambda encoded: encoded.hex())
def test_1_5_5_1_a_longer_encoding_than_needed_is_malformed(world: World, encoded: bytes) -> None:
    client = world.client()
    client.send(raw.packet(raw.PUBLISH, raw.text("a"), encoded, b"\x01\x01"))
    client.expect_end(Reason.MALFORMED_PACKET)


@clause("MQTT-1.5.5-1")
@pytest.mark.parametrize("number", [0, 127, 128, 16_383, 16_384, 100_000])
def test_1_5_5_1_the_broker_writes_the_shortest_encoding(world: World, number: int) -> None:
    client = world.client(version=4)
    client.subscribe("a")
    before = len(client.raw)
    client.put("a", bytes(max(number - 3, 0)))
    sent = client.raw[before:]
    length = len(sent) - 1
    expected = 1 + (length > 128) + (length > 16_385)
    assert next(index for index, byte in enumerate(sent[1:5], start=1) if byte < 0x80) == expected


@clause("MQTT-1.5.5-1")
@pytest.mark.parametrize("identifier", [1, 127, 128, 16_383, 16_384, 2_097_151, 2_097_152, 268_435_455])
def test_1_5_5_1_every_subscription_identifier_survives(world: World, identifier: int) -> None:
    client = world.client()
    client.subscribe("a", subscription_identifier=[identifier])
    client.put("a")
    client.expect(Publish, subscription_identifier=[identifier])


@clause("MQTT-1.5.5-1")
def test_1_5_5_1_a_fifth_length_byte_is_malformed(world: World) -> None:
    client = world.client()
    client.send(bytes([raw.PUBLISH]) + b"\xff\xff\xff\xff\x01")
    client.expect_end(Reason.MALFORMED_PACKET)


@clause("MQTT-1.5.7-1")
def test_1_5_7_1_a_string_pair_reaches_the_subscriber_as_sent(world: World) -> None:
    pairs = [("", ""), ("ключ", "значение"), ("k", "\ufeff"), ("k", "")]
    client = world.client()
    client.subscribe("a")
    client.put("a", user_property=pairs)
    client.expect(Publish, user_property=pairs)
    assert isinstance(client.subscribe("b"), Suback)
