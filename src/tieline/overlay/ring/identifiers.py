"""Where brokers stand on the ring: identifiers, the way around, and fingers at distances that double.

Theory of operation
-------------------
The ring is that of Chord: every broker has an identifier, and the ring closes behind the largest one.  The *arc* of a
broker's finger begins at the finger and ends before the next one; its own arc, up to its first finger, holds nobody
else.  So the arcs of a broker's fingers hold every other broker once, and who hands a message to some fingers, each for
its arc, hands it to everybody once.  A finger stands at the first identifier that is 1, 2, 4, 8 … away or farther, so
there are about as many as brokers have binary digits, and each hand-over leaves less than half of the way.

An identifier is the hash of a name, which spreads brokers evenly, or begins with a place on the curve of what a broker
wants, which makes neighbours of brokers that want the same.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Final

#: The bits of an identifier, and how many of them there are.
BITS: Final = 64
AROUND: Final = 1 << BITS
#: The bits that stay a hash where brokers are placed along the curve, so that no two stand at one place.
_HASHED: Final = 24


def identifier_of(name: str) -> int:
    """The place of a broker on the ring, by the hash of its name."""
    return int.from_bytes(blake2b(name.encode(), digest_size=BITS // 8).digest(), "big")


def identifier_at(key: int, bits: int, name: str) -> int:
    """A place along the curve: that of a key with so many bits, told apart from equal ones by the name."""
    room = BITS - _HASHED
    place = key << room - bits if bits <= room else key >> bits - room
    return place << _HASHED | identifier_of(name) >> room


def way(start: int, end: int) -> int:
    """How far it is from one identifier on to another, in the direction of the ring."""
    return (end - start) % AROUND


def starts(identifier: int, nearest: int = 0) -> Iterable[int]:
    """Where the fingers of a broker are looked for, the nearest first; only those behind one that is so far away."""
    return ((identifier + (1 << power)) % AROUND for power in range(nearest.bit_length(), BITS))


def first_from(identifiers: Sequence[int], start: int) -> int:
    """The index of the first of some ascending identifiers at a place or behind it, around the ring."""
    index = bisect_left(identifiers, start)
    return index if index < len(identifiers) else 0


def finger_towards(identifiers: Sequence[int], identifier: int, target: int) -> int:
    """The index of the finger of a broker whose arc holds a target that is somebody's identifier, not its own."""
    distance = way(identifier, target)
    if not distance:
        raise ValueError("a broker is in the arc of none of its own fingers")
    return first_from(identifiers, (identifier + (1 << distance.bit_length() - 1)) % AROUND)
