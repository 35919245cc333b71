"""Long frames in pieces, so that what is urgent waits for a piece of them at most.

The body of a DATA, VOID or NOTICE, without its link number and behind its kind, is sent as SEGMENT frames, and other
frames may go between them.  Each names a slot, one for each level, and whether it is the first for it: whatever had
begun in that slot is given up then.  The link number comes with the last piece, because what was not sent whole was
not sent.

What a broker wants can be long, too, and goes before data.  So a long INTEREST has a slot of its own, and data may go
between its pieces; other announcements, which are short, may overtake it, and another INTEREST does not.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from tieline.overlay.frames.fields import BadFrame, Reader, put
from tieline.overlay.frames.frame import LARGEST, LEVELS, Kind, Numbered, frame, write

#: Bytes of a piece where there is not much room.
SEGMENT: Final = 1_400
#: What a frame takes beside what it carries, for so many destinations as there are, at most.
FRAME: Final = 8_192
#: The slot of an INTEREST, behind those of the levels.
_INTEREST: Final = LEVELS
#: What is shorter than this is not left for a piece of its own.
_CRUMB: Final = 64


class Segment:
    """Some bytes of something that is sent in pieces."""

    __slots__ = ("_data", "_slot", "is_last", "item")

    def __init__(self, item: Numbered, slot: int, data: bytes, *, is_last: bool) -> None:
        #: That of which it is a piece.
        self.item = item
        self.is_last = is_last
        self._slot = slot
        self._data = data

    def frame(self, number: int) -> bytes:
        """As it is sent; only the last one says its link number."""
        if self.is_last:
            return frame(Kind.LAST, put(number, self._slot) + self._data)
        return frame(Kind.SEGMENT, put(self._slot) + self._data)


class Cut:
    """Something that is sent in pieces, and how much of it has gone."""

    __slots__ = ("_data", "_gone", "_item")

    def __init__(self, item: Numbered) -> None:
        self._item = item
        #: Written when the first piece goes, because only then is it known how old it is.
        self._data = b""
        self._gone = 0

    @property
    def left(self) -> int:
        """Bytes that have not gone yet, once some have."""
        return len(self._data) - self._gone

    def next(self, level: int, most: int, now: float) -> Segment:
        """As many of the next bytes as may go, or a few more if they are the last."""
        is_first = not self._gone
        if is_first:
            pieces: list[bytes] = [b""]
            kind, _size = write(self._item, pieces, now)
            pieces[0] = put(kind)
            self._data = b"".join(pieces)
        end = self._gone + most
        if end + _CRUMB >= len(self._data):
            end = len(self._data)
        data = self._data[self._gone : end]
        self._gone = end
        return Segment(self._item, level << 1 | is_first, data, is_last=end == len(self._data))


class LongInterests:
    """Long announcements of what brokers want, in pieces, one after the other."""

    __slots__ = ("_bodies", "_gone")

    def __init__(self) -> None:
        self._bodies: deque[bytes] = deque()
        #: Bytes of the first that have gone.
        self._gone = 0

    def __len__(self) -> int:
        return len(self._bodies)

    def add(self, whole: bytes) -> None:
        """Have an INTEREST sent in pieces, behind those that wait."""
        begin = 1
        while whole[begin] & 0x80:
            begin += 1
        self._bodies.append(whole[begin + 1 :])

    def next(self, most: int) -> bytes:
        """The next piece as a frame."""
        body, begin = self._bodies[0], self._gone
        data = body[begin : begin + most]
        slot = put(_INTEREST << 1 | (not begin))
        if begin + most < len(body):
            self._gone += most
            return frame(Kind.SEGMENT, slot + data)
        self._bodies.popleft()
        self._gone = 0
        return frame(Kind.REST, slot + data)


class Gathering:
    """What has come in pieces over one connection, and is not whole yet."""

    __slots__ = ("_begun", "_most", "_since")

    def __init__(self, most: int) -> None:
        #: The longest that is gathered.
        self._most = most
        self._begun: tuple[bytearray, ...] = tuple(bytearray() for _ in range(LEVELS + 1))
        #: When the first piece of each came: its age was true then.
        self._since = [0.0] * (LEVELS + 1)

    @property
    def held(self) -> int:
        """Bytes that have come and are of no use yet."""
        return sum(map(len, self._begun))

    def add(self, body: bytes, now: float) -> None:
        """Keep a piece that is not the last one."""
        reader = Reader(body)
        self._add(reader, now)

    def _add(self, reader: Reader, now: float) -> int:
        slot = reader.integer()
        level = slot >> 1
        if level > _INTEREST:
            raise BadFrame(f"a piece for slot {slot}")
        begun = self._begun[level]
        if slot & 1:
            begun.clear()
            self._since[level] = now
        elif not begun:
            raise BadFrame("a piece of something that did not begin")
        begun += reader.rest()
        most = LARGEST if level == _INTEREST else self._most
        if len(begun) > most:
            raise BadFrame(f"a frame of more than {most} bytes, in pieces")
        return level

    def finish(self, body: bytes, now: float) -> tuple[Kind, bytes, float]:
        """The last piece has come: the kind and the body of the whole, with its link number, and when it began."""
        reader = Reader(body)
        number = reader.integer()
        level = self._add(reader, now)
        if level == _INTEREST:
            raise BadFrame("an INTEREST with a link number")
        begun = self._begun[level]
        kind = begun[0] if begun else 0
        if kind not in {Kind.DATA, Kind.VOID, Kind.NOTICE}:
            raise BadFrame(f"a frame of kind {kind} in pieces")
        whole = b"".join((put(number), memoryview(begun)[1:]))
        begun.clear()
        return Kind(kind), whole, self._since[level]

    def interest(self, body: bytes, now: float) -> bytes:
        """The last piece of an INTEREST has come: its body."""
        if self._add(Reader(body), now) != _INTEREST:
            raise BadFrame("no INTEREST, and without a link number")
        whole = bytes(self._begun[_INTEREST])
        self._begun[_INTEREST].clear()
        return whole
