"""Strangers at the door between brokers, and one broker that holds the key."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from itertools import count, cycle, repeat
from time import monotonic
from typing import Final
from zlib import crc32

import msgspec

from tests.robust.attack.bout import Bout
from tests.robust.attack.hostile import pour, pour_each, stranger
from tests.robust.attack.peer import CLUSTER, GHOSTS, ME, THEM, HostilePeer, Liar
from tests.robust.attack.site import Doors
from tieline.core.message import Message, Origin
from tieline.overlay.frames.fields import put, put_bytes
from tieline.overlay.frames.frame import Kind, Topic, frame
from tieline.overlay.frames.packing import Packer
from tieline.overlay.interests.entries import Entry
from tieline.overlay.links.greeting import VERSION
from tieline.overlay.retained.partner import put_terms
from tieline.overlay.retained.retained_compare import Kind as Compared
from tieline.overlay.retained.retained_item import MOST_TOPICS, ItemsWriter, RetainedItem
from tieline.overlay.retained.versions import BUCKETS
from tieline.overlay.sessions.errands import (
    MOST_ENTRIES,
    MOST_SUBSCRIPTIONS,
    AskMark,
    Claim,
    Complete,
    Errand,
    Homes,
    Invite,
    State,
    Subscriptions,
    put_errand,
)
from tieline.overlay.sessions.registry import KEPT
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


def a_crowd(liar: Liar) -> Iterator[bytes]:
    """As many brokers as there may be, each joined with each, whose links come and go; and who is there?"""
    crowd = range(3, 256)
    yield liar.names({number: f"ghost-{number}" for number in crowd})
    yield liar.link_state(ME, [THEM, *crowd])
    yield b"".join(liar.link_state(broker, [ME, *crowd]) for broker in crowd)
    for number in count(1):
        question = liar.notice(Topic.QUESTION, put(number) + msgspec.json.encode({"do": "net"}))
        yield liar.link_state(3, [ME, *crowd[number % 7 :]]) + question


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


def _errands(liar: Liar, *errands: Errand) -> bytes:
    """As many as fit into one frame."""
    return liar.data(tuple(put_errand(errand) for errand in errands), is_errand=True)


def homes(liar: Liar) -> Iterator[bytes]:
    """It keeps very many sessions, and other ones each time."""
    for serial in count():
        places = range(serial * 40_000, (serial + 1) * 40_000)
        steps = (places[at : at + MOST_ENTRIES] for at in range(0, len(places), MOST_ENTRIES))
        yield _errands(liar, *(Homes(False, [(b"%016d" % place, 1, KEPT) for place in step]) for step in steps))


def invitations(liar: Liar) -> Iterator[bytes]:
    """It is emptied, and has very many sessions to give away."""
    for serial in count():
        names = range(MOST_ENTRIES)
        invited = (Invite([(f"i-{serial}-{part}-{n}", None, 1) for n in names]) for part in range(40))
        yield _errands(liar, *invited)


def claims(liar: Liar) -> Iterator[bytes]:
    """Its clients have come, whose sessions are nowhere."""
    for serial in count():
        yield _errands(liar, *(Claim(f"c-{serial}-{n}", None, 1, liar.name, 0) for n in range(2_000)))


def handed_over(liar: Liar) -> Iterator[bytes]:
    """Sessions that nobody has asked for, with as many subscriptions as a frame holds."""
    for serial in count():
        client = f"h-{serial}"
        key = client, 1 + serial
        state = State(*key, None, 3_600, None, tuple(range(1, 20_000)), 0)
        names = range(MOST_SUBSCRIPTIONS)
        wanted = (Subscriptions(*key, [(f"h/{serial}/{part}/{n}/+", 1, 0, ()) for n in names]) for part in range(140))
        yield _errands(liar, state, *wanted, Complete(*key, []))


def marks(liar: Liar) -> Iterator[bytes]:
    """It asks from where on it is sent something, for sessions that there never were."""
    for serial in count():
        yield _errands(liar, *(AskMark(f"m-{serial}-{n}", 1, "ghost-3", 0) for n in range(2_000)))


def _retained(liar: Liar, kind: Compared, body: bytes) -> bytes:
    """The same said in the first epochs of a link, one of which is the right one."""
    return b"".join(liar.notice(Topic.RETAINED, put(kind, epoch) + body) for epoch in range(1, 9))


def comparisons(liar: Liar) -> Iterator[bytes]:
    """It begins anew, and compares all that is retained, again and again."""
    while True:
        yield liar.notice(Topic.RETAINED, put(Compared.BEGIN, 0, 1, 1) + put_terms(None))
        for root in range(5):
            yield _retained(liar, Compared.ROOT, put(root))
        yield _retained(liar, Compared.BUCKETS, b"".join(put(number) + bytes(8) for number in range(BUCKETS)))


def versions(liar: Liar) -> Iterator[bytes]:
    """It knows newer writes of very many topics, and other ones each time."""
    yield liar.notice(Topic.RETAINED, put(Compared.BEGIN, 0, 1, 1) + put_terms(None))
    for serial in count():
        said = ItemsWriter()
        for n in range(MOST_TOPICS):
            said.add_version(b"v/%d/%d" % (serial, n), 1 << 50, liar.name)
        yield _retained(liar, Compared.VERSIONS, said.done())


def writes(liar: Liar) -> Iterator[bytes]:
    """It tells of writes of very many topics, and of other ones each time."""
    yield liar.notice(Topic.RETAINED, put(Compared.BEGIN, 0, 1, 1) + put_terms(None))
    for serial in count():
        said = ItemsWriter()
        for n in range(MOST_TOPICS):
            message = Message(b"w/%d/%d" % (serial, n), b"x", 1, True, origin=Origin("nobody", 0, None, liar.name))
            said.add(RetainedItem(message.topic, serial + 1, liar.name, (), message), 0.0)
        yield _retained(liar, Compared.ITEMS, put(1, 1) + said.done())


def questions(liar: Liar) -> Iterator[bytes]:
    """It asks everything that brokers answer each other, without waiting for an answer."""
    asked = [{"do": verb} for verb in ("top", "net", "brief", "drops", "plan")]
    asked += [{"do": "trace", "topic": "t"}, {"do": "why", "client": "honest-0"}, {"do": "demand", "act": "begin"}]
    for number in count(1):
        yield b"".join(liar.notice(Topic.QUESTION, put(number) + msgspec.json.encode(each)) for each in asked)


SPEECHES: Final[tuple[Speech, ...]] = (
    pings, packed_pings, link_states, a_crowd, names, requests, interests, conditions, runs, small_messages, nonsense,
    nothing, late_first, notices, homes, invitations, claims, handed_over, marks, comparisons, versions, writes,
    questions,
)  # fmt: skip


def _in_turn(liar: Liar) -> Iterator[bytes]:
    """All speeches, one after the other, each for a while."""
    speeches = [speech(liar) for speech in SPEECHES]
    while True:
        for speech in speeches:
            end = monotonic() + 0.5
            while monotonic() < end:
                yield next(speech)


def strangers_at_the_door(doors: Doors, connections: int, bout: Bout) -> None:
    """Greetings of brokers that do not have the key."""
    said = f"{VERSION} nobody {CLUSTER} {'0' * 32}\n{'0' * 64}\n".encode()
    pour(stranger(doors.peer), connections, said, bout)


def silent_strangers(doors: Doors, connections: int, bout: Bout) -> None:
    """Greetings that are begun, and no more."""
    pour(stranger(doors.peer), connections * 16, VERSION[:4].encode(), bout)


def a_broker_with_the_key(doors: Doors, connections: int, bout: Bout) -> None:
    """Brokers with the key say everything that they may, as fast as it goes, and read what they are told."""
    peers: dict[int, HostilePeer] = {}

    def opens(number: int) -> socket.socket:
        peers[number] = HostilePeer(doors.peer, f"hostile-{number}")
        return peers[number].sock

    def says(number: int) -> Iterator[bytes]:
        return _in_turn(peers[number])

    pour_each(opens, connections, says, bout)
