"""However the bytes arrive, and whichever path a packet takes, everybody is sent the same."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from random import Random
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kits.world import GENESIS, configured
from tieline.core.broker import Broker
from tieline.core.connection import Connection
from tieline.core.ports import Allowed, Login, Refused, Verdict
from tieline.wire.codec import encode
from tieline.wire.packets import (
    Connect,
    Disconnect,
    Packet,
    Pingreq,
    Puback,
    Pubcomp,
    Publish,
    Pubrec,
    Pubrel,
    Subscribe,
    Subscription,
    Unsubscribe,
    Will,
)

_TOPICS = ("a", "a/b", "a/b/c", "$d", "/", "é/ü")
_FILTERS = ("a", "a/#", "+/b", "#", "$d", "é/+")
_CLIENTS = 3


class Rules:
    """Some topics are nobody's business: the fast path has to know."""

    is_open = False

    def connect(self, login: Login) -> Verdict:
        return Allowed()

    def publish(self, login: Login, topic: str) -> Verdict:
        return Refused("no slashes") if topic == "/" else Allowed()

    def subscribe(self, login: Login, filter_: str) -> Verdict:
        return Refused("not everything") if filter_ == "#" else Allowed()


class Step(NamedTuple):
    """Bytes from one client."""

    client: int
    data: bytes


class Outcome(NamedTuple):
    """What everybody was sent, and what the broker thinks of it."""

    sent: tuple[bytes, ...]
    closed: dict[str, int]
    drops: dict[str, int]
    packets_in: int
    publishes_in: int
    publishes_out: int
    bytes_out: int
    retained: int


_qos = st.sampled_from((0, 0, 0, 1, 1, 2))
_ids = st.integers(1, 4)
_contents = st.sampled_from((b"", b"x", b"same size", b"as before", b"long" * 40))

_publishes = st.builds(
    lambda topic, payload, qos, packet_id, retain, dup: Publish(
        topic=topic, payload=payload, qos=qos, packet_id=packet_id if qos else 0, retain=retain, dup=dup and qos > 0
    ),
    st.sampled_from(_TOPICS),
    _contents,
    _qos,
    _ids,
    st.sampled_from((False, False, False, True)),
    st.sampled_from((False, False, True)),
)
#: What only MQTT 5 has: aliases, expiry, user properties.
_rich_publishes = st.builds(
    lambda topic, payload, qos, packet_id, properties: Publish(
        topic=topic, payload=payload, qos=qos, packet_id=packet_id if qos else 0, properties=properties
    ),
    st.sampled_from((*_TOPICS, "")),
    _contents,
    _qos,
    _ids,
    st.sampled_from(
        (
            {"topic_alias": 1},
            {"topic_alias": 2, "user_property": [("k", "v")]},
            {"message_expiry_interval": 0},
            {"message_expiry_interval": 5},
            {"payload_format_indicator": 1, "content_type": "text/plain"},
            {"subscription_identifier": [1]},
        )
    ),
)
_others = st.one_of(
    st.builds(Puback, packet_id=_ids),
    st.builds(Pubrec, packet_id=_ids),
    st.builds(Pubrel, packet_id=_ids),
    st.builds(Pubcomp, packet_id=_ids),
    st.just(Pingreq()),
    st.builds(
        lambda filter_, qos: Subscribe(packet_id=9, subscriptions=(Subscription(filter=filter_, qos=qos),)),
        st.sampled_from(_FILTERS),
        st.integers(0, 2),
    ),
    st.builds(lambda filter_: Unsubscribe(packet_id=9, filters=(filter_,)), st.sampled_from(_FILTERS)),
)
_rare = st.one_of(st.just(Disconnect()), st.binary(min_size=1, max_size=6), st.just(b"\x3c\x05\x00\x01a\x00\x00"))


def _encoded(one: Packet | bytes, version: int) -> bytes:
    return one if isinstance(one, bytes) else encode(one, version)


@st.composite
def conversations(draw: st.DrawFn) -> list[Step]:
    """Several clients of both versions, mostly publishing, each chunk with one or more packets."""
    versions = [draw(st.sampled_from((4, 5))) for _ in range(_CLIENTS)]
    steps = []
    for number, version in enumerate(versions):
        hello: list[Packet] = [
            Connect(
                version=version,
                client_id=f"c{number}",
                clean_start=True,
                will=Will(topic="a/b", payload=b"will") if draw(st.booleans()) else None,
                properties={"topic_alias_maximum": 2} if version == 5 and draw(st.booleans()) else {},
            )
        ]
        wishes = tuple(
            Subscription(filter=filter_, qos=draw(st.integers(0, 2)))
            for filter_ in draw(st.lists(st.sampled_from(_FILTERS), min_size=1, max_size=3, unique=True))
        )
        hello.append(Subscribe(packet_id=9, subscriptions=wishes))
        steps.append(Step(number, b"".join(encode(packet, version) for packet in hello)))
    for _ in range(draw(st.integers(1, 15))):
        number = draw(st.integers(0, _CLIENTS - 1))
        version = versions[number]
        kinds = [_publishes, _publishes, _publishes, _others]
        if version == 5:
            kinds.append(_rich_publishes)
        if draw(st.integers(0, 20)) == 0:
            kinds.append(_rare)
        packets = draw(st.lists(st.one_of(kinds), min_size=1, max_size=4))
        repeat = draw(st.sampled_from((1, 1, 1, 3)))
        steps.append(Step(number, b"".join(_encoded(packet, version) * repeat for packet in packets)))
    return steps


def serve(steps: Iterable[Step], cut: str, *, cache: int = 1_000, guarded: bool = False) -> Outcome:
    """One broker hears a conversation; every step is over, and written out, before the next begins."""
    broker = Broker(configured(route_cache=cache, topic_alias_maximum=2), access=Rules() if guarded else None)
    random = Random(0)
    conns = [broker.open(GENESIS, peer=f"{number}") for number in range(_CLIENTS)]
    sent = [b""] * _CLIENTS
    for at, (number, data) in enumerate(steps):
        now = GENESIS + at
        broker.tick(now)
        for piece in _pieces(data, cut, random):
            broker.receive(conns[number], piece, now)
        _write_out(broker, conns, sent, now)
    for conn in conns:
        broker.closed(conn, GENESIS + 100)
    account = broker.account
    return Outcome(
        tuple(sent),
        dict(account.closed),
        {why.value: count for why, count in account.drops.items()},
        account.packets_in,
        account.publishes_in,
        account.publishes_out,
        account.bytes_out,
        len(broker.retained),
    )


def _pieces(data: bytes, cut: str, random: Random) -> list[bytes]:
    if cut == "whole":
        return [data]
    if cut == "bytes":
        return [data[at : at + 1] for at in range(len(data))]
    places = sorted({0, len(data), *(random.randrange(len(data) + 1) for _ in range(3))})
    return [data[start:end] for start, end in itertools.pairwise(places)]


def _write_out(broker: Broker, conns: list[Connection], sent: list[bytes], now: float) -> None:
    busy = True
    while busy:
        busy = False
        for number, conn in enumerate(conns):
            if data := broker.fill(conn, 1 << 20, now):
                sent[number] += data
                busy = True
        broker.tick(now)


@settings(max_examples=150, deadline=None)
@given(conversations(), st.booleans())
def test_the_outcome_does_not_depend_on_how_the_bytes_arrive(steps: list[Step], guarded: bool) -> None:
    whole = serve(steps, "whole", guarded=guarded)
    assert serve(steps, "anywhere", guarded=guarded) == whole
    assert serve(steps, "bytes", guarded=guarded) == whole


@settings(max_examples=150, deadline=None)
@given(conversations(), st.booleans())
def test_the_outcome_does_not_depend_on_the_path_a_packet_takes(steps: list[Step], guarded: bool) -> None:
    """Without remembered routes every PUBLISH takes the general path."""
    fast = serve(steps, "whole", guarded=guarded)
    assert serve(steps, "whole", cache=0, guarded=guarded) == fast
    assert serve(steps, "bytes", cache=0, guarded=guarded) == fast
    assert serve(steps, "whole", cache=1, guarded=guarded) == fast


@pytest.mark.slow
@settings(max_examples=10_000, deadline=None)
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
