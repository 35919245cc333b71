"""What the priority benchmark sends is MQTT 5, by the decoder of the broker, which shares no code with it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tieline.bench.load import packets as plain
from tieline.bench.timed import packets
from tieline.wire.frames import Framer
from tieline.wire.packets import Connect, Publish, Subscribe

WISHES = {"priority": "3", "period": "500ms"}


def decoded(*raw: bytes) -> list[object]:
    framer = Framer(1 << 20)
    return [packet for data in raw for packet in framer.feed(data)]


def test_connect_subscribe_and_publish_are_what_they_say() -> None:
    connect, subscribe, publish = decoded(
        plain.connect("node", version=5, user=WISHES),
        plain.subscribe(7, ["a/+", "b"], qos=1, version=5, user=WISHES),
        plain.publish("a/b", b"payload", qos=2, packet_id=9, version=5, user=WISHES),
    )
    assert isinstance(connect, Connect) and isinstance(subscribe, Subscribe) and isinstance(publish, Publish)
    assert (connect.version, connect.client_id, connect.clean_start) == (5, "node", True)
    assert [(one.filter, one.qos) for one in subscribe.subscriptions] == [("a/+", 1), ("b", 1)]
    assert (publish.topic, publish.payload, publish.qos, publish.packet_id) == ("a/b", b"payload", 2, 9)
    for packet in (connect, subscribe, publish):
        assert packet.properties["user_property"] == list(WISHES.items())


@given(st.integers(100, 10_000), st.dictionaries(st.text("abc", max_size=5), st.text("abc", max_size=5), max_size=3))
def test_a_message_has_the_size_that_was_asked_for(size: int, user: dict[str, str]) -> None:
    if not 128 <= size - 3 < 16_384:
        return
    assert len(packets.Tally().message("some/topic", size, user)) == size


@given(
    st.lists(st.tuples(st.sampled_from([0, 1, 2]), st.binary(max_size=300)), min_size=1, max_size=8),
    st.integers(1, 50),
    st.one_of(st.none(), st.integers(0, 3)),
)
def test_the_inbox_finds_every_packet_wherever_the_chunks_end(
    messages: list[tuple[int, bytes]], step: int, level: int | None
) -> None:
    sent = [
        plain.publish("t/x", payload, qos=qos, packet_id=number + 1, version=5, user=WISHES)
        for number, (qos, payload) in enumerate(messages)
    ]
    data = b"".join(one if level is None else packets.with_header_byte(one, level) for one in sent)
    inbox = packets.Inbox(has_header_byte=level is not None)
    found = [
        packets.arrival(first, body)
        for start in range(0, len(data), step)
        for first, body in inbox.feed(data[start : start + step])
    ]
    assert [(one.topic, one.qos, one.payload) for one in found] == [("t/x", qos, payload) for qos, payload in messages]
    assert [one.packet_id for one in found if one.qos] == [
        number + 1 for number, (qos, _) in enumerate(messages) if qos
    ]


def test_the_header_byte_follows_the_remaining_length_and_is_not_counted() -> None:
    packet = plain.publish("t", bytes(300), version=5)
    worded = packets.with_header_byte(packet, 3)
    assert worded == packet[:3] + b"\xc0" + packet[3:]
    assert plain.length_of(worded) == len(packet)
