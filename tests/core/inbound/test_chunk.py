"""However the bytes arrive, and whichever path a packet takes, everybody is sent the same."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.core.conversation import Step, conversations, serve, sort_out, write_out
from tests.core.story import impatience
from tests.kits.examples import examples
from tests.kits.world import GENESIS, configured
from tieline.core.broker import Broker
from tieline.wire.encode import encode
from tieline.wire.packets import Connect, Publish, Subscribe, Subscription


@examples(150)
@given(conversations(), st.booleans())
def test_the_outcome_does_not_depend_on_how_the_bytes_arrive(steps: list[Step], guarded: bool) -> None:
    whole = serve(steps, "whole", guarded=guarded)
    assert serve(steps, "anywhere", guarded=guarded) == whole
    assert serve(steps, "bytes", guarded=guarded) == whole


@examples(150)
@given(conversations(), st.booleans())
def test_the_outcome_does_not_depend_on_the_path_a_packet_takes(steps: list[Step], guarded: bool) -> None:
    """Without remembered routes every PUBLISH takes the general path."""
    fast = serve(steps, "whole", guarded=guarded)
    assert serve(steps, "whole", cache=0, guarded=guarded) == fast
    assert serve(steps, "bytes", cache=0, guarded=guarded) == fast
    assert serve(steps, "whole", cache=1, guarded=guarded) == fast


@examples(100)
@given(conversations(publishes_only=True), st.booleans())
def test_the_outcome_does_not_depend_on_how_much_is_done_in_one_turn(steps: list[Step], guarded: bool) -> None:
    whole = sort_out(serve(steps, "whole", guarded=guarded))
    # whether the last messages are still written before somebody leaves depends on when that is
    assume(whole.closed.keys() == {"connection_lost"})
    with impatience():
        assert sort_out(serve(steps, "whole", guarded=guarded)) == whole
        assert sort_out(serve(steps, "anywhere", cache=0, guarded=guarded)) == whole


@pytest.mark.slow
@examples(10_000)
@given(conversations(), st.booleans())
def test_neither_cut_nor_path_matters_in_many_conversations(steps: list[Step], guarded: bool) -> None:
    whole = serve(steps, "whole", guarded=guarded)
    assert serve(steps, "anywhere", guarded=guarded) == whole
    assert serve(steps, "anywhere", cache=0, guarded=guarded) == whole


@pytest.mark.parametrize("version", [4, 5])
@pytest.mark.parametrize("qos", [0, 1])
@pytest.mark.parametrize("size", [0, 1, 100, 118, 119, 120, 127, 128, 16_370, 16_376, 16_384, 70_000])
def test_the_fast_path_agrees_at_every_length_of_the_length(version: int, qos: int, size: int) -> None:
    hello = encode(Connect(version=version, client_id="c"), version)
    subscribe = encode(Subscribe(packet_id=9, subscriptions=(Subscription(filter="#", qos=1),)), version)
    message = encode(Publish(topic="a", payload=bytes(size), qos=qos, packet_id=3 if qos else 0), version)
    steps = [
        Step(0, hello + subscribe),
        Step(0, message),
        Step(0, message * 3),
        Step(0, message[:-1]),
        Step(0, message[-1:]),
    ]
    fast = serve(steps, "whole")
    assert fast == serve(steps, "whole", cache=0)
    assert fast == serve(steps, "anywhere")
    assert fast.publishes_out == 5


@examples(100)
@given(
    st.sampled_from([4, 5]),
    st.lists(st.tuples(st.sampled_from([3, 8_180, 8_190, 8_200, 30_000]), st.sampled_from([0, 1])), max_size=6),
    st.lists(st.floats(0, 1), max_size=6),
)
def test_long_packets_may_be_cut_anywhere(version: int, sizes: list[tuple[int, int]], cuts: list[float]) -> None:
    """A long packet is completed alone, and what came behind it is not forgotten."""
    hello = encode(Connect(version=version, client_id="c"), version)
    subscribe = encode(Subscribe(packet_id=9, subscriptions=(Subscription(filter="#", qos=1),)), version)
    stream = b"".join(
        encode(Publish(topic="a", payload=bytes([number]) * size, qos=qos, packet_id=qos and number), version)
        for number, (size, qos) in enumerate(sizes, 1)
    )
    ends = sorted(int(cut * len(stream)) for cut in cuts)
    pieces = [stream[begin:end] for begin, end in pairwise([0, *ends, len(stream)])]
    first = Step(0, hello + subscribe + encode(Publish(topic="a"), version))
    whole = serve([first, Step(0, stream)], "whole")
    assert whole.publishes_out == len(sizes) + 1
    # an answer and a message may change places: they are two conversations
    assert sort_out(serve([first, *(Step(0, piece) for piece in pieces if piece)], "whole")) == sort_out(whole)


@pytest.mark.parametrize("version", [4, 5])
def test_a_topic_that_runs_past_its_packet_is_refused_on_both_paths(version: int) -> None:
    """The bytes behind such a packet complete the name of a topic whose route is remembered."""
    hello = encode(Connect(version=version, client_id="c"), version)
    steps = [
        Step(0, hello + encode(Publish(topic="abcdef", payload=b"xyz"), version)),
        Step(0, b"\x30\x05\x00\x06abcdefgh"),
    ]
    fast = serve(steps, "whole")
    assert fast == serve(steps, "whole", cache=0)
    assert fast.closed == {"malformed_packet": 1, "connection_lost": 2}


def test_single_bytes_cost_no_more_than_bytes() -> None:
    """The beginning of a packet is kept, not parsed again: its work grows with its size, not with its square."""
    broker = Broker(configured())
    conn = broker.open(GENESIS)
    broker.receive(conn, encode(Connect(version=5, client_id="c"), 5), GENESIS)
    data = encode(Publish(topic="t", payload=bytes(200_000)), 5)
    for at in range(len(data) - 1):
        broker.receive(conn, data[at : at + 1], GENESIS)
        if at == 10:
            assert conn.need == len(data)
    assert broker.account.publishes_in == 0
    broker.receive(conn, data[-1:], GENESIS)
    assert broker.account.publishes_in == 1


def test_what_is_too_large_is_refused_before_it_is_kept() -> None:
    broker = Broker(configured(packet_bytes=1_000))
    conn = broker.open(GENESIS)
    broker.receive(conn, encode(Connect(version=5, client_id="c"), 5), GENESIS)
    broker.receive(conn, b"\x30\xff\x7f" + bytes(100), GENESIS)
    assert conn.closing
    assert broker.account.closed == {"packet_too_large": 1}
    assert len(conn.partial) == 0


def test_the_work_of_one_chunk_is_bounded() -> None:
    """A chunk that concerns many receivers is handled in parts, and others have their turn in between.

    Every other topic has one more receiver, so that no two messages in a row travel together.
    """
    broker = Broker(configured())
    crowd = [broker.open(GENESIS) for _ in range(200)]
    for number, conn in enumerate(crowd):
        hello = (
            Connect(version=4, client_id=f"c{number}"),
            Subscribe(packet_id=1, subscriptions=(Subscription(filter="#" if number else "t/1/#"),)),
        )
        broker.receive(conn, b"".join(encode(packet, 4) for packet in hello), GENESIS)
        broker.fill(conn, 1_000, GENESIS)
    publisher = broker.open(GENESIS)
    broker.receive(publisher, encode(Connect(version=4, client_id="p"), 4), GENESIS)
    packets = [encode(Publish(topic=f"t/{number % 2}/{number}", payload=b"x"), 4) for number in range(2_000)]
    broker.receive(publisher, b"".join(packets), GENESIS)
    assert broker.account.publishes_in < 1_000
    received = [b""] * len(crowd)
    turns = 0
    while broker.account.publishes_in < len(packets):
        broker.tick(GENESIS)
        write_out(broker, crowd, received, GENESIS)
        turns += 1
        assert turns < 1_000
    write_out(broker, crowd, received, GENESIS)
    assert set(received[1:]) == {b"".join(packets)}
    assert received[0] == b"".join(packets[1::2])
    assert publisher.hold is None
