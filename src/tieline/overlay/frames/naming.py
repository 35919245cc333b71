"""For which groups a broker was picked: said in front of a parcel, and read again at its destination.

::

    2, QoS, addresses, and for each of them: a broker, flags, brokers that were picked before, groups; then the parcel
    3, parcels behind their lengths, which stand in the place of one

A broker is its name, for numbers are everybody's own; without one it is whoever gets the parcel.  Flags are 1 where the
parcel is also for those outside groups, and 2 where brokers before had members who did not ask for it.  A group is a
share name and a filter.  Who is not addressed takes the parcel for no group.

What this broker is addressed by is found first, so that nobody pays for the others.  Every number is bounded: whoever
takes a parcel asks all its groups about all its messages.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from tieline.core.receiver import Share
from tieline.overlay.frames.fields import BadFrame, Reader, put, put_bytes

#: The kinds of parcels that hold others.
NAMED: Final = 2
SEVERAL: Final = 3
#: Groups that one address may name, and messages that a parcel with addresses holds.
MOST_GROUPS: Final = 256
MOST_MESSAGES: Final = 32
#: In the place of what was given to others.
ELSEWHERE: Final = put(SEVERAL, 0)
_PLAIN, _ASKED = 1, 2


class Address(NamedTuple):
    """What a parcel is to one broker."""

    is_plain: bool
    shares: tuple[Share, ...]
    #: The brokers that were picked before, by name.
    tried: tuple[str, ...] = ()
    is_asked: bool = False


def put_addresses(addresses: dict[str, Address], qos: int) -> bytes:
    """What stands in front of a parcel, whose messages are of one QoS."""
    parts = [put(NAMED, qos, len(addresses))]
    for name, (is_plain, shares, tried, is_asked) in addresses.items():
        flags = (_PLAIN if is_plain else 0) | (_ASKED if is_asked else 0)
        parts += (put_bytes(name.encode()), put(flags, len(tried)))
        parts += [put_bytes(other.encode()) for other in tried]
        parts.append(put(len(shares)))
        for share in shares:
            parts += (put_bytes(share.name.encode()), put_bytes(share.filter.encode()))
    return b"".join(parts)


def put_several(parcels: list[bytes]) -> bytes:
    """Some parcels in the place of one."""
    return b"".join((put(SEVERAL, len(parcels)), *map(put_bytes, parcels)))


def read_addresses(parcel: bytes) -> tuple[dict[str, Address], bytes]:
    """By name what a parcel is to whom, and the parcel itself; raises BadFrame."""
    reader = Reader(parcel)
    if reader.integer() != NAMED:
        return {}, parcel
    reader.integer()
    addresses: dict[str, Address] = {}
    for _ in reader.repeat():
        name, flags = reader.text(), reader.integer()
        tried = tuple([reader.text() for _ in reader.repeat()])
        shares = tuple([Share(reader.text(), reader.text()) for _ in reader.repeat()])
        if flags > (_PLAIN | _ASKED) or len(tried) > 255 or not 0 < len(shares) <= MOST_GROUPS:
            raise BadFrame(f"an address with flags {flags}, {len(tried)} brokers and {len(shares)} groups")
        addresses[name] = Address(bool(flags & _PLAIN), shares, tried, bool(flags & _ASKED))
    return addresses, reader.rest()


def opened(parcel: bytes, name: str) -> Iterator[tuple[Address | None, bytes]]:
    """The parcels in a parcel, and what each is to a broker of this name; raises BadFrame."""
    for inner in _each(parcel):
        if inner[:1] != b"\x02":
            yield None, inner
            continue
        addresses, inner = read_addresses(inner)
        if inner[:1] in {b"\x02", b"\x03"}:
            raise BadFrame("addresses in front of addresses")
        yield addresses.get(name) or addresses.get(""), inner


def _each(parcel: bytes) -> Iterator[bytes]:
    if parcel[:1] != b"\x03":
        yield parcel
        return
    reader = Reader(parcel)
    reader.integer()
    for _ in reader.repeat():
        inner = reader.raw()
        if inner[:1] == b"\x03":
            raise BadFrame("several parcels in one of several")
        yield inner
    if not reader.is_over:
        raise BadFrame("bytes behind several parcels")


def parts_of(parcel: bytes) -> Iterator[tuple[bytes, bytes]]:
    """What stands in front of each parcel in a parcel, and the parcel; raises BadFrame."""
    for inner in _each(parcel):
        body = read_addresses(inner)[1] if inner[:1] == b"\x02" else inner
        yield inner[: len(inner) - len(body)], body
