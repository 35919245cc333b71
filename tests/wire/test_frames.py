from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.clause.marker import clause
from tests.wire.examples import EXAMPLES, Example
from tests.wire.strategies import packets
from tieline.wire.encode import encode
from tieline.wire.errors import Malformed, ProtocolError, TooLarge, Violation
from tieline.wire.frames import WHOLE_PIECE, Framer, Unparsed, find_frame, level_of, measure, stamp
from tieline.wire.packets import Connect, Packet, Pingreq, Puback, Publish
from tieline.wire.reason import Reason

LIMIT = 1_000
PING = bytes.fromhex("c000")


def events(chunks: list[bytes], version: int, limit: int = LIMIT) -> list[Packet | tuple[type, str, str]]:
    """What a stream means: its packets and, if it was refused, the refusal."""
    framer = Framer(limit, version)
    found: list[Packet | tuple[type, str, str]] = []
    for chunk in chunks:
        try:
            found += framer.feed(chunk)
        except ProtocolError:
            break
    if framer.error is not None:
        found.append((type(framer.error), framer.error.clause, framer.error.text))
    return found


def bytewise(data: bytes) -> list[bytes]:
    return [bytes((byte,)) for byte in data]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.label)
def test_every_truncation_asks_for_more(example: Example) -> None:
    for length in range(len(example.wire)):
        assert find_frame(example.wire[:length], 0, LIMIT) is None
        assert Framer(LIMIT, example.version).feed(example.wire[:length]) == []


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.label)
def test_a_length_that_lies_is_refused_or_asks_for_more(example: Example) -> None:
    for length in range(128):
        lie = example.wire[:1] + bytes((length,)) + example.wire[2:]
        found = events([lie], example.version)
        assert found == events(bytewise(lie), example.version)
        if length > len(example.wire) - 2:
            assert found == []


@pytest.mark.parametrize(
    ("data", "frame"),
    [
        ("c000", (2, 2)),
        ("3003000161", (2, 5)),
        ("30ff01" + "00" * 255, (3, 258)),
        ("30", None),
        ("30ff", None),
        ("30ffff", None),
        ("30ffff7f", None),
        ("", None),
    ],
)
def test_a_frame_is_found(data: str, frame: tuple[int, int] | None) -> None:
    assert find_frame(bytes.fromhex(data), 0, 300_000_000) == frame


def test_a_frame_is_found_in_the_middle() -> None:
    assert find_frame(PING + PING + PING, 2, LIMIT) == (4, 4)
    assert find_frame(PING, 2, LIMIT) is None


@pytest.mark.parametrize("version", [0, 4, 5])
@pytest.mark.parametrize("data", ["3080808080", "30ffffffff", "30ffffffff7f", "3080808080 00"])
def test_a_length_of_five_bytes_is_malformed(data: str, version: int) -> None:
    with pytest.raises(Malformed) as refused:
        find_frame(bytes.fromhex(data), 0, 300_000_000, version)
    assert refused.value.clause == "2.1.4"


@clause("MQTT-1.5.5-1")
def test_a_padded_length_is_malformed_in_mqtt_5() -> None:
    with pytest.raises(Malformed) as refused:
        find_frame(bytes.fromhex("c08000"), 0, LIMIT)
    assert refused.value.clause == "MQTT-1.5.5-1"


def test_a_padded_length_is_accepted_in_311() -> None:
    assert find_frame(bytes.fromhex("c080808000"), 0, LIMIT, version=4) == (5, 5)
    assert Framer(LIMIT, 4).feed(bytes.fromhex("c08000")) == [Pingreq()]


@clause("MQTT-3.2.2-15")
def test_a_packet_above_the_limit_is_refused_as_soon_as_its_length_is_read() -> None:
    assert find_frame(bytes.fromhex("3062") + bytes(98), 0, 100) == (2, 100)
    with pytest.raises(TooLarge) as refused:
        find_frame(bytes.fromhex("3063"), 0, 100)
    assert refused.value.reason is Reason.PACKET_TOO_LARGE


def test_good_packets_before_a_bad_one_are_not_lost() -> None:
    framer = Framer(LIMIT, 5)
    assert framer.feed(PING + PING + b"\xc1\0" + PING) == [Pingreq(), Pingreq()]
    assert framer.error is not None
    for data in (b"", PING):
        with pytest.raises(Malformed):
            framer.feed(data)


def test_the_first_packet_is_a_connect() -> None:
    with pytest.raises(Violation) as refused:
        Framer(LIMIT).feed(PING)
    assert refused.value.clause == "MQTT-3.1.0-1"


@pytest.mark.parametrize("version", [4, 5])
def test_the_version_is_learnt_from_the_connect(version: int) -> None:
    framer = Framer(LIMIT)
    connect = Connect(version=version, client_id="c")
    stream = encode(connect, version)
    later = next(example for example in EXAMPLES if example.name == "subscribe" and example.version == version)
    assert framer.feed(stream + later.wire) == [connect, later.packet]
    assert framer.version == version


@given(
    st.sampled_from((4, 5)).flatmap(
        lambda version: st.tuples(st.just(version), st.lists(packets(version), max_size=4), st.binary(max_size=12))
    )
)
def test_whole_and_byte_by_byte_give_the_same_events(case: tuple[int, list[Packet], bytes]) -> None:
    version, wanted, tail = case
    stream = b"".join(encode(packet, version) for packet in wanted) + tail
    whole = events([stream], version, 5_000)
    assert whole == events(bytewise(stream), version, 5_000)
    assert len(whole) >= len(wanted)


@given(st.binary(max_size=80), st.sampled_from((0, 4, 5)))
def test_any_bytes_give_the_same_events_however_they_come(stream: bytes, version: int) -> None:
    assert events([stream], version) == events(bytewise(stream), version)


@given(pieces=st.lists(st.binary(max_size=3 * WHOLE_PIECE // 2), max_size=12), last=st.binary(max_size=50))
def test_what_waits_comes_out_as_it_went_in(pieces: list[bytes], last: bytes) -> None:
    waiting = Unparsed()
    for number, piece in enumerate(pieces, 1):
        waiting.add(piece)
        assert len(waiting) == sum(map(len, pieces[:number]))
    assert waiting.take(last) == b"".join([*pieces, last])
    assert not waiting and waiting.take() == b""


def test_single_bytes_are_gathered() -> None:
    waiting = Unparsed()
    for _ in range(10_000):
        waiting.add(b"x")
    assert len(waiting._pieces) == 1
    waiting.add(bytes(WHOLE_PIECE))
    waiting.add(b"y")
    assert len(waiting._pieces) == 3


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
