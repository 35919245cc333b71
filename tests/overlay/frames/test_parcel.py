"""What a number of a stream carries comes out as it went in; whatever else comes is refused."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kits.examples import examples
from tieline.core.message import Bundle, Burst, Message, Origin, publish_bytes
from tieline.overlay.frames.fields import BadFrame
from tieline.overlay.frames.parcel import Run, Writing, read_parcel, write_run


def _origin(client: str) -> Origin:
    return Origin(client, broker="far")


def _write(*messages: Message) -> bytes:
    writing = Writing(messages[0])
    for message in messages:
        assert writing.takes(message)
        writing.add(message, 50.0)
    return writing.done()


_MESSAGES = st.lists(
    st.builds(
        Message,
        st.sampled_from([b"a", b"b/c", b"b/d"]),
        st.binary(max_size=200),
        st.integers(0, 2),
        st.booleans(),
        st.one_of(st.just(b""), st.binary(max_size=30)),
        st.one_of(st.none(), st.floats(50, 1e6)),
        taxon=st.integers(0, 3),
    ),
    min_size=1,
    max_size=6,
)


@given(_MESSAGES, st.text(max_size=10), st.integers(0, 3), st.integers(0, 1_000))
@examples(150)
def test_messages_arrive_as_they_were_accepted(sent: list[Message], client: str, level: int, moves: int) -> None:
    origin = Origin(client).moved(moves)
    for message in sent:
        message.origin, message.level = origin, level
    got = read_parcel(_write(*sent), _origin, 1_000.0)
    assert isinstance(got, list)
    assert [(one.topic, one.payload, one.qos, one.retain, one.properties, one.level, one.taxon) for one in got] == [
        (one.topic, one.payload, one.qos, one.retain, one.properties, level, one.taxon) for one in sent
    ]
    for one, before in zip(got, sent, strict=True):
        assert (one.origin.client, one.origin.broker, one.origin.moves) == (client, "far", moves)
        assert (one.expires is None) == (before.expires is None)
        if one.expires is not None and before.expires is not None:
            assert one.expires == pytest.approx(before.expires + 950.0, abs=0.0011)


def test_a_parcel_has_one_publisher_and_an_end() -> None:
    writing = Writing(Message(b"a", b"", origin=Origin("me")))
    assert not writing.takes(Message(b"a", b"", origin=Origin("you")))
    mine = Message(b"a", bytes(5_000), origin=Origin("me"))
    writing = Writing(mine)
    writing.add(mine, 0.0)
    assert not writing.takes(mine)
    assert not writing.takes(Message(b"a", b"", origin=mine.origin, level=3))
    assert writing.takes(Message(b"b", b"", origin=mine.origin))


def test_the_first_message_names_its_topic() -> None:
    parcel = bytearray(_write(Message(b"a", b"payload", origin=Origin("me"))))
    assert parcel[5] == 0
    parcel[5] = 32
    with pytest.raises(BadFrame, match="topic of the one before"):
        read_parcel(bytes(parcel), _origin, 0.0)


@pytest.mark.parametrize("version", [4, 5])
def test_packets_travel_as_they_came(version: int) -> None:
    packet = publish_bytes(0x30, b"a/b", 0, b"" if version == 5 else None, b"hello")
    head = len(packet) - 5
    burst = Burst(packet * 3, 3, head, b"a/b", version, Origin("me"), 1, 0.0, 0, 1)
    bundle = Bundle(packet * 3, 3, len(packet), version, Origin("me"), 1, 0.0, 0)
    for item in (burst, bundle):
        got = read_parcel(write_run(item), _origin, 0.0)
        assert isinstance(got, Run)
        assert (got.packets, got.version, got.origin.client, got.level) == (packet * 3, version, "me", 1)


@given(st.binary(max_size=60))
@examples(300)
def test_other_bytes_are_refused_or_read_but_nothing_else(data: bytes) -> None:
    with suppress(BadFrame):
        read_parcel(data, _origin, 0.0)
