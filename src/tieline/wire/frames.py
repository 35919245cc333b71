"""A stream cut into packets: where one ends, an incremental decoder that never blocks, and the head of a PUBLISH.

A broker that passes bytes on needs to know where the topic stands and where the packet ends, and nothing else.  What is
unusual about a packet is not judged here: it is decoded (:mod:`tieline.wire.decode`), which finds words for it.

A listener may be configured with the extra header byte of the priority-QoS paper, so that every packet, in both
directions, carries one byte more: it follows the Remaining Length, is not counted by it, and holds the level in its two
highest bits; the other six are reserved and ignored.
"""

from __future__ import annotations

from typing import Final

from tieline.wire.decode import decode
from tieline.wire.errors import Malformed, ProtocolError, TooLarge, Violation
from tieline.wire.packet_type import PacketType
from tieline.wire.packets import Connect, Packet

#: No packet is larger than this; the limit that matters was applied when the packet was made.
_NO_LIMIT = 1 << 60
#: Pieces of this length are kept as they are; shorter ones are gathered.
WHOLE_PIECE: Final = 4_096


def measure(data: bytes | bytearray, pos: int, limit: int, version: int = 5) -> tuple[int, int] | None:
    """Where the body of the packet at ``pos`` starts and ends, or ``None`` while its length is incomplete.

    The end may lie beyond the data.  A packet above ``limit`` bytes, header included, is refused as soon as its
    length is read, so nobody buffers it.  Only MQTT 5 demands the shortest form of the length [MQTT-1.5.5-1];
    3.1.1 clients that pad it exist.
    """
    size = len(data)
    index = pos + 1
    length = shift = 0
    while index < size:
        byte = data[index]
        index += 1
        length |= (byte & 0x7F) << shift
        if byte < 0x80:
            if not byte and shift and version == 5:
                raise Malformed("a remaining length is longer than its value needs", "MQTT-1.5.5-1")
            end = index + length
            if end - pos > limit:
                raise TooLarge(f"a packet of {end - pos} bytes is above the limit of {limit}", "MQTT-3.2.2-15")
            return index, end
        shift += 7
        if shift == 28:
            raise Malformed("a remaining length is longer than four bytes", "2.1.4")
    return None


def find_frame(data: bytes | bytearray, pos: int, limit: int, version: int = 5) -> tuple[int, int] | None:
    """Where the body of the packet at ``pos`` starts and ends, or ``None`` when more bytes must come first."""
    found = measure(data, pos, limit, version)
    return found if found is not None and found[1] <= len(data) else None


class Framer:
    """An incremental decoder for one direction of a connection, for clients, tests and fuzzers.

    A ``version`` of 0 means the side that hears the client: the first packet must be a CONNECT, and the
    version is the one that it names.
    """

    def __init__(self, limit: int, version: int = 0) -> None:
        self.limit = limit
        self.version = version
        #: The refusal that ended the stream; nothing is decoded after it.
        self.error: ProtocolError | None = None
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[Packet]:
        """Every packet that is now complete.

        Packets before a bad one are never lost: they are returned, and the refusal is raised by the next
        call.  It is raised at once when no packet came before it.
        """
        packets: list[Packet] = []
        if self.error is None:
            self._buffer += data
            try:
                self._take(packets)
            except ProtocolError as error:
                self.error = error
                self._buffer.clear()
        if self.error is not None and not packets:
            raise self.error
        return packets

    def _take(self, packets: list[Packet]) -> None:
        buffer = self._buffer
        pos = 0
        try:
            while (frame := find_frame(buffer, pos, self.limit, self.version)) is not None:
                start, end = frame
                packets.append(self._decode(buffer[pos], bytes(buffer[start:end])))
                pos = end
        finally:
            del buffer[:pos]

    def _decode(self, first: int, body: bytes) -> Packet:
        if not self.version and first >> 4 != PacketType.CONNECT:
            raise Violation("the first packet is not a CONNECT", "MQTT-3.1.0-1")
        packet = decode(first, body, self.version)
        if isinstance(packet, Connect):
            self.version = packet.version
        return packet


class Unparsed:
    """Bytes of a connection that wait for the end of their packet, or for their turn.

    They are kept as they arrived and copied once, when the packet is complete.  Small pieces are gathered: a sender of
    single bytes must not make an object of each.
    """

    __slots__ = ("_pieces", "_size")

    def __init__(self) -> None:
        self._pieces: list[bytes | bytearray] = []
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def add(self, data: bytes) -> None:
        """Keep bytes that have arrived: small ones are joined, large ones stay whole."""
        self._size += len(data)
        if len(data) >= WHOLE_PIECE:
            self._pieces.append(data)
        elif self._pieces and isinstance(self._pieces[-1], bytearray):
            self._pieces[-1] += data
        elif data:
            self._pieces.append(bytearray(data))

    def take(self, more: bytes = b"") -> bytes:
        """Everything, with what has just arrived behind it; nothing is left."""
        data = b"".join((*self._pieces, more))
        self.clear()
        return data

    def clear(self) -> None:
        self._pieces.clear()
        self._size = 0


def publish_head(data: bytes, pos: int, size: int) -> tuple[int, int, int] | None:
    """Where the topic of the PUBLISH at ``pos`` begins and ends, and where the packet ends.

    The packet may end beyond ``size``, the length of the data.  None if its length has a fourth byte or an unusual
    form, if its header is not complete, or if the topic does not fit into it.
    """
    body = pos + 2
    if body + 2 >= size:
        return None
    length = data[pos + 1]
    if length > 127:
        more = data[body]
        body += 1
        length = (length & 127) | (more & 127) << 7
        if more > 127:
            last = data[body]
            body += 1
            if not 0 < last < 128:
                return None
            length |= last << 14
        elif not more:
            return None
        if body + 1 >= size:
            return None
    start = body + 2
    top = start + (data[body] << 8 | data[body + 1])
    end = body + length
    return (start, top, end) if top <= end else None


def stamp(packets: bytes, level: int) -> bytes:
    """Whole packets, each with the extra byte."""
    extra = bytes((level << 6,))
    stamped: list[bytes] = []
    pos = 0
    while pos < len(packets):
        found = measure(packets, pos, _NO_LIMIT)
        if found is None:
            break
        body, end = found
        stamped += (packets[pos:body], extra, packets[body:end])
        pos = end
    return b"".join(stamped)


def level_of(extra: int) -> int:
    """The level that an extra byte carries."""
    return extra >> 6
