"""Is what arrived what was sent?  Every publisher's messages, in order, with none missing in between."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tieline.bench.load.failure import Garbled
from tieline.bench.load.stream import MARK_BYTES, Stream
from tieline.wire.topics import matches


def check_deliveries(data: bytes, topic_filter: str, streams: Sequence[Stream]) -> int:
    """Compare a subscriber's first packets with what each publisher sent; returns the number compared.

    ``data`` holds whole packets from the very first one on, so each publisher's messages that match the
    filter must appear from the beginning of its stream, gaplessly, interleaved in any way.
    """
    layout = streams[0].layout
    wanted = [_matching(stream, topic_filter) for stream in streams]
    count = len(data) // layout.packet
    for number in range(count):
        packet = data[number * layout.packet : (number + 1) * layout.packet]
        payload = packet[layout.payload]
        try:
            publisher, position = int(payload[:4], 16), int(payload[4:MARK_BYTES], 16)
            stream, expected = streams[publisher], next(wanted[publisher])
        except (ValueError, IndexError, StopIteration) as error:
            raise Garbled(f"packet {number} is none that was sent: {packet[:32].hex(' ')}") from error
        if position != expected:
            raise Garbled(f"publisher {publisher}: message {expected} was due, message {position} came")
        sent = stream.data[position * layout.packet : (position + 1) * layout.packet]
        if not packet.startswith(layout.head) or packet[layout.topic] != sent[layout.topic]:
            raise Garbled(f"publisher {publisher}, message {position}: header or topic differs")
        if payload != sent[layout.payload]:
            raise Garbled(f"publisher {publisher}, message {position}: payload differs")
    return count


def _matching(stream: Stream, topic_filter: str) -> Iterator[int]:
    """Positions of the messages that the filter selects, round and round."""
    while True:
        found = False
        for position in range(stream.count):  # lazily: a stream may have a hundred thousand topics
            if matches(topic_filter, stream.topic(position)):
                found = True
                yield position
        if not found:
            return
