"""Cuts what arrives on one connection into frames."""

from __future__ import annotations

from collections.abc import Iterator

from tieline.overlay.frames.fields import BadFrame
from tieline.overlay.frames.frame import LARGEST, Kind


class Inbox:
    """Cuts what arrives on one connection into frames, however it comes in pieces."""

    __slots__ = ("_begun", "_needed")

    def __init__(self) -> None:
        #: The beginning of a frame, and how long it has to be before it is worth looking at again.
        self._begun = bytearray()
        self._needed = 0

    def take(self, data: bytes) -> Iterator[tuple[Kind, bytes]]:
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
