"""What is retained on one topic, as it travels between neighbours: the message or that there is none, and its version.

::

    names of brokers, then for each topic: flags, topic, clock, broker, [those who are sent it live], and then
    of a message: level and taxon, publisher, [user], age in milliseconds, [milliseconds until it expires],
        [properties], payload
    of none: milliseconds for which that is still to be remembered

Flags are the QoS, 4 for no message, 8 for an expiry (of none: it has expired, and nobody has cleared it), 16 for
properties, 32 for brokers that are sent it live, 64 for a user.  Brokers are places in the row of names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from tieline.core.message import Message, Origin
from tieline.overlay.frames.clock import MOST_CLOCK
from tieline.overlay.frames.fields import BadFrame, Reader, add, put, put_bytes
from tieline.overlay.frames.frame import LEVELS

_GONE, _EXPIRES, _PROPERTIES, _LIVE, _USER, _KNOWN = 4, 8, 16, 32, 64, 127
#: Topics of one frame, with their messages or alone, and marks of topics: of each, far more than is said
#: at once.  A frame is looked at in one go.
MOST_TOPICS: Final = 256
MOST_MARKS: Final = 8_192
#: Brokers that one frame may name.
_MOST_NAMES: Final = 255
#: Called with a broker, a publisher and its user.
OriginOf = Callable[[str, str, str | None], Origin]


class RetainedItem(NamedTuple):
    """A topic, the newest write of it that somebody knows, and what is retained since."""

    topic: bytes
    clock: int
    #: Who accepted the write.
    broker: str
    #: Those to whom that broker has sent it, because they wanted it.
    live: tuple[str, ...]
    #: None if nothing is retained.
    message: Message | None
    qos: int = 0
    #: For how long it is to be remembered that nothing is; and whether nobody has cleared it, and its time is over.
    left_s: float = 0.0
    has_expired: bool = False


class ItemsWriter:
    """Items as they grow to the body of one frame."""

    __slots__ = ("_body", "_names", "count")

    def __init__(self) -> None:
        self._names: dict[str, int] = {}
        self._body = bytearray()
        self.count = 0

    @property
    def size(self) -> int:
        """Bytes, without the names."""
        return len(self._body)

    def add(self, item: RetainedItem, now: float) -> None:
        """Put an item behind the others."""
        message, body = item.message, self._body
        flags = (_LIVE if item.live else 0) | (item.qos if message is None else message.qos)
        user = None
        if message is None:
            flags |= _GONE | (_EXPIRES if item.has_expired else 0)
        else:
            user = None if message.origin.owner is None else message.origin.owner.user
            flags |= _EXPIRES if message.expires is not None else 0
            flags |= (_PROPERTIES if message.properties else 0) | (_USER if user is not None else 0)
        add(body, flags, len(item.topic))
        body += item.topic
        add(body, item.clock, self._place(item.broker))
        if item.live:
            add(body, len(item.live), *(self._place(name) for name in item.live))
        if message is None:
            add(body, max(0, int(item.left_s * 1000)))
        else:
            add(body, message.level << 2 | message.taxon)
            body += put_bytes(message.origin.client.encode())
            if user is not None:
                body += put_bytes(user.encode())
            add(body, max(0, int((now - message.at) * 1000)))
            if message.expires is not None:
                add(body, max(0, int((message.expires - now) * 1000)))
            if message.properties:
                body += put_bytes(message.properties)
            add(body, len(message.payload))
            body += message.payload
        self.count += 1

    def add_version(self, topic: bytes, clock: int, broker: str) -> None:
        """Put nothing but a topic and its version behind the others."""
        add(self._body, len(topic))
        self._body += topic
        add(self._body, clock, self._place(broker))
        self.count += 1

    def add_mark(self, mark: int, clock: int, broker: str) -> None:
        """Put the mark of a topic and its version behind the others."""
        self._body += mark.to_bytes(8, "big")
        add(self._body, clock, self._place(broker))
        self.count += 1

    def _place(self, name: str) -> int:
        return self._names.setdefault(name, len(self._names))

    def done(self) -> bytes:
        """The body as it is now."""
        names = (put_bytes(name.encode()) for name in self._names)
        return b"".join((put(len(self._names)), *names, self._body))


def _read_names(reader: Reader) -> list[str]:
    count = reader.count()
    names = [reader.text() for _ in range(min(count, _MOST_NAMES))]
    if count > _MOST_NAMES or not all(names):
        raise BadFrame(f"{count} brokers that retained something")
    return names


def _named(names: Sequence[str], place: int) -> str:
    if place >= len(names):
        raise BadFrame(f"a broker in place {place} of {len(names)}")
    return names[place]


def _clock(reader: Reader) -> int:
    clock = reader.integer()
    if not 0 < clock < MOST_CLOCK:
        raise BadFrame(f"a clock that shows {clock}")
    return clock


def read_items(reader: Reader, origin_of: OriginOf, now: float) -> Iterable[RetainedItem]:
    """The items of a body, one after the other; raises BadFrame."""
    names = _read_names(reader)
    for _ in _few(reader, MOST_TOPICS):
        yield _read_item(reader, names, origin_of, now)


def _few(reader: Reader, most: int) -> Iterator[int]:
    """Once for each thing that a body holds, while there are not too many; raises BadFrame."""
    number = 0
    while not reader.is_over:
        if number == most:
            raise BadFrame(f"more than {most} retained messages at once")
        number += 1
        yield number


def _read_item(reader: Reader, names: Sequence[str], origin_of: OriginOf, now: float) -> RetainedItem:
    flags, topic = reader.integer(), reader.raw()
    qos = flags & 3
    if flags > _KNOWN or qos == 3:
        raise BadFrame(f"a retained message with flags {flags}")
    clock, broker = _clock(reader), _named(names, reader.integer())
    live = tuple(_named(names, reader.integer()) for _ in reader.repeat()) if flags & _LIVE else ()
    if flags & _GONE:
        return RetainedItem(topic, clock, broker, live, None, qos, reader.integer() / 1000, bool(flags & _EXPIRES))
    levels = reader.integer()
    level, taxon = levels >> 2, levels & 3
    if level >= LEVELS:
        raise BadFrame(f"a retained message of level {level}")
    client = reader.text()
    origin = origin_of(broker, client, reader.text() if flags & _USER else None)
    at = now - reader.integer() / 1000
    expires = now + reader.integer() / 1000 if flags & _EXPIRES else None
    properties = reader.raw() if flags & _PROPERTIES else b""
    payload = reader.raw()
    if not payload:
        raise BadFrame("a retained message without a payload")
    message = Message(topic, payload, qos, True, properties, expires, origin, level, at, 0, taxon)
    return RetainedItem(topic, clock, broker, live, message, qos)


def read_versions(reader: Reader) -> list[tuple[bytes, int, str]]:
    """Topics with the clocks and brokers of their versions."""
    names = _read_names(reader)
    return [(reader.raw(), _clock(reader), _named(names, reader.integer())) for _ in _few(reader, MOST_TOPICS)]


def read_marks(reader: Reader) -> dict[int, tuple[int, str]]:
    """Clocks and brokers of versions, by the marks of their topics."""
    names = _read_names(reader)
    found = {}
    for _ in _few(reader, MOST_MARKS):
        mark = int.from_bytes(reader.take(8), "big")
        found[mark] = _clock(reader), _named(names, reader.integer())
    return found
