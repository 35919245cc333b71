"""The bytes of the link protocol: every frame is a kind, a length and a body.

::

    HELLO       who is there (:class:`tieline.overlay.frames.hello.Hello`)
    REFUSED     a sentence that says why the connection ends
    NAMES       numbers by which this end means brokers, and their names
    RESUME      the start of the peer that was heard last, and the last link number of it
    PING        nothing
    CLOCK       what the clock of the sender shows
    HOP_ACK     the last link number received
    LINK_STATE  broker, life, sequence number, incarnation, neighbours with their costs
    INTEREST    broker, form, version; a whole set of entries, a step between versions, or a request for the whole
    DATA        link number, lane, origin, tag, age, attempt with whether messages expire, whether they are planned and
                whether they go by stages, path, [epoch of a plan, number of the topic in it], [the broker where another
                stage begins], destinations with a place each, payloads
    VOID        the same with a count instead of payloads: numbers that nobody will ever send
    NOTICE      link number, topic of the notice, source, target, path, body
    SEGMENT     slot, and some bytes of a DATA, VOID or NOTICE that is sent in pieces
    LAST        link number, slot, and the last of those bytes (:mod:`tieline.overlay.frames.segments`)
    REST        slot, and the last bytes of an INTEREST that was sent in pieces
    PACKED      other frames, compressed (:mod:`tieline.overlay.frames.packing`)
    RING        a message between brokers of a ring, which say nothing else but HELLO, REFUSED, RESUME, HOP_ACK and this
                (:mod:`tieline.overlay.ring_member.frames`)

Integers, bytes and texts are those of :mod:`tieline.overlay.frames.fields`.  Only DATA, VOID, NOTICE and LAST have link
numbers: the others are said again after a reconnection anyway, or are of no use then.

A *tag* is 16 bits of what a stream's numbers belong to: the incarnation of a broker with assured messages, a life of it
with others.  A *place* is a number in a stream and the tag of the destination, in one integer.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final, NamedTuple

from tieline.overlay.frames.fields import SAME, BadFrame, Reader, add, put

#: Frames beyond this are refused before they are gathered.
LARGEST: Final = 1 << 24
#: Numbers that one frame may take in a stream.
MOST: Final = 4_096
#: Levels of urgency; the highest goes first on every link.
LEVELS: Final = 4
#: Lanes of one level and assurance: topics are spread over them, and order is kept inside each.
SPREAD: Final = 8
_ASSURED: Final = 8
TAG_BITS: Final = 16
TAG: Final = (1 << TAG_BITS) - 1


class Kind(IntEnum):
    """What a frame is."""

    HELLO = 1
    RESUME = 2
    PING = 3
    HOP_ACK = 4
    LINK_STATE = 5
    INTEREST = 6
    DATA = 7
    VOID = 8
    NOTICE = 9
    NAMES = 10
    REFUSED = 11
    SEGMENT = 12
    LAST = 13
    PACKED = 14
    CLOCK = 20
    REST = 15
    RING = 21


class Topic(IntEnum):
    """What a notice from one broker to another is about."""

    END_ACK = 1  # how far the streams of the target have been committed, and which numbers are missing
    ECHO = 2  # the interest of the target is known and committed, up to a version
    ASK = 3  # the source wants an echo of a version of its interest
    CREDIT = 4  # how much the source takes of some streams of the target, for a link that is full or has room again
    RETAINED = 16  # what a neighbour knows of retained messages (overlay/retained/retained_sync)
    AGREEING = 32  # what neighbours tell each other to agree on a plan (overlay/agreeing)
    QUESTION = 40  # the source asks the target about itself
    ANSWER = 41  # what the source says of that


_TALK: Final = frozenset({Topic.QUESTION, Topic.ANSWER})


def lane_of(level: int, assured: bool, spread: int) -> int:
    """The lane as one byte: order is kept between messages of equal lanes only."""
    return level << 4 | (_ASSURED if assured else 0) | spread % SPREAD


#: Those of messages with QoS 1 and 2.
ASSURED_LANES: Final = tuple(lane_of(level, True, spread) for level in range(LEVELS) for spread in range(SPREAD))


#: Of what brokers tell each other about sessions: urgent, kept, and behind nothing else.
ERRANDS: Final = 0x40 | lane_of(LEVELS - 1, True, 0)
_LEVEL: Final = 0x30


def is_assured(lane: int) -> bool:
    """Whether messages of a lane are kept until their destination has committed them."""
    return bool(lane & _ASSURED)


def level_of(lane: int) -> int:
    """The level of urgency of a lane."""
    return (lane & _LEVEL) >> 4


def tag_of(value: int) -> int:
    """The tag of an incarnation or a life."""
    return (value * 0x9E3779B97F4A7C15 >> 48) & TAG


class Planned(NamedTuple):
    """By which plan messages travel, and as which of the topics that their origin has in it."""

    epoch: int
    topic: int


def place(number: int, tag: int) -> int:
    """A number in a stream with the tag of its destination."""
    return number << TAG_BITS | tag


class Data:
    """A batch of messages on their way from one origin to a set of destinations; also a void, which has no payloads."""

    __slots__ = (
        "_size", "attempt", "born", "count", "destinations", "expires", "lane", "origin", "path", "payloads", "planned",
        "stage", "tag",
    )  # fmt: skip

    def __init__(  # the fields of a frame
        self,
        lane: int,
        origin: int,
        tag: int,
        destinations: dict[int, int],
        payloads: tuple[bytes, ...],
        *,
        born: float,
        path: bytes = b"",
        attempt: int = 0,
        void: int = 0,
    ) -> None:
        self.lane = lane
        self.origin = origin
        #: Of the origin: to what the numbers of its streams belong.
        self.tag = tag
        #: By destination, the place of the first message in the stream that leads there.
        self.destinations = destinations
        self.payloads = payloads
        #: When the messages were accepted, by the clock of whoever holds the frame.
        self.born = born
        #: The brokers that have sent it, in this order.
        self.path = path
        #: How often it was sent before, for strategies that remember what they saw.
        self.attempt = attempt
        #: Numbers that the frame takes in each stream.
        self.count = void or len(payloads)
        self._size = 0
        #: Whether some of the messages expire, so that it matters how old they are.
        self.expires = False
        #: The plan that they travel by; None for those that no plan covers.
        self.planned: Planned | None = None
        #: The broker where another stage of its way begins; 0 if the way has no stages any more.
        self.stage = 0

    @property
    def level(self) -> int:
        return (self.lane & _LEVEL) >> 4

    @property
    def size(self) -> int:
        """About as many bytes as it takes on a link and in memory."""
        size = self._size
        if not size:
            size = 16 + len(self.path) + 3 * len(self.destinations) + sum(map(len, self.payloads)) + len(self.payloads)
            self._size = size
        return size

    def to(self, destinations: dict[int, int], path: bytes) -> Data:
        """A copy for some of the destinations."""
        void = 0 if self.payloads else self.count
        head = self.lane, self.origin, self.tag, destinations, self.payloads
        copy = Data(*head, born=self.born, path=path, attempt=self.attempt, void=void)
        copy.expires = self.expires
        copy.planned = self.planned
        copy.stage = self.stage
        return copy

    def as_void(self) -> Data:
        """The same numbers without what they stood for."""
        head = self.lane, self.origin, self.tag, self.destinations, ()
        void = Data(*head, born=self.born, path=self.path, attempt=self.attempt, void=self.count)
        void.planned = self.planned
        void.stage = self.stage
        return void

    def swallow(self, other: Data, most: int) -> bool:
        """Let a void stand for the numbers of another frame as well, if they are the next ones in all its streams."""
        if (
            self.count + other.count > most
            or (self.lane, self.origin, self.tag, self.path) != (other.lane, other.origin, other.tag, other.path)
            or self.destinations.keys() != other.destinations.keys()
            or self.stage != other.stage
        ):
            return False
        step = self.count << TAG_BITS
        if any(place + step != other.destinations[to] for to, place in self.destinations.items()):
            return False
        self.count += other.count
        return True


class Notice:
    """What one broker tells another across the links between them; it may get lost, and is then said again."""

    __slots__ = ("body", "level", "path", "source", "target", "topic")

    def __init__(  # the fields of a frame
        self, topic: Topic, source: int, target: int, body: bytes, path: bytes = b"", *, level: int | None = None
    ) -> None:
        self.topic = topic
        self.source = source
        self.target = target
        self.body = body
        self.path = path
        if level is None:
            # what people ask and are told, which may be long, goes behind what is urgent
            level = LEVELS - 2 if topic in _TALK else LEVELS - 1
        #: In which class it leaves here.
        self.level = level

    @property
    def size(self) -> int:
        """About as many bytes as it takes on a link."""
        return 8 + len(self.path) + len(self.body)


Numbered = Data | Notice


# -- whole frames


def frame(kind: Kind, body: bytes | bytearray = b"") -> bytes:
    """The bytes of one frame."""
    head = bytearray()
    add(head, kind, len(body))
    head += body
    return bytes(head)


def numbered(number: int, item: Numbered, now: float) -> list[bytes]:
    """DATA, VOID or NOTICE with its link number, in pieces; what has grown older since it came here says so.

    Payloads are long where there are many messages, so they are not copied here: whoever writes joins all pieces once.
    """
    pieces: list[bytes] = [b""]
    kind, size = write(item, pieces, now)
    first = put(number)
    pieces[0] = put(kind, len(first) + size) + first
    return pieces


def write(item: Numbered, pieces: list[bytes], now: float) -> tuple[Kind, int]:
    """Add what stands behind the link number; which kind of frame that is, and how long."""
    body = bytearray()
    if isinstance(item, Notice):
        add(body, item.topic, item.source, item.target, len(item.path))
        body += item.path
        body += item.body
        pieces.append(bytes(body))
        return Kind.NOTICE, len(body)
    age_ms = int((now - item.born) * 1000)
    destinations = item.destinations
    planned = item.planned
    attempt = item.attempt << 3 | (item.stage != 0) << 2 | (planned is not None) << 1 | item.expires
    add(body, item.lane, item.origin, item.tag, age_ms if age_ms > 0 else 0, attempt, len(item.path))
    body += item.path
    if planned is not None:
        add(body, planned.epoch, planned.topic)
    if item.stage:
        add(body, item.stage)
    add(body, len(destinations))
    for pair in destinations.items():
        add(body, *pair)
    add(body, item.count)
    pieces.append(bytes(body))
    size = len(body)
    for payload in item.payloads:
        length = put(len(payload))
        pieces.append(length)
        pieces.append(payload)
        size += len(length) + len(payload)
    return (Kind.DATA if item.payloads else Kind.VOID), size


def read_numbered(kind: Kind, body: bytes, now: float, ours: bytes = SAME) -> tuple[int, Numbered]:
    """The link number and what it stands for; ``ours`` has our number for each of the sender's, or 0."""
    reader = Reader(body)
    integer = reader.integer
    number = integer()
    if kind is Kind.NOTICE:
        try:
            topic = Topic(integer())
        except ValueError as error:
            raise BadFrame(str(error)) from None
        source, target, path = reader.known(ours), reader.known(ours), reader.path(ours)
        return number, Notice(topic, source, target, reader.rest(), path)
    lane, origin, tag = integer(), reader.known(ours), integer()
    age_ms, attempts, path = integer(), integer(), reader.path(ours)
    attempt = attempts >> 3
    planned = Planned(integer(), integer()) if attempts & 2 else None
    stage = reader.known(ours) if attempts & 4 else 0
    if lane >> 4 >= LEVELS and lane != ERRANDS:
        raise BadFrame(f"lane {lane} is of no level")
    destinations = {reader.known(ours): integer() for _ in reader.repeat()}
    born = now - age_ms / 1000
    if kind is Kind.VOID:
        void = integer()
        if not 0 < void <= MOST or is_assured(lane):
            raise BadFrame("a void of nothing, of too much, or of messages that are never given up")
        data = Data(lane, origin, tag, destinations, (), born=born, path=path, attempt=attempt, void=void)
        data.planned, data.stage = planned, stage
        return number, data
    payloads = reader.payloads()
    if not 0 < len(payloads) <= MOST:
        raise BadFrame(f"a frame of {len(payloads)} messages")
    data = Data(lane, origin, tag, destinations, payloads, born=born, path=path, attempt=attempt)
    data.expires = attempts & 1 == 1
    data.planned, data.stage = planned, stage
    return number, data


def readdressed(body: bytes, ours: bytes) -> bytes:
    """A body that begins with a broker, with our number for it."""
    reader = Reader(body)
    return put(reader.known(ours)) + reader.rest()
