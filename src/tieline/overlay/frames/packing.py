"""What is written to a thin link, compressed: telemetry shrinks to a fraction, since one message is like the next.

Each direction of a connection is one deflate stream, cut where something was written: PACKED frames carry the pieces,
and whole frames come out of each.  Whoever sends decides for each write whether to pack it, so packing begins and ends
while the link is up.  Memory is bounded by the windows.  A piece that would become longer than a sender makes it ends
the connection: nobody fills our memory with a few bytes.
"""

from __future__ import annotations

import zlib
from typing import Final

from tieline.overlay.frames.fields import BadFrame
from tieline.overlay.frames.frame import Kind, frame

#: Bytes that are packed together at most, and what they are packed with: 4 kB of window, which with its tables takes
#: about 50 kB for each link, and is enough for one message to be found in the next.
MOST: Final = 1 << 16
_LEVEL, _WINDOW, _MEMORY = 6, -12, 6
#: A raw stream of any window is read.
_ANY: Final = -15
#: What is packed into less than this is not worth the head.
_LEAST: Final = 48
#: How each piece ends, which need not be sent.
_END: Final = b"\x00\x00\xff\xff"


class Packer:
    """Compresses what is written to one connection."""

    __slots__ = ("_stream", "bytes_in", "bytes_out")

    def __init__(self) -> None:
        self._stream = zlib.compressobj(_LEVEL, zlib.DEFLATED, _WINDOW, _MEMORY)
        #: Bytes before and after.
        self.bytes_in = self.bytes_out = 0

    def pack(self, data: bytes) -> bytes:
        """Whole frames as one packed frame, or as they are where that is better."""
        if not _LEAST <= len(data) <= MOST:
            return data
        packed = self._stream.compress(data) + self._stream.flush(zlib.Z_SYNC_FLUSH)
        whole = frame(Kind.PACKED, packed.removesuffix(_END))
        self.bytes_in += len(data)
        self.bytes_out += len(whole)
        return whole


class Unpacker:
    """Undoes what the packer at the other end has done."""

    __slots__ = ("_stream",)

    def __init__(self) -> None:
        self._stream = zlib.decompressobj(_ANY)

    def unpack(self, packed: bytes) -> bytes:
        """What was packed; raises BadFrame where it is nothing that a packer makes."""
        try:
            data = self._stream.decompress(packed + _END, MOST + 1)
        except zlib.error as error:
            raise BadFrame(f"what was packed cannot be unpacked: {error}") from None
        if len(data) > MOST or self._stream.unconsumed_tail:
            raise BadFrame(f"a packed frame that becomes more than {MOST} bytes")
        if self._stream.eof:
            raise BadFrame("a packed frame that ends its stream")
        return data
