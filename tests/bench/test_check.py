"""The comparison of contents notices what a benchmark must not overlook."""

from __future__ import annotations

import pytest

from tieline.bench.load.job import Garbled
from tieline.bench.load.packets import Stream, check_deliveries, encode


def streams() -> list[Stream]:
    return [encode(number, ["a/x", "a/y"], payload=32, qos=0, version=4, count=6) for number in range(2)]


def packet(stream: Stream, position: int) -> bytes:
    size = stream.layout.packet
    return bytes(stream.data[position * size : (position + 1) * size])


def test_interleaved_publishers_pass() -> None:
    one, two = streams()
    data = b"".join(packet(one, at) + packet(two, at) for at in range(6)) + packet(one, 0)
    assert check_deliveries(data, "a/#", [one, two]) == 13


def test_a_filter_selects_its_topics_only() -> None:
    one, two = streams()
    assert check_deliveries(packet(one, 1) + packet(one, 3), "a/y", [one, two]) == 2
    with pytest.raises(Garbled, match="message 1 was due, message 0 came"):
        check_deliveries(packet(one, 0), "a/y", [one, two])


def test_a_gap_is_noticed() -> None:
    one, two = streams()
    with pytest.raises(Garbled, match="message 1 was due, message 2 came"):
        check_deliveries(packet(one, 0) + packet(one, 2), "a/#", [one, two])


def test_two_messages_in_the_wrong_order_are_noticed() -> None:
    one, two = streams()
    with pytest.raises(Garbled, match="was due"):
        check_deliveries(packet(one, 1) + packet(one, 0), "a/#", [one, two])


def test_a_changed_byte_is_noticed() -> None:
    one, two = streams()
    spoilt = bytearray(packet(one, 0))
    spoilt[-1] ^= 1
    with pytest.raises(Garbled, match="payload differs"):
        check_deliveries(bytes(spoilt), "a/#", [one, two])


def test_a_changed_topic_is_noticed() -> None:
    one, two = streams()
    spoilt = packet(one, 0).replace(b"a/x", b"a/z")
    with pytest.raises(Garbled, match="topic differs"):
        check_deliveries(spoilt, "a/#", [one, two])


def test_a_packet_from_nowhere_is_noticed() -> None:
    one, two = streams()
    with pytest.raises(Garbled, match="none that was sent"):
        check_deliveries(bytes(one.layout.packet), "a/#", [one, two])
    with pytest.raises(Garbled, match="none that was sent"):
        check_deliveries(packet(one, 0), "b/#", [one, two])
