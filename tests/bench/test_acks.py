"""Acknowledgements made by stride are those that packet by packet would give, wherever chunks end."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tieline.bench.load import packets
from tieline.bench.load.job import Garbled
from tieline.bench.load.packets import Stream, encode


def publishes(count: int, qos: int) -> Stream:
    return encode(0, ["topic"], payload=16, qos=qos, version=4, count=count)


def ack(kind: int, identifier: int) -> bytes:
    return bytes([kind, 2]) + identifier.to_bytes(2, "big")


@pytest.mark.parametrize("count", [1, 2, 300])
def test_every_publish_gets_its_answer(count: int) -> None:
    stream = publishes(count, 1)
    layout = stream.layout
    got = packets.answer(bytes(stream.data), packet=layout.packet, identifier=layout.identifier, kind=packets.PUBACK)
    assert got == b"".join(ack(packets.PUBACK, number + 1) for number in range(count))


def test_a_pubrec_becomes_a_pubrel_with_the_same_identifier() -> None:
    assert packets.retyped(ack(packets.PUBREC, 9) + ack(packets.PUBREC, 700), packets.PUBREL) == (
        ack(packets.PUBREL, 9) + ack(packets.PUBREL, 700)
    )


@given(st.lists(st.tuples(st.sampled_from([packets.PUBREC, packets.PUBCOMP]), st.integers(1, 65_535)), max_size=40))
def test_runs_of_acknowledgements_lose_nothing(sent: list[tuple[int, int]]) -> None:
    data = b"".join(ack(kind, identifier) for kind, identifier in sent)
    runs = list(packets.runs_of_acks(data))
    assert b"".join(run for _, run in runs) == data
    assert all(set(run[0::4]) == {kind} for kind, run in runs)
    assert all(one[0] != other[0] for one, other in itertools.pairwise(runs))


@pytest.mark.parametrize("alien", [b"\x40\x03\x00\x01", b"\xd0\x00\xd0\x00"])
def test_anything_but_an_acknowledgement_is_named(alien: bytes) -> None:
    with pytest.raises(Garbled):
        packets.check_acks(ack(packets.PUBACK, 1) + alien, bytes([packets.PUBACK]))


@given(st.lists(st.booleans(), min_size=1, max_size=30), st.lists(st.integers(1, 40), max_size=60))
def test_deliveries_are_cut_alike_wherever_chunks_end(kinds: list[bool], cuts: list[int]) -> None:
    stream = publishes(len(kinds), 2)
    size = stream.layout.packet
    data = b"".join(
        bytes(stream.data[number * size : (number + 1) * size]) if is_publish else ack(packets.PUBREL, number + 1)
        for number, is_publish in enumerate(kinds)
    )
    cutter = packets.Deliveries(size)
    got = bytearray()
    whole = 0
    rest = data
    for cut in [*cuts, len(data)]:
        for first, run in cutter.feed(rest[:cut]):
            assert run[0] == first
            whole += len(run) // (size if first != packets.PUBREL else packets.ACK)
            got += run
        rest = rest[cut:]
    assert bytes(got) == data
    assert whole == len(kinds)


def test_a_foreign_packet_among_deliveries_is_named() -> None:
    with pytest.raises(Garbled, match="PUBLISH or PUBREL"):
        list(packets.Deliveries(40).feed(b"\xd0\x00"))
