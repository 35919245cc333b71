"""Who is at the other end of a connection, as both say it first, and which brokers are meant by which numbers."""

from __future__ import annotations

from typing import Final, NamedTuple

from tieline.overlay.frames.fields import BadFrame, Reader, put, put_bytes
from tieline.overlay.frames.frame import Kind, frame

#: Of the protocol, the lowest and the highest that are spoken here; the highest that both ends speak is used.
VERSIONS: Final = (8, 8)
#: Characters of a broker's name.
LONGEST_NAME: Final = 255


class Refused(Exception):
    """A peer cannot be had for a reason that its operator should read; the text is a sentence without its stop."""


class Hello(NamedTuple):
    """What both ends of a connection say first."""

    name: str
    incarnation: int
    life: int
    #: Tells one start of a broker from another; link numbers begin anew with each.
    start: int
    #: Bytes of the longest frame that it takes, in however many pieces.
    longest: int
    #: By number as the sender means it, the name of each broker that it knows.
    names: dict[int, str]
    #: By number, the version that it knows of each broker's interest.
    versions: dict[int, int]

    @property
    def bytes(self) -> bytes:
        pairs = [number for pair in self.versions.items() for number in pair]
        numbers = put(self.incarnation, self.life, self.start, self.longest)
        tables = put_names(self.names), put(len(self.versions), *pairs)
        return frame(Kind.HELLO, b"".join((put(*VERSIONS), put_bytes(self.name.encode()), numbers, *tables)))


def read_hello(body: bytes) -> Hello:
    """Who is there; raises :class:`Refused` if it speaks another version, and then reads no further."""
    reader = Reader(body)
    lowest, highest = reader.integer(), reader.integer()
    if lowest > VERSIONS[1] or highest < VERSIONS[0]:
        theirs, ours = f"{lowest} to {highest}", f"{VERSIONS[0]} to {VERSIONS[1]}"
        raise Refused(f"one broker speaks versions {theirs} of the link protocol and the other {ours}")
    name = reader.text()
    incarnation, life, start, longest = (reader.integer() for _ in range(4))
    names = read_names(reader)
    versions = {reader.broker(): reader.integer() for _ in reader.repeat()}
    return Hello(name, incarnation, life, start, longest, names, versions)


def put_names(names: dict[int, str]) -> bytes:
    """Numbers with the names of the brokers that they mean."""
    entries = (put(number) + put_bytes(name.encode()) for number, name in names.items())
    return b"".join((put(len(names)), *entries))


def read_names(reader: Reader) -> dict[int, str]:
    """Numbers with the names that the other side means by them; raises BadFrame."""
    names = {reader.broker(): reader.text() for _ in reader.repeat()}
    for name in names.values():
        if not 0 < len(name) <= LONGEST_NAME or not name.isprintable() or " " in name:
            raise BadFrame(f"{name[:LONGEST_NAME]!r} is no name of a broker")
    return names
