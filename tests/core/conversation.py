"""Random conversations of several clients with one broker, told in different ways, and what came of them."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from random import Random
from typing import NamedTuple

from hypothesis import strategies as st

from tests.kits.world import GENESIS, configured
from tieline.core.broker import Broker
from tieline.core.client import Connection
from tieline.core.ports import Allowed, Login, Refused, Verdict
from tieline.wire.encode import encode
from tieline.wire.frames import find_frame
from tieline.wire.packet_type import PacketType
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
def conversations(draw: st.DrawFn, *, publishes_only: bool = False) -> list[Step]:
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
        kinds = [_publishes, _publishes, _publishes] + [_others] * (not publishes_only)
        if version == 5:
            kinds.append(_rich_publishes)
        if not publishes_only and draw(st.integers(0, 20)) == 0:
            kinds.append(_rare)
        packets = draw(st.lists(st.one_of(kinds), min_size=1, max_size=4))
        repeat = draw(st.sampled_from((1, 1, 1, 3)))
        steps.append(Step(number, b"".join(_encoded(packet, version) * repeat for packet in packets)))
    return steps


def serve(steps: Iterable[Step], cut: str, *, cache: int = 1_000, guarded: bool = False) -> Outcome:
    """One broker hears a conversation; every step is over, and written out, before the next begins.

    ``cut`` says how the bytes of a step arrive: "whole", in "bytes", cut "anywhere"; "alone" is whole as well, with a
    shell that tries to pass a message on before it hands it to the core.
    """
    broker = Broker(configured(route_cache=cache, topic_alias_maximum=2), access=Rules() if guarded else None)
    random = Random(0)
    conns = [broker.open(GENESIS, peer=f"{number}") for number in range(_CLIENTS)]
    sent = [b""] * _CLIENTS
    for at, (number, data) in enumerate(steps):
        now = GENESIS + at
        broker.tick(now)
        for piece in _pieces(data, cut, random):
            outlets = broker.pass_on(conns[number], piece, now) if cut == "alone" else None
            if outlets is None:
                broker.receive(conns[number], piece, now)
            else:
                for outlet in outlets:
                    outlet.write(piece, now)
        write_out(broker, conns, sent, now)
    for conn in conns:
        broker.closed(conn, GENESIS + 100)
    return outcome_of(broker, sent)


def outcome_of(broker: Broker, sent: Iterable[bytes]) -> Outcome:
    """What has come of a conversation at a broker that has sent this to each client."""
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


def sort_out(outcome: Outcome) -> Outcome:
    """The same with messages and answers apart: which of them goes first depends on when they are written."""
    apart: list[list[bytes]] = [sorted(packets(data), key=_is_message) for data in outcome.sent]
    return outcome._replace(sent=tuple(map(b"".join, apart)))


def packets(data: bytes) -> Iterator[bytes]:
    """The packets that were sent, one by one."""
    pos = 0
    while (frame := find_frame(data, pos, 1 << 28)) is not None:
        yield data[pos : frame[1]]
        pos = frame[1]
    assert pos == len(data)


def _is_message(packet: bytes) -> bool:
    return packet[0] >> 4 == PacketType.PUBLISH


def _pieces(data: bytes, cut: str, random: Random) -> list[bytes]:
    if cut in ("whole", "alone"):
        return [data]
    if cut == "bytes":
        return [data[at : at + 1] for at in range(len(data))]
    places = sorted({0, len(data), *(random.randrange(len(data) + 1) for _ in range(3))})
    return [data[start:end] for start, end in itertools.pairwise(places)]


def write_out(broker: Broker, conns: list[Connection], sent: list[bytes], now: float) -> None:
    """Write everything there is to write, to everybody."""
    busy = True
    while busy:
        busy = False
        for number, conn in enumerate(conns):
            conn.is_dirty = False
            if pieces := broker.fill(conn, 1 << 20, now):
                sent[number] += b"".join(pieces)
                busy = True
        for conn in [conn for conn in broker.take_dirty() if conn.is_dirty]:
            conn.is_dirty = False
            broker.mark(conn)
        due = broker.timer()
        busy = busy or (due is not None and due <= now)
        broker.tick(now)
