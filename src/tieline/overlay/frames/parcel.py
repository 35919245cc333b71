"""What one number of a stream carries: items of the core as bytes.

::

    0, level + 4 x moves, publisher, messages: flags, taxon, [clock, user, marks], [topic],
                                   [milliseconds until it expires], [properties], payload
    1, version, level, publisher, QoS 0 packets as they came, back to back

Flags are the QoS, 4 for retain, 8 for an expiry, 16 for properties, 32 for the topic of the message before and 64 for
what is retained everywhere: the clock of the write, the user on whose account it is kept, and marks of all the brokers
to which the message is sent; without any, they are those of the message before.  Levels are those that the accepting
broker gave; moves say how often the publisher's session had come to another broker by then.  A publisher of another
region stands behind the name of that and U+0000.  Messages of one publisher that leave together are one parcel: who
they are from is said once, and the ends keep one number for all of them.  In front of it may stand for which groups it
is (:mod:`tieline.overlay.frames.naming`).  Without any byte, it is the place of something that was withheld on the way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple
from zlib import crc32

from tieline.core.message import Bundle, Burst, Message, Origin
from tieline.overlay.frames.clock import MOST_CLOCK
from tieline.overlay.frames.fields import BadFrame, Reader, put, put_bytes
from tieline.overlay.frames.frame import LEVELS
from tieline.overlay.frames.naming import NAMED, SEVERAL, parts_of, put_several
from tieline.wire.frames import publish_head

_RETAIN, EXPIRES, _PROPERTIES, SAME_TOPIC, _CLOCK, _FLAGS = 4, 8, 16, 32, 64, 127
#: A parcel of several messages is no longer than this: what is sent again is not much more than what was missing.
_ENOUGH: Final = 8_192
#: Messages of one parcel: it is routed in one go.
_MOST: Final = 512
#: The kind of a parcel that is no message, but about one: :mod:`tieline.overlay.sessions.errands`.
ERRAND: Final = 9
#: Bytes of the mark of a broker.
_MARK: Final = 3
#: In the place of what a peer may not have.
WITHHELD: Final = b""


class Stamp(NamedTuple):
    """What is said of a message that is retained everywhere."""

    clock: int
    user: str
    #: Of the brokers to which it is sent.
    marks: bytes


def mark_of(name: str) -> bytes:
    """A broker in a few bytes: two of a hundred have the same mark once in three thousand clusters."""
    return crc32(name.encode()).to_bytes(4, "big")[-_MARK:]


def marks_of(names: Iterable[str]) -> bytes:
    """Marks of some brokers, or something else if there are none: nothing at all means those of the message before."""
    return b"".join([mark_of(name) for name in names]) or b"-"


def marks_in(marks: bytes) -> frozenset[bytes]:
    """The marks that :func:`mark_of` made of names, one by one."""
    return frozenset(marks[at : at + _MARK] for at in range(0, len(marks), _MARK))


class Run(NamedTuple):
    """QoS 0 packets, as one publisher sent them."""

    packets: bytes
    version: int
    origin: Origin
    level: int


class Writing:
    """A parcel of messages of one publisher and one level, as it grows."""

    __slots__ = ("_level", "_marks", "_messages", "_origin", "_parts", "_size", "_topic")

    def __init__(self, first: Message) -> None:
        self._marks = b""
        self._origin = first.origin
        self._level = first.level
        self._parts = [put(0, first.level + LEVELS * first.origin.moves), put_bytes(first.origin.publisher.encode())]
        self._size = self._messages = 0
        self._topic: bytes | None = None

    def takes(self, message: Message) -> bool:
        """Whether a message fits behind the others."""
        is_alike = message.origin is self._origin and message.level == self._level
        return is_alike and self._messages < _MOST and self._size + len(message.payload) <= _ENOUGH

    def add(self, message: Message, now: float, clock: int = 0, marks: bytes = b"") -> None:
        """Write a message behind the others; with a clock it is retained everywhere, and sent to the brokers marked."""
        topic, payload, parts = message.topic, message.payload, self._parts
        flags = message.qos | (_RETAIN if message.retain else 0) | (_CLOCK if clock else 0)
        if topic == self._topic and not message.properties and message.expires is None and not clock:
            parts.append(put(flags | SAME_TOPIC, message.taxon, len(payload)))
        else:
            is_same = topic == self._topic
            self._topic = topic
            expires = message.expires
            flags |= (SAME_TOPIC if is_same else 0) | (_PROPERTIES if message.properties else 0)
            parts.append(put(flags | (0 if expires is None else EXPIRES), message.taxon))
            if clock:
                owner = message.origin.owner
                parts.append(put(clock))
                parts.append(put_bytes(b"" if owner is None or owner.user is None else owner.user.encode()))
                parts.append(put_bytes(b"" if marks == self._marks else marks))
                self._marks = marks
            if not is_same:
                parts.append(put_bytes(topic))
            if expires is not None:
                parts.append(put(max(0, int((expires - now) * 1000))))
            if message.properties:
                parts.append(put_bytes(message.properties))
            parts.append(put(len(payload)))
        parts.append(payload)
        self._messages += 1
        self._size += len(payload) + len(topic) + len(message.properties)

    def done(self) -> bytes:
        """The parcel as it is now, with all messages that were added."""
        return b"".join(self._parts)


def write_run(item: Burst | Bundle) -> bytes:
    """QoS 0 packets as bytes."""
    publisher = put_bytes(item.origin.publisher.encode())
    return b"".join((put(1, item.version, item.level), publisher, item.packets))


def read_parcel(
    parcel: bytes, origin_of: Callable[[str], Origin], now: float, stamps: dict[Message, Stamp] | None = None
) -> list[Message] | Run:
    """What a parcel holds; raises BadFrame.  ``origin_of`` knows publishers by their client ids.

    What is retained everywhere is put into ``stamps``.
    """
    reader = Reader(parcel)
    kind = reader.integer()
    if kind == 1:
        version, level, origin = reader.integer(), reader.integer(), origin_of(reader.text())
        if version not in (4, 5) or level >= LEVELS:
            raise BadFrame(f"packets of version {version} and level {level}")
        return Run(reader.rest(), version, origin, level)
    if kind:
        raise BadFrame(f"a parcel of kind {kind}")
    moves, level = divmod(reader.integer(), LEVELS)
    origin = origin_of(reader.text())
    if moves:
        origin = origin.moved(moves)
    topic: bytes | None = None
    messages: list[Message] = []
    marks = b""
    messages = []
    while not reader.is_over:
        if len(messages) == _MOST:
            raise BadFrame(f"a parcel of more than {_MOST} messages")
        flags, taxon = reader.integer(), reader.integer()
        if flags > _FLAGS or flags & 3 == 3 or taxon >= LEVELS:
            raise BadFrame(f"a message with flags {flags} and taxon {taxon}")
        clock, user = 0, ""
        if flags & _CLOCK:
            clock, user, own = reader.integer(), reader.text(), reader.raw()
            marks = own or marks
        if not flags & SAME_TOPIC:
            topic = reader.raw()
        elif topic is None:
            raise BadFrame("a first message with the topic of the one before")
        expires = now + reader.integer() / 1000 if flags & EXPIRES else None
        properties = reader.raw() if flags & _PROPERTIES else b""
        retain = bool(flags & _RETAIN)
        payload = reader.raw()
        message = Message(topic, payload, flags & 3, retain, properties, expires, origin, level, now, 0, taxon)
        messages.append(message)
        if clock:
            if not retain or clock >= MOST_CLOCK:
                raise BadFrame(f"a message with the clock {clock}")
            if stamps is not None:
                stamps[message] = Stamp(clock, user, marks)
    return messages


class Parts(NamedTuple):
    """A message in a parcel as it is written there."""

    flags: int
    taxon: int
    #: Where it is retained everywhere: when it was written, by whom and for which brokers.
    stamp: bytes
    marks: bytes
    #: None where it is that of the message before.
    topic: bytes | None
    #: Milliseconds until it expires, if it does.
    left_ms: int
    #: Both with their lengths.
    properties: bytes
    payload: bytes

    def put_together(self, topic: bytes) -> tuple[bytes, ...]:
        """The same, with its topic."""
        expiry = put(self.left_ms) if self.flags & EXPIRES else b""
        head = put(self.flags & ~SAME_TOPIC, self.taxon)
        return head, self.stamp, put_bytes(topic), expiry, self.properties, self.payload


def take_apart(reader: Reader, marks: bytes) -> Parts:
    """The next message of a parcel, as it is written; with the marks of the one before, if it has none."""
    flags, taxon = reader.integer(), reader.integer()
    if flags > _FLAGS:
        raise BadFrame(f"a message with flags {flags}")
    stamp = b""
    if flags & _CLOCK:
        stamp = put(reader.integer()) + put_bytes(reader.raw())
        marks = reader.raw() or marks
        stamp += put_bytes(marks)
    topic = None if flags & SAME_TOPIC else reader.raw()
    left_ms = reader.integer() if flags & EXPIRES else 0
    properties = put_bytes(reader.raw()) if flags & _PROPERTIES else b""
    return Parts(flags, taxon, stamp, marks, topic, left_ms, properties, put_bytes(reader.raw()))


def count_packets(packets: bytes) -> int:
    """How many packets there are, as far as they are some."""
    pos, count, size = 0, 0, len(packets)
    while pos < size and (found := publish_head(packets, pos, size)) is not None:
        pos, count = found[2], count + 1
    return count


def contents(parcel: bytes) -> tuple[bytes, int]:
    """The topic of the first message in a parcel, and how many there are; of what cannot be understood, one."""
    topic, count = b"", 0

    def note(found: bytes) -> bool:
        nonlocal topic, count
        topic = found if not count else topic
        count += 1
        return True

    _kept, removed = only_allowed(parcel, note)
    return topic, count + sum(removed.values())


def only_allowed(parcel: bytes, is_allowed: Callable[[bytes], bool]) -> tuple[bytes, Counter[bytes]]:
    """What is left of a parcel when only messages of some topics may pass, and by topic how many may not.

    What cannot be understood is withheld, for nobody knows what it says.
    """
    if not parcel:
        return parcel, Counter()
    try:
        if parcel[0] in {NAMED, SEVERAL}:
            return _allowed_parts(parcel, is_allowed)
        reader = Reader(parcel)
        kind = reader.integer()
        if kind == 1:
            return _allowed_run(parcel, reader, is_allowed)
        if kind == ERRAND:
            return _allowed_errand(parcel, reader, is_allowed)
        if kind:
            raise BadFrame(f"a parcel of kind {kind}")
        return _allowed_messages(parcel, reader, is_allowed)
    except BadFrame:
        return WITHHELD, Counter({b"": 1})


def _allowed_parts(parcel: bytes, is_allowed: Callable[[bytes], bool]) -> tuple[bytes, Counter[bytes]]:
    """The same of parcels with something in front of them, or of several in the place of one."""
    kept: list[bytes] = []
    removed: Counter[bytes] = Counter()
    for front, inner in parts_of(parcel):
        if inner[:1] not in {b"\x00", b"\x01"}:
            raise BadFrame("parcels in parcels")
        rest, gone = only_allowed(inner, is_allowed)
        removed += gone
        if rest:
            kept.append(front + rest)
    if not removed:
        return parcel, removed
    return (put_several(kept) if kept else WITHHELD), removed


def _allowed_errand(parcel: bytes, reader: Reader, is_allowed: Callable[[bytes], bool]) -> tuple[bytes, Counter[bytes]]:
    """An errand passes; the message that it comes with only if its topic may."""
    reader.integer()
    reader.raw()
    message = reader.rest()
    kept, removed = only_allowed(message, is_allowed)
    return (parcel if not removed else parcel[: len(parcel) - len(message)] + kept), removed


def _allowed_messages(
    parcel: bytes, reader: Reader, is_allowed: Callable[[bytes], bool]
) -> tuple[bytes, Counter[bytes]]:
    kept = [put(0, reader.integer()), put_bytes(reader.raw())]
    head = len(kept)
    removed: Counter[bytes] = Counter()
    topic = marks = b""
    while not reader.is_over:
        message = take_apart(reader, marks)
        marks, topic = message.marks, topic if message.topic is None else message.topic
        if is_allowed(topic):
            # the one before may be missing, so each says its topic
            kept += message.put_together(topic)
        else:
            removed[topic] += 1
    if not removed:
        return parcel, removed
    return (b"".join(kept) if len(kept) > head else WITHHELD), removed


def _allowed_run(parcel: bytes, reader: Reader, is_allowed: Callable[[bytes], bool]) -> tuple[bytes, Counter[bytes]]:
    reader.integer()
    reader.integer()
    reader.raw()
    packets = reader.rest()
    head = parcel[: len(parcel) - len(packets)]
    kept: list[bytes] = []
    removed: Counter[bytes] = Counter()
    pos, size = 0, len(packets)
    while pos < size:
        found = publish_head(packets, pos, size)
        if found is None or found[2] > size:
            raise BadFrame("packets that are none")
        start, top, end = found
        topic = packets[start:top]
        if is_allowed(topic):
            kept.append(packets[pos:end])
        else:
            removed[topic] += 1
        pos = end
    if not removed:
        return parcel, removed
    return (head + b"".join(kept) if kept else WITHHELD), removed
