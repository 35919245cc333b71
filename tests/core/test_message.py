from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.match.topics import names
from tieline.core.message import OVERHEAD, THE_BROKER, Burst, Message, Origin, publish_bytes
from tieline.wire.decode import decode
from tieline.wire.encode import encode
from tieline.wire.fields import decode_varint
from tieline.wire.frames import find_frame
from tieline.wire.packets import Packet, Publish
from tieline.wire.properties import Properties, encode_properties


def parse(data: bytes, version: int) -> Packet:
    frame = find_frame(data, 0, 1 << 28)
    assert frame is not None
    start, end = frame
    assert end == len(data)
    return decode(data[0], data[start:end], version)


def bare(properties: Properties) -> bytes:
    """Encoded properties without their length."""
    encoded = encode_properties(properties)
    return encoded[decode_varint(encoded, 0, len(encoded))[1] :]


@given(names, st.binary(max_size=300), st.integers(0, 2), st.booleans(), st.integers(1, 65_535))
def test_a_packet_made_by_hand_is_the_codec_s(
    topic: str, payload: bytes, qos: int, retain: bool, packet_id: int
) -> None:
    packet_id = packet_id if qos else 0
    first = 0x30 | qos << 1 | retain
    packet = Publish(topic=topic, payload=payload, qos=qos, retain=retain, packet_id=packet_id)
    assert publish_bytes(first, topic.encode(), packet_id, None, payload) == encode(packet, 4)
    assert publish_bytes(first, topic.encode(), packet_id, b"", payload) == encode(packet, 5)


@given(names, st.binary(max_size=200), st.text("abc", max_size=50), st.integers(1, 65_535))
def test_parts_surround_the_packet_id(topic: str, payload: bytes, value: str, packet_id: int) -> None:
    properties: Properties = {"user_property": [("name", value)], "content_type": "text"}
    message = Message(topic.encode(), payload, 1, properties=bare(properties))
    for version in (4, 5):
        for _ in range(2):
            head, tail = message.parts(version)
            packet = parse(b"\x32" + head + packet_id.to_bytes(2, "big") + tail, version)
            assert isinstance(packet, Publish)
            assert (packet.topic, packet.payload, packet.packet_id) == (topic, payload, packet_id)
            assert packet.properties == (properties if version == 5 else {})


def test_a_message_knows_about_what_it_costs() -> None:
    message = Message(b"topic", b"payload", properties=b"1234")
    assert message.size == 5 + 7 + 4 + OVERHEAD
    assert message.messages == 1


@given(names, st.lists(st.binary(min_size=4, max_size=4), min_size=1, max_size=10), st.sampled_from((4, 5)), st.data())
def test_a_burst_is_its_packets(topic: str, contents: list[bytes], version: int, data: st.DataObject) -> None:
    packets = b"".join(encode(Publish(topic=topic, payload=payload), version) for payload in contents)
    head = 4 + len(topic.encode()) + (version == 5)
    burst = Burst(packets, len(contents), head, topic.encode(), version, THE_BROKER, 1, 0.0, 0, 1)
    assert list(burst.payloads()) == contents
    assert burst.stride * burst.messages == burst.size == len(packets)
    if len(contents) > 1:
        at = data.draw(st.integers(1, len(contents) - 1))
        older, newer = burst.cut(at)
        assert (list(older.payloads()), list(newer.payloads())) == (contents[:at], contents[at:])
        assert older.packets + newer.packets == packets


def test_the_same_afresh_is_unknown_to_the_store() -> None:
    message = Message(b"a", b"x", 2, True, b"\x26\x00\x01k\x00\x01v", 9.0, Origin("p"), 3, 5.0, 7.0, 2)
    message.number = 4
    message.parts(5)
    same = message.afresh()
    assert same.number == 0
    fields = {name for name in dir(message) if not name.startswith("__") and not callable(getattr(message, name))}
    for name in fields - {"number"}:
        assert getattr(same, name) == getattr(message, name)


def test_messages_say_what_they_are() -> None:
    assert repr(Message(b"a/b", b"xyz", 1, retain=True)) == "<Message a/b 3 B QoS 1 retain>"
    burst = Burst(encode(Publish(topic="a", payload=b"x"), 4) * 3, 3, 5, b"a", 4, THE_BROKER, 1, 0.0, 0, 1)
    assert repr(burst) == "<Burst a 3 x 6 B>"
