"""The extra byte: after the remaining length, not counted by it, on every packet."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tieline.wire.codec import encode
from tieline.wire.frames import measure
from tieline.wire.header import level_of, stamp
from tieline.wire.packets import Pingreq, Puback, Publish

LEVELS = st.integers(0, 3)


def unstamp(data: bytes) -> tuple[bytes, list[int]]:
    """Packets without their extra byte, and the levels."""
    plain, levels, pos = b"", [], 0
    while pos < len(data):
        found = measure(data, pos, 1 << 30)
        assert found is not None
        body, end = found
        levels.append(level_of(data[body]))
        plain += data[pos:body] + data[body + 1 : end + 1]
        pos = end + 1
    return plain, levels


@pytest.mark.parametrize(("level", "extra"), [(0, 0x00), (1, 0x40), (2, 0x80), (3, 0xC0)])
def test_the_level_is_in_the_two_highest_bits(level: int, extra: int) -> None:
    assert stamp(b"\xc0\x00", level) == bytes((0xC0, 0x00, extra))
    assert level_of(extra) == level
    assert level_of(extra | 0x3F) == level, "the other six are ignored"


def test_nothing_stays_nothing() -> None:
    assert stamp(b"", 3) == b""


@pytest.mark.parametrize("size", [0, 100, 200, 20_000, 3_000_000])
def test_the_byte_follows_a_length_of_any_length(size: int) -> None:
    packet = encode(Publish(topic="t", payload=bytes(size)), 4)
    stamped = stamp(packet, 2)
    assert len(stamped) == len(packet) + 1
    found = measure(packet, 0, 1 << 30)
    assert found is not None
    body, _ = found
    assert stamped[:body] == packet[:body]
    assert stamped[body] == 0x80
    assert stamped[body + 1 :] == packet[body:]


@given(st.lists(st.sampled_from([Pingreq(), Puback(packet_id=7), Publish(topic="a/b", payload=bytes(150))])), LEVELS)
def test_every_packet_of_a_write_is_stamped(packets: list[Pingreq | Puback | Publish], level: int) -> None:
    plain = b"".join(encode(packet, 5) for packet in packets)
    assert unstamp(stamp(plain, level)) == (plain, [level] * len(packets))
