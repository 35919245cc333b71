"""The integers, bytes and texts that frames of the link protocol are made of.

Integers are little endian in groups of seven bits (LEB128), so that small ones take a byte.  A broker is a number from
1 to 255 of whoever sends the frame (:mod:`tieline.overlay.links.directory`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

#: Every number means the same broker at both ends.
SAME: Final = bytes(range(256))


class BadFrame(Exception):
    """Bytes that are no frame of this protocol, or say what it does not allow; the link starts anew."""


def put(*values: int) -> bytes:
    """Integers, one behind the other."""
    out = bytearray()
    add(out, *values)
    return bytes(out)


def add(out: bytearray, *values: int) -> None:
    """Put integers behind what is there."""
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
        return self.take(self.integer())

    def take(self, size: int) -> bytes:
        """The next bytes, as many as are asked for; raises :class:`BadFrame` if there are fewer."""
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
        """As many turns as the next integer says."""
        return iter(range(self.count()))

    def count(self) -> int:
        """How many things follow; there cannot be more than there are bytes left."""
        count = self.integer()
        if count > len(self._data) - self._pos:
            raise BadFrame(f"{count} entries in {len(self._data) - self._pos} bytes")
        return count
