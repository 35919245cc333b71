"""The bytes of the link protocol: every frame is a kind, a length and a body.

::

    HELLO       who is there (:class:`Hello`)
    REFUSED     a sentence that says why the connection ends
    NAMES       numbers by which this end means brokers, and their names
    RESUME      the start of the peer that was heard last, and the last link number of it
    PING        nothing
    HOP_ACK     the last link number received
    LINK_STATE  broker, life, sequence number, incarnation, neighbours with their costs
    INTEREST    broker, form, version; a whole set of entries, a step between versions, or a request for the whole
    DATA        link number, lane, origin, tag, age, attempt, path, destinations with a place each, payloads
    VOID        the same with a count instead of payloads: numbers that nobody will ever send
    NOTICE      link number, topic of the notice, source, target, path, body

Integers are little endian in groups of seven bits (LEB128), so that small ones take a byte.  A broker is a number from
1 to 255 of whoever sends the frame (:mod:`tieline.overlay.directory`).  Only DATA, VOID and NOTICE have link numbers:
the others are said again after a reconnection anyway, or are of no use then.

A *tag* is 16 bits of what a stream's numbers belong to: the incarnation of a broker with assured messages, a life of it
with others.  A *place* is a number in a stream and the tag of the destination, in one integer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import IntEnum
from typing import Final, NamedTuple

#: Of the protocol, the lowest and the highest that are spoken here; the highest that both ends speak is used.
VERSIONS: Final = (2, 2)
#: Frames beyond this are refused before they are gathered.
LARGEST: Final = 1 << 24
#: Characters of a broker's name.
LONGEST_NAME: Final = 255
#: Numbers that one frame may take in a stream.
MOST: Final = 4_096
#: Levels of urgency; the highest goes first on every link.
LEVELS: Final = 4
#: Lanes of one level and assurance: topics are spread over them, and order is kept inside each.
SPREAD: Final = 8
_ASSURED: Final = 8
TAG_BITS: Final = 16
TAG: Final = (1 << TAG_BITS) - 1
#: Every number means the same broker at both ends.
SAME: Final = bytes(range(256))


class BadFrame(Exception):
    """Bytes that are no frame of this protocol, or say what it does not allow; the link starts anew."""


class Refused(Exception):
    """A peer cannot be had for a reason that its operator should read; the text is a sentence without its stop."""


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


def tag_of(value: int) -> int:
    """The tag of an incarnation or a life."""
    return (value * 0x9E3779B97F4A7C15 >> 48) & TAG


def place(number: int, tag: int) -> int:
    """A number in a stream with the tag of its destination."""
    return number << TAG_BITS | tag


class Data:
    """A batch of messages on their way from one origin to a set of destinations; also a void, which has no payloads."""

    __slots__ = ("attempt", "born", "count", "destinations", "lane", "origin", "path", "payloads", "tag")

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
        head = self.lane, self.origin, self.tag, destinations, self.payloads
        return Data(*head, born=self.born, path=path, attempt=self.attempt, void=void)

    def as_void(self) -> Data:
        """The same numbers without what they stood for."""
        head = self.lane, self.origin, self.tag, self.destinations, ()
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
    _add(out, *values)
    return bytes(out)


def _add(out: bytearray, *values: int) -> None:
    for value in values:
        while value > 0x7F:
            out.append(value & 0x7F | 0x80)
            value >>= 7
        out.append(value)


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
        data, pos = self._data, self._pos
        if pos < len(data) and data[pos] < 0x80:
            self._pos = pos + 1
            return data[pos]
        value, shift = 0, 0
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

    def known(self, ours: bytes) -> int:
        """A broker, by our number for it."""
        number = self.integer()
        if number > 255 or not ours[number]:
            raise BadFrame(f"{number} is the number of no broker that was named")
        return ours[number]

    def path(self, ours: bytes) -> bytes:
        """Brokers in a row, by our numbers for them."""
        path = self.raw().translate(ours)
        if 0 in path:
            raise BadFrame("a path over a broker that was not named")
        return path

    def payloads(self) -> tuple[bytes, ...]:
        """As many pieces of bytes as the next integer says."""
        count, data, pos, found = self.integer(), self._data, self._pos, []
        end = len(data)
        if count > end - pos:
            raise BadFrame(f"{count} messages in {end - pos} bytes")
        for _ in range(count):
            size = data[pos] if pos < end else 0x80
            if size < 0x80:
                pos += 1
            else:
                self._pos = pos
                size = self.integer()
                pos = self._pos
            stop = pos + size
            if stop > end:
                raise BadFrame("bytes are missing")
            found.append(data[pos:stop])
            pos = stop
        self._pos = pos
        return tuple(found)

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


def frame(kind: Kind, body: bytes | bytearray = b"") -> bytes:
    """The bytes of one frame."""
    head = bytearray()
    _add(head, kind, len(body))
    head += body
    return bytes(head)


class Hello(NamedTuple):
    """What both ends of a connection say first."""

    name: str
    incarnation: int
    life: int
    #: Tells one start of a broker from another; link numbers begin anew with each.
    start: int
    #: By number as the sender means it, the name of each broker that it knows.
    names: dict[int, str]
    #: By number, the version that it knows of each broker's interest.
    versions: dict[int, int]

    @property
    def bytes(self) -> bytes:
        pairs = [number for pair in self.versions.items() for number in pair]
        numbers = put(self.incarnation, self.life, self.start)
        tables = put_names(self.names), put(len(self.versions), *pairs)
        return frame(Kind.HELLO, b"".join((put(*VERSIONS), put_bytes(self.name.encode()), numbers, *tables)))


def read_hello(body: bytes) -> Hello:
    """Who is there; raises :class:`Refused` if it speaks another version, and then reads no further."""
    reader = Reader(body)
    lowest, highest = reader.integer(), reader.integer()
    if lowest > VERSIONS[1] or highest < VERSIONS[0]:
        theirs, ours = f"{lowest} to {highest}", f"{VERSIONS[0]} to {VERSIONS[1]}"
        raise Refused(f"one broker speaks versions {theirs} of the link protocol and the other {ours}")
    name = reader.text()
    incarnation, life, start = reader.integer(), reader.integer(), reader.integer()
    names = read_names(reader)
    versions = {reader.broker(): reader.integer() for _ in reader.repeat()}
    return Hello(name, incarnation, life, start, names, versions)


def put_names(names: dict[int, str]) -> bytes:
    """Numbers with the names of the brokers that they mean."""
    entries = (put(number) + put_bytes(name.encode()) for number, name in names.items())
    return b"".join((put(len(names)), *entries))


def read_names(reader: Reader) -> dict[int, str]:
    """Numbers with the names that the other side means by them; raises BadFrame."""
    names = {reader.broker(): reader.text() for _ in reader.repeat()}
    for name in names.values():
        if not 0 < len(name) <= LONGEST_NAME or not name.isprintable() or " " in name:
            raise BadFrame(f"{name[:LONGEST_NAME]!r} is no name of a broker")
    return names


def numbered(number: int, item: Numbered, now: float) -> list[bytes]:
    """DATA, VOID or NOTICE with its link number, in pieces; what has grown older since it came here says so.

    Payloads are long where there are many messages, so they are not copied here: whoever writes joins all pieces once.
    """
    body = bytearray()
    if isinstance(item, Notice):
        _add(body, number, item.topic, item.source, item.target, len(item.path))
        body += item.path
        body += item.body
        return [frame(Kind.NOTICE, body)]
    age_ms = int((now - item.born) * 1000)
    destinations = item.destinations
    _add(body, number, item.lane, item.origin, item.tag, age_ms if age_ms > 0 else 0, item.attempt, len(item.path))
    body += item.path
    _add(body, len(destinations))
    for pair in destinations.items():
        _add(body, *pair)
    _add(body, item.count)
    if not item.payloads:
        return [frame(Kind.VOID, body)]
    pieces = [b"", bytes(body)]
    size = len(body)
    for payload in item.payloads:
        length = put(len(payload))
        pieces.append(length)
        pieces.append(payload)
        size += len(length) + len(payload)
    pieces[0] = put(Kind.DATA, size)
    return pieces


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
    age_ms, attempt, path = integer(), integer(), reader.path(ours)
    if lane >> 4 >= LEVELS:
        raise BadFrame(f"lane {lane} is of no level")
    destinations = {reader.known(ours): integer() for _ in reader.repeat()}
    born = now - age_ms / 1000
    if kind is Kind.VOID:
        void = integer()
        if not 0 < void <= MOST or is_assured(lane):
            raise BadFrame("a void of nothing, of too much, or of messages that are never given up")
        return number, Data(lane, origin, tag, destinations, (), born=born, path=path, attempt=attempt, void=void)
    payloads = reader.payloads()
    if not 0 < len(payloads) <= MOST:
        raise BadFrame(f"a frame of {len(payloads)} messages")
    return number, Data(lane, origin, tag, destinations, payloads, born=born, path=path, attempt=attempt)


def readdressed(body: bytes, ours: bytes) -> bytes:
    """A body that begins with a broker, with our number for it."""
    reader = Reader(body)
    return put(reader.known(ours)) + reader.rest()


class Inbox:
    """Cuts what arrives on one connection into frames, however it comes in pieces."""

    __slots__ = ("_begun", "_needed")

    def __init__(self) -> None:
        #: The beginning of a frame, and how long it has to be before it is worth looking at again.
        self._begun = bytearray()
        self._needed = 0

    def take(self, data: bytes) -> Iterable[tuple[Kind, bytes]]:
        """The frames that are whole now; raises :class:`BadFrame` at the first that can be none."""
        pos = 0
        while self._begun:
            # only the frame that had begun is put together: what is behind it is cut where it is
            missing = self._needed - len(self._begun)
            self._begun += data[pos : pos + missing]
            pos += missing
            if pos > len(data):
                return
            found = _measure(self._begun, 0)
            if found is not None and found[2] <= len(self._begun):
                kind, start, _ = found
                body = bytes(self._begun[start:])
                self._begun.clear()
                yield kind, body
            else:
                self._needed = len(self._begun) + 1 if found is None else found[2]
        found = _measure(data, pos)
        while found is not None and found[2] <= len(data):
            kind, start, pos = found
            yield kind, data[start:pos]
            found = _measure(data, pos)
        if pos < len(data):
            self._begun += data[pos:]
            self._needed = len(self._begun) + 1 if found is None else found[2] - pos


def _measure(data: bytes | bytearray, begin: int) -> tuple[Kind, int, int] | None:
    """The kind of a frame, and where its body begins and ends; None while that cannot be told."""
    size, shift, pos = 0, 0, begin + 1
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
    try:
        kind = Kind(data[begin])
    except ValueError as error:
        raise BadFrame(str(error)) from None
    return kind, pos, pos + size
