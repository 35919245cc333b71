"""Streams that are encoded beforehand hold what they claim to hold."""

from __future__ import annotations

import pytest

from tieline.bench.load import packets
from tieline.bench.load.packets import MARK, encode
from tieline.wire.frames import Framer
from tieline.wire.packets import Connect, Packet, Publish, Subscribe


def parsed(data: bytes, version: int) -> list[Packet]:
    return Framer(1 << 20, version).feed(data)


@pytest.mark.parametrize("version", [4, 5])
@pytest.mark.parametrize("qos", [0, 1, 2])
@pytest.mark.parametrize("payload", [16, 64, 16_384])
def test_every_packet_is_a_publish_with_its_mark(version: int, qos: int, payload: int) -> None:
    stream = encode(7, ["a/1", "a/2", "a/3"], payload=payload, qos=qos, version=version, count=10)
    assert stream.count == 12  # every topic comes equally often
    assert len(stream.data) == stream.count * stream.layout.packet
    found = parsed(bytes(stream.data), version)
    assert len(found) == stream.count
    for position, packet in enumerate(found):
        assert isinstance(packet, Publish)
        assert packet.topic == stream.topic(position)
        assert packet.qos == qos
        assert packet.packet_id == (position + 1 if qos else 0)
        assert packet.payload.startswith(MARK % (7, position))
        assert len(packet.payload) == payload


def test_the_layout_points_at_the_parts() -> None:
    stream = encode(0, ["some/topic"], payload=20, qos=1, version=5, count=1)
    packet, layout = bytes(stream.data), stream.layout
    assert packet.startswith(layout.head)
    assert packet[layout.topic] == b"some/topic"
    assert packet[layout.identifier : layout.identifier + 2] == b"\x00\x01"
    assert packet[layout.payload].startswith(MARK % (0, 0))


def test_topics_of_different_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match="one length"):
        encode(0, ["a", "bb"], payload=16, qos=0, version=4, count=1)


def test_a_payload_too_small_for_its_mark_is_refused() -> None:
    with pytest.raises(ValueError, match="mark"):
        encode(0, ["a"], payload=8, qos=0, version=4, count=1)


@pytest.mark.parametrize("version", [4, 5])
def test_connect_and_subscribe_are_well_formed(version: int) -> None:
    (connect,) = parsed(packets.connect("me", version=version), version)
    assert isinstance(connect, Connect)
    assert (connect.client_id, connect.version, connect.clean_start) == ("me", version, True)
    (subscribe,) = parsed(packets.subscribe(3, ["a/#", "+/b"], qos=1, version=version), version)
    assert isinstance(subscribe, Subscribe)
    assert [(one.filter, one.qos) for one in subscribe.subscriptions] == [("a/#", 1), ("+/b", 1)]


@pytest.mark.parametrize("size", [0, 1, 125, 126, 127, 128, 16_383, 16_384, 2_097_152])
def test_the_length_of_a_packet_is_read_back(size: int) -> None:
    packet = packets.framed(0x30, bytes(size))
    assert packets.length_of(packet) == len(packet)
    assert packets.length_of(packet[:1]) == 0
