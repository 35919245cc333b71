"""What becomes of messages that may expire while a parcel with them waits at its origin, or is on its way.

A parcel says in how many milliseconds each of its messages expires, as it was when the parcel was written.  Whoever has
kept it since says so again: the origin when it sends it, which lets go of what has expired meanwhile; and the
destination when it has come, where clients get what is left and the rest is dropped as it is in their queues.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from tieline.overlay.frames.fields import BadFrame, Reader, put, put_bytes
from tieline.overlay.frames.naming import ELSEWHERE, SEVERAL, parts_of, put_several
from tieline.overlay.frames.parcel import EXPIRES, take_apart


def aged(parcel: bytes, elapsed_s: float) -> bytes:
    """A parcel after some time: what has expired expires at once."""
    return _rewritten(parcel, elapsed_s, None)


def without_expired(parcel: bytes, elapsed_s: float) -> tuple[bytes, Counter[bytes]]:
    """A parcel after some time without what has expired, and by topic how many messages that was."""
    gone: Counter[bytes] = Counter()
    return _rewritten(parcel, elapsed_s, gone), gone


def _rewritten(parcel: bytes, elapsed_s: float, gone: Counter[bytes] | None) -> bytes:
    elapsed_ms = int(elapsed_s * 1000)
    if elapsed_ms <= 0 or not parcel:
        return parcel
    try:
        parts = [front + body for front, body in _parts(parcel, elapsed_ms, gone)]
    except BadFrame:
        return parcel  # whoever reads it will say so
    if parcel[0] == SEVERAL:
        return put_several(parts)
    return parts[0] if parts else ELSEWHERE


def _parts(parcel: bytes, elapsed_ms: int, gone: Counter[bytes] | None) -> Iterator[tuple[bytes, bytes]]:
    for front, body in parts_of(parcel):
        left = _messages(body, elapsed_ms, gone) if body[:1] == b"\x00" else body
        if left:
            yield front, left


def _messages(body: bytes, elapsed_ms: int, gone: Counter[bytes] | None) -> bytes:
    """The messages of a publisher after some time; empty if none is left."""
    reader = Reader(body)
    kept = [put(reader.integer(), reader.integer()), put_bytes(reader.raw())]
    head, topic, marks = len(kept), b"", b""
    while not reader.is_over:
        message = take_apart(reader, marks)
        marks, topic = message.marks, topic if message.topic is None else message.topic
        if message.flags & EXPIRES:
            left_ms = max(0, message.left_ms - elapsed_ms)
            if not left_ms and gone is not None:
                gone[topic] += 1
                continue
            message = message._replace(left_ms=left_ms)
        kept += message.put_together(topic)
    return b"".join(kept) if len(kept) > head else b""
