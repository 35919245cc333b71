"""What a number of a stream carries comes out as it went in; whatever else comes is refused."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kits.examples import examples
from tieline.core.message import Bundle, Burst, Message, Origin, publish_bytes
from tieline.overlay.frame import BadFrame
from tieline.overlay.parcel import Run, read_parcel, write_parcel


def _origin(client: str) -> Origin:
    return Origin(client, broker="far")


@given(
    st.binary(min_size=1, max_size=20),
    st.binary(max_size=200),
    st.integers(0, 2),
    st.booleans(),
    st.binary(max_size=30),
    st.one_of(st.none(), st.floats(0, 1e6)),
    st.text(max_size=10),
    st.integers(0, 3),
)
@examples(100)
def test_a_message_arrives_as_it_was_accepted(
    topic: bytes, payload: bytes, qos: int, retain: bool, properties: bytes, left: float | None, client: str, level: int
) -> None:
    expires = None if left is None else 50.0 + left
    sent = Message(topic, payload, qos, retain, properties, expires, Origin(client), level, 40.0, 3, 2)
    got = read_parcel(write_parcel(sent, 50.0), _origin, 1_000.0)
    assert isinstance(got, Message)
    assert (got.topic, got.payload, got.qos, got.retain, got.properties, got.level, got.taxon) == (
        *(topic, payload, qos, retain, properties, level, 2),
    )
    assert (got.origin.client, got.origin.broker) == (client, "far")
    assert (got.expires is None) == (left is None)
    if left is not None and got.expires is not None:
        assert got.expires == pytest.approx(1_000.0 + left, abs=0.0011)


@pytest.mark.parametrize("version", [4, 5])
def test_packets_travel_as_they_came(version: int) -> None:
    packet = publish_bytes(0x30, b"a/b", 0, b"" if version == 5 else None, b"hello")
    head = len(packet) - 5
    burst = Burst(packet * 3, 3, head, b"a/b", version, Origin("me"), 1, 0.0, 0, 1)
    bundle = Bundle(packet * 3, 3, len(packet), version, Origin("me"), 1, 0.0, 0)
    for item in (burst, bundle):
        got = read_parcel(write_parcel(item, 0.0), _origin, 0.0)
        assert isinstance(got, Run)
        assert (got.packets, got.version, got.origin.client, got.level) == (packet * 3, version, "me", 1)


@given(st.binary(max_size=60))
@examples(300)
def test_other_bytes_are_refused_or_read_but_nothing_else(data: bytes) -> None:
    with suppress(BadFrame):
        read_parcel(data, _origin, 0.0)
