"""What is compressed comes out as it went in, and a few bytes cannot become many."""

from __future__ import annotations

import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.overlay.test_node import Pair
from tieline.overlay.frames.fields import BadFrame
from tieline.overlay.frames.frame import Kind, frame
from tieline.overlay.frames.inbox import Inbox
from tieline.overlay.frames.packing import MOST, Packer, Unpacker
from tieline.overlay.interests.entries import entry_of

TELEMETRY = b'{"voltage": 229.%d, "current": 14.%d, "site": "north", "state": "ok"}'


@given(st.lists(st.binary(max_size=400), max_size=20))
def test_every_write_comes_out_whole(writes: list[bytes]) -> None:
    packer, unpacker = Packer(), Unpacker()
    for data in writes:
        whole = frame(Kind.PING, data)
        packed = packer.pack(whole)
        ((kind, body),) = Inbox().take(packed)
        assert (unpacker.unpack(body) if kind is Kind.PACKED else packed) == whole


def test_messages_that_are_alike_shrink_to_a_fraction() -> None:
    packer = Packer()
    size = sum(len(packer.pack(frame(Kind.PING, TELEMETRY % (number, 99 - number)))) for number in range(100))
    assert size * 3 < packer.bytes_in
    assert packer.bytes_out == size


def test_what_is_very_long_or_short_goes_as_it_is() -> None:
    packer = Packer()
    for data in (b"short", bytes(MOST + 1)):
        assert packer.pack(data) is data


def test_a_few_bytes_that_become_many_are_refused() -> None:
    stream = zlib.compressobj(9, zlib.DEFLATED, -15)
    bomb = stream.compress(bytes(50 << 20)) + stream.flush(zlib.Z_SYNC_FLUSH)
    with pytest.raises(BadFrame, match="more than 65536 bytes"):
        Unpacker().unpack(bomb)


def test_what_nobody_has_packed_is_refused() -> None:
    with pytest.raises(BadFrame, match="cannot be unpacked"):
        Unpacker().unpack(b"\xff" * 40)
    stream = zlib.compressobj(9, zlib.DEFLATED, -15)
    with pytest.raises(BadFrame, match="ends its stream"):
        Unpacker().unpack(stream.compress(b"end") + stream.flush())


def _pair() -> Pair:
    pair = Pair()
    pair.connect()
    pair.run(0.1)
    pair.nodes[2].subscribe(entry_of("a/+"), 1, pair.now)
    pair.run(0.2)
    return pair


def _write(pair: Pair, room: int) -> bytes:
    pair.settle()
    return pair.nodes[1].fill(pair.handle, room, pair.now)


def test_brokers_compress_where_room_is_short_and_change_that_while_they_are_connected() -> None:
    pair = _pair()
    for is_packed, room in ((True, 4_096), (False, 4_096), (True, 1 << 20), (True, 2_000)):
        pair.nodes[1].tune(pair.handle, 1, pair.now, is_packed=is_packed)
        pair.publish(TELEMETRY * 10)
        data = _write(pair, room)
        kinds = {kind for kind, _ in Inbox().take(data)}
        assert (Kind.PACKED in kinds) == (is_packed and room < 65_536)
        pair.nodes[2].receive(pair.handle, data, pair.now)
        pair.run(0.2)
        assert pair.got.pop() == TELEMETRY * 10
    assert pair.nodes[2].packs(pair.handle)
    assert not pair.nodes[1].packs(pair.handle)
    assert not pair.nodes[2].counts.bad_frames


def test_a_packed_frame_in_a_packed_frame_ends_the_connection() -> None:
    pair = _pair()
    packer = Packer()
    pair.nodes[2].receive(pair.handle, packer.pack(frame(Kind.PACKED, bytes(100))), pair.now)
    assert pair.nodes[2].counts.bad_frames == 1
    assert pair.nodes[2].doomed


def test_another_cost_is_told_to_everybody() -> None:
    pair = _pair()
    assert pair.nodes[2].membership.states[pair.nodes[2].number_of("b1")].neighbours.values()
    pair.nodes[1].tune(pair.handle, 7, pair.now, is_packed=False)
    pair.run(0.2)
    state = pair.nodes[2].membership.states[pair.nodes[2].number_of("b1")]
    assert list(state.neighbours.values()) == [7]
