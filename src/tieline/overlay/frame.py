"""The bytes of the link protocol: every frame is a kind, a length and a body.

::

    HELLO       version, broker, life, the version of each broker's interest that is known
    RESUME      the life of the peer that was heard last, and the last link number of that life
    PING        nothing
    HOP_ACK     the last link number received
    LINK_STATE  broker, life, sequence number, neighbours with their costs
    INTEREST    broker, form, version; a whole set of entries, a step between versions, or a request for the whole
    DATA        link number, lane, origin, life, age, attempt, path, destinations with a number each, payloads
    VOID        the same with a count instead of payloads: numbers that nobody will ever send
    NOTICE      link number, topic of the notice, source, target, path, body

Integers are little endian in groups of seven bits (LEB128), so that small ones take a byte.  A broker is a number from
1 to 255 and takes one byte.  Only DATA, VOID and NOTICE have link numbers: the others are said again after a
reconnection anyway, or are of no use then.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import IntEnum
from typing import Final

#: Of the protocol; brokers of different versions refuse each other.
VERSION: Final = 1
#: Frames beyond this are refused before they are gathered.
LARGEST: Final = 1 << 24
#: Numbers that one frame may take in a stream.
MOST: Final = 4_096
#: Levels of urgency; the highest goes first on every link.
LEVELS: Final = 4
#: Lanes of one level and assurance: topics are spread over them, and order is kept inside each.
SPREAD: Final = 8
_ASSURED: Final = 8


class BadFrame(Exception):
    """Bytes that are no frame of this protocol, or say what it does not allow; the link starts anew."""


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


class Topic(IntEnum):
    """What a notice from one broker to another is about."""

    END_ACK = 1  # how far the streams of the target have been committed, and which numbers are missing
    ECHO = 2  # the interest of the target is known and committed, up to a version
    ASK = 3  # the source wants an echo of a version of its interest


def lane_of(level: int, assured: bool, spread: int) -> int:
    """The lane as one byte: order is kept between messages of equal lanes only."""
    return level << 4 | (_ASSURED if assured else 0) | spread % SPREAD


#: Those of messages with QoS 1 and 2.
ASSURED_LANES: Final = tuple(lane_of(level, True, spread) for level in range(LEVELS) for spread in range(SPREAD))


def is_assured(lane: int) -> bool:
    """Whether messages of a lane are kept until their destination has committed them."""
    return bool(lane & _ASSURED)


class Data:
    """A batch of messages on their way from one origin to a set of destinations; also a void, which has no payloads."""

    __slots__ = ("attempt", "born", "count", "destinations", "lane", "life", "origin", "path", "payloads")

    def __init__(  # the fields of a frame
        self,
        lane: int,
        origin: int,
        life: int,
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
        self.life = life
        #: By destination, the number of the first message in the stream that leads there.
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

    @property
    def level(self) -> int:
        return self.lane >> 4

    @property
    def size(self) -> int:
        """About as many bytes as it takes on a link and in memory."""
        return 16 + len(self.path) + 3 * len(self.destinations) + sum(map(len, self.payloads)) + len(self.payloads)

    def to(self, destinations: dict[int, int], path: bytes) -> Data:
        """A copy for some of the destinations."""
        void = 0 if self.payloads else self.count
        head = self.lane, self.origin, self.life, destinations, self.payloads
        return Data(*head, born=self.born, path=path, attempt=self.attempt, void=void)

    def as_void(self) -> Data:
        """The same numbers without what they stood for."""
        head = self.lane, self.origin, self.life, self.destinations, ()
        return Data(*head, born=self.born, path=self.path, attempt=self.attempt, void=self.count)


class Notice:
    """What one broker tells another across the links between them; it may get lost, and is then said again."""

    __slots__ = ("body", "path", "source", "target", "topic")

    def __init__(self, topic: Topic, source: int, target: int, body: bytes, path: bytes = b"") -> None:
        self.topic = topic
        self.source = source
        self.target = target
        self.body = body
        self.path = path

    @property
    def level(self) -> int:
        return LEVELS - 1

    @property
    def size(self) -> int:
        """About as many bytes as it takes on a link."""
        return 8 + len(self.path) + len(self.body)


Numbered = Data | Notice


# -- integers, bytes and texts


def put(*values: int) -> bytes:
    """Integers, one behind the other."""
    out = bytearray()
    for value in values:
        while value > 0x7F:
            out.append(value & 0x7F | 0x80)
            value >>= 7
        out.append(value)
    return bytes(out)


def put_bytes(data: bytes) -> bytes:
    """Bytes behind their length."""
    return put(len(data)) + data


class Reader:
    """Takes a body apart from its beginning; raises :class:`BadFrame` where it ends too soon."""

    __slots__ = ("_data", "_pos")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._pos = 0

    @property
    def is_over(self) -> bool:
        return self._pos >= len(self._data)

    def integer(self) -> int:
        data, pos, value, shift = self._data, self._pos, 0, 0
        while True:
            if pos >= len(data) or shift > 63:
                raise BadFrame("an integer has no end")
            byte = data[pos]
            pos += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                self._pos = pos
                return value
            shift += 7

    def broker(self) -> int:
        number = self.integer()
        if not 1 <= number <= 255:
            raise BadFrame(f"{number} is the number of no broker")
        return number

    def raw(self) -> bytes:
        size = self.integer()
        end = self._pos + size
        if end > len(self._data):
            raise BadFrame("bytes are missing")
        data = self._data[self._pos : end]
        self._pos = end
        return data

    def rest(self) -> bytes:
        data, self._pos = self._data[self._pos :], len(self._data)
        return data

    def text(self) -> str:
        try:
            return self.raw().decode()
        except UnicodeDecodeError:
            raise BadFrame("a text is not UTF-8") from None

    def repeat(self) -> Iterator[int]:
        """As many turns as the next integer says; it cannot say more than there are bytes left."""
        count = self.integer()
        if count > len(self._data) - self._pos:
            raise BadFrame(f"{count} entries in {len(self._data) - self._pos} bytes")
        return iter(range(count))


# -- whole frames


def frame(kind: Kind, body: bytes = b"") -> bytes:
    """The bytes of one frame."""
    return put(kind, len(body)) + body


def hello(broker: int, life: int, versions: dict[int, int]) -> bytes:
    """The first frame of both ends of a connection."""
    pairs = [number for pair in versions.items() for number in pair]
    return frame(Kind.HELLO, put(VERSION, broker, life, len(versions), *pairs))


def read_hello(body: bytes) -> tuple[int, int, dict[int, int]]:
    """The broker, its life, and the versions of interests that it knows."""
    reader = Reader(body)
    if (version := reader.integer()) != VERSION:
        raise BadFrame(f"the peer speaks version {version} of the link protocol, we speak {VERSION}")
    return reader.broker(), reader.integer(), {reader.broker(): reader.integer() for _ in reader.repeat()}


def numbered(number: int, item: Numbered, now: float) -> bytes:
    """DATA, VOID or NOTICE with its link number; what has grown older since it came here says so."""
    if isinstance(item, Notice):
        head = put(number, item.topic, item.source, item.target)
        return frame(Kind.NOTICE, b"".join((head, put_bytes(item.path), item.body)))
    age_ms = max(0, int((now - item.born) * 1000))
    pairs = [value for pair in item.destinations.items() for value in pair]
    parts = [
        put(number, item.lane, item.origin, item.life, age_ms, item.attempt),
        put_bytes(item.path),
        put(len(item.destinations), *pairs, item.count),
    ]
    if not item.payloads:
        return frame(Kind.VOID, b"".join(parts))
    for payload in item.payloads:
        parts += (put(len(payload)), payload)
    return frame(Kind.DATA, b"".join(parts))


def read_numbered(kind: Kind, body: bytes, now: float) -> tuple[int, Numbered]:
    """The link number and what it stands for."""
    reader = Reader(body)
    number = reader.integer()
    if kind is Kind.NOTICE:
        try:
            topic = Topic(reader.integer())
        except ValueError as error:
            raise BadFrame(str(error)) from None
        source, target, path = reader.broker(), reader.broker(), reader.raw()
        return number, Notice(topic, source, target, reader.rest(), path)
    lane, origin, life = reader.integer(), reader.broker(), reader.integer()
    age_ms, attempt, path = reader.integer(), reader.integer(), reader.raw()
    if lane >> 4 >= LEVELS:
        raise BadFrame(f"lane {lane} is of no level")
    destinations = {reader.broker(): reader.integer() for _ in reader.repeat()}
    born = now - age_ms / 1000
    if kind is Kind.VOID:
        void = reader.integer()
        if not 0 < void <= MOST or is_assured(lane):
            raise BadFrame("a void of nothing, of too much, or of messages that are never given up")
        return number, Data(lane, origin, life, destinations, (), born=born, path=path, attempt=attempt, void=void)
    payloads = tuple(reader.raw() for _ in reader.repeat())
    if not 0 < len(payloads) <= MOST:
        raise BadFrame(f"a frame of {len(payloads)} messages")
    return number, Data(lane, origin, life, destinations, payloads, born=born, path=path, attempt=attempt)


class Inbox:
    """Cuts what arrives on one connection into frames, however it comes in pieces."""

    __slots__ = ("_unparsed",)

    def __init__(self) -> None:
        self._unparsed = bytearray()

    def take(self, data: bytes) -> Iterable[tuple[Kind, bytes]]:
        """The frames that are whole now; raises :class:`BadFrame` at the first that can be none."""
        self._unparsed += data
        while (cut := self._cut()) is not None:
            yield cut

    def _cut(self) -> tuple[Kind, bytes] | None:
        data = self._unparsed
        if len(data) < 2:
            return None
        size, shift, pos = 0, 0, 1
        while True:
            if pos >= len(data):
                return None
            byte = data[pos]
            pos += 1
            size |= (byte & 0x7F) << shift
            shift += 7
            if size > LARGEST or shift > 28:
                raise BadFrame(f"a frame of more than {LARGEST} bytes")
            if byte < 0x80:
                break
        if len(data) < pos + size:
            return None
        try:
            kind = Kind(data[0])
        except ValueError as error:
            raise BadFrame(str(error)) from None
        body = bytes(data[pos : pos + size])
        del data[: pos + size]
        return kind, body
