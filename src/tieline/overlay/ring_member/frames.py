"""What two brokers of a ring say to each other on a connection, beside the ring's own messages.

::

    HELLO       lowest and highest version, life, longest message, address, fingerprint, and of the other end: the life
                that was heard of it, and how many messages of that have come
    REFUSED     a sentence that says why the connection ends
    RESUME      the number of the first message that follows
    HOP_ACK     how many messages have come
    RING        a message (:mod:`tieline.overlay.ring.messages`); numbers are counted, not written

A connection may break and another one take its place: what was written and not acknowledged is written again, so
whoever is at the other end gets every message once and in order, or is somebody else.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from tieline.overlay.frames.fields import BadFrame, Reader, put, put_bytes
from tieline.overlay.frames.frame import Kind, frame
from tieline.overlay.frames.hello import Refused
from tieline.overlay.ring_member.declared import FINGERPRINT

#: Of what is said here, the lowest and the highest that are spoken.
VERSIONS: Final = (1, 1)
#: Characters of an address.
LONGEST_ADDRESS: Final = 255


class RingHello(NamedTuple):
    """What both ends of a connection say first."""

    #: Tells one start of a broker from another; later ones are larger.
    life: int
    #: Bytes of the longest message that it takes.
    longest: int
    #: Where others reach it.
    address: str
    #: Of the event types that it has declared.
    fingerprint: bytes
    #: Of the other end, 0 if nothing is known of it.
    heard_life: int
    heard: int

    def encode(self) -> bytes:
        """What is said first, as one frame."""
        head = put(*VERSIONS, self.life, self.longest) + put_bytes(self.address.encode())
        return frame(Kind.HELLO, head + self.fingerprint + put(self.heard_life, self.heard))


def read_ring_hello(body: bytes) -> RingHello:
    """Who is there; raises :class:`Refused` if it speaks another version, and then reads no further, or BadFrame."""
    reader = Reader(body)
    lowest, highest = reader.integer(), reader.integer()
    if lowest > VERSIONS[1] or highest < VERSIONS[0]:
        theirs, ours = f"{lowest} to {highest}", f"{VERSIONS[0]} to {VERSIONS[1]}"
        raise Refused(f"one broker speaks versions {theirs} of what brokers of a ring say, and the other {ours}")
    life, longest, address = reader.integer(), reader.integer(), reader.text()
    fingerprint = reader.take(FINGERPRINT)
    hello = RingHello(life, longest, address, fingerprint, reader.integer(), reader.integer())
    if not 0 < len(address) <= LONGEST_ADDRESS or not life:
        raise BadFrame("a broker without a life or an address")
    return hello
