"""Strangers at the door between brokers, and one broker that holds the key."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from itertools import count, cycle, repeat
from time import monotonic
from typing import Final
from zlib import crc32

import msgspec

from tests.robust.attack.hostile import pour, pour_each, stranger
from tests.robust.attack.peer import CLUSTER, GHOSTS, HostilePeer, Liar
from tests.robust.attack.site import Doors
from tieline.overlay.frames.fields import put, put_bytes
from tieline.overlay.frames.frame import Kind, Topic, frame
from tieline.overlay.frames.packing import Packer
from tieline.overlay.interests.entries import Entry
from tieline.overlay.links.greeting import VERSION
from tieline.wire.encode import encode
from tieline.wire.packets import Publish

#: Of the event types of a broker that has none.
NO_EVENTS: Final = crc32(msgspec.json.encode(()))
#: What a hostile broker says without end, in pieces.
Speech = Callable[[Liar], Iterator[bytes]]
_PUBLISHER: Final = put_bytes(b"nobody")


def pings(liar: Liar) -> Iterator[bytes]:
    """The shortest frames there are."""
    return repeat(frame(Kind.PING) * 10_000)


def packed_pings(liar: Liar) -> Iterator[bytes]:
    """The same, compressed to next to nothing."""
    packer = Packer()
    return (packer.pack(frame(Kind.PING) * 30_000) for _ in count())


def link_states(liar: Liar) -> Iterator[bytes]:
    """Links of brokers that do not exist come and go."""
    return (liar.link_state(broker, GHOSTS) for broker in cycle(GHOSTS))


def names(liar: Liar) -> Iterator[bytes]:
    """The same names, again and again."""
    return repeat(liar.names({number: f"ghost-{number}" for number in GHOSTS}))


def requests(liar: Liar) -> Iterator[bytes]:
    """Everything that is wanted here is to be said, again and again."""
    return repeat(liar.request() * 500)


def interests(liar: Liar) -> Iterator[bytes]:
    """It wants as much as a broker may, and something else each time."""
    return (liar.interest(Entry(f"w/{serial}/{n}/+") for n in range(20_000)) for serial in count())


def conditions(liar: Liar) -> Iterator[bytes]:
    """It wants messages under conditions as long as they may be."""
    terms = " or ".join(f"a{n}>{n}" for n in range(60))
    return (
        liar.interest(Entry("w/+", "", f"{terms} or z=={serial * 500 + n}", 1) for n in range(500))
        for serial in count()
    )


def runs(liar: Liar) -> Iterator[bytes]:
    """QoS 0 packets, each with a topic that was never used."""
    head = put(1, 5, 0) + _PUBLISHER
    return (
        liar.data((head + b"".join(encode(Publish(topic=f"r/{s}/{n}", payload=b""), 5) for n in range(3_000)),))
        for s in count()
    )


def small_messages(liar: Liar) -> Iterator[bytes]:
    """As many short messages as fit into a frame."""
    head = put(0, 0) + _PUBLISHER
    parcel = head + b"".join(put(0, 0) + put_bytes(b"s/%d" % n) + put(0) for n in range(60))
    return (liar.data((parcel,) * 400) for _ in count())


def nonsense(liar: Liar) -> Iterator[bytes]:
    """Parcels that nobody can understand."""
    return (liar.data((bytes(6_000),) * 50, is_assured=is_assured) for _ in count() for is_assured in (False, True))


def nothing(liar: Liar) -> Iterator[bytes]:
    """Places of messages that do not exist."""
    return (liar.data(void=4_096) if turn % 2 else liar.data((b"",) * 4_000) for turn in count())


def late_first(liar: Liar) -> Iterator[bytes]:
    """Messages whose first one is missing, then the first one, again and again."""
    parcel = put(0, 0) + _PUBLISHER + b"".join(put(0, 0) + put_bytes(b"l") + put(0) for _ in range(100))
    place = 1
    while True:
        yield from (liar.data((parcel,), is_assured=True, first=place + n) for n in range(1, 500))
        yield liar.data((parcel,), is_assured=True, first=place)
        place += 500


def notices(liar: Liar) -> Iterator[bytes]:
    """Questions for versions that there will never be."""
    return (liar.notice(Topic.ASK, put(1 << 60)) for _ in count())


SPEECHES: Final[tuple[Speech, ...]] = (
    pings, packed_pings, link_states, names, requests, interests, conditions, runs, small_messages, nonsense, nothing,
    late_first, notices,
)  # fmt: skip


def _in_turn(liar: Liar, until: float) -> Iterator[bytes]:
    """All speeches, one after the other, each for a while."""
    speeches = [speech(liar) for speech in SPEECHES]
    while True:
        for speech in speeches:
            end = min(monotonic() + 0.5, until)
            while monotonic() < end:
                yield next(speech)


def strangers_at_the_door(doors: Doors, connections: int, until: float) -> None:
    """Greetings of brokers that do not have the key."""
    said = f"{VERSION} nobody {CLUSTER} {'0' * 32}\n{'0' * 64}\n".encode()
    pour(stranger(doors.peer), connections, said, until)


def silent_strangers(doors: Doors, connections: int, until: float) -> None:
    """Greetings that are begun, and no more."""
    pour(stranger(doors.peer), connections * 16, VERSION[:4].encode(), until)


def a_broker_with_the_key(doors: Doors, connections: int, until: float) -> None:
    """Brokers with the key say everything that they may, as fast as it goes, and read what they are told."""
    peers: dict[int, HostilePeer] = {}

    def opens(number: int) -> socket.socket:
        peers[number] = HostilePeer(doors.peer, f"hostile-{number}")
        return peers[number].sock

    def says(number: int) -> Iterator[bytes]:
        return _in_turn(peers[number], until)

    pour_each(opens, connections, says, until)
