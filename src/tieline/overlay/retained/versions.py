"""Which write of each retained topic is the newest that is known here, and digests to find where two brokers differ.

A version is one integer: the clock of the write, and in its lowest eight bits the broker that accepted it, by our
number for it.  Of two versions the one with the later clock is newer, and of equal clocks the one whose broker has the
greater name, which is the same everywhere.

Topics lie in buckets by their checksum, as a rule in equal numbers, though whoever chooses topics can have all of them
lie in one.  The digest of a bucket is the sum of the digests of its topics with their versions, so it does not depend
on an order.  It is made when somebody asks, and remembered until the bucket changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Final
from zlib import crc32

BUCKETS: Final = 1_024
_DIGEST_BYTES: Final = 8
MODULUS: Final = 1 << 8 * _DIGEST_BYTES
_BROKER_BITS: Final = 8
_BROKER: Final = (1 << _BROKER_BITS) - 1
#: What a version takes in memory beside the topic, about.
VERSION_BYTES: Final = 160


def version_of(clock: int, broker: int) -> int:
    """The version of a write."""
    return clock << _BROKER_BITS | broker


def clock_in(version: int) -> int:
    """When the write was accepted."""
    return version >> _BROKER_BITS


def broker_in(version: int) -> int:
    """By whom it was accepted, by our number for it."""
    return version & _BROKER


def mark_of(topic: bytes) -> int:
    """A topic in eight bytes."""
    return int.from_bytes(blake2b(topic, digest_size=_DIGEST_BYTES).digest(), "big")


class Versions:
    """The newest version of each topic."""

    __slots__ = ("_digests", "buckets", "changes", "count", "names")

    def __init__(self, names: Mapping[int, str]) -> None:
        #: Of brokers, by our numbers.
        self.names = names
        self.buckets: list[dict[bytes, int]] = [{} for _ in range(BUCKETS)]
        #: None where a bucket has changed since.
        self._digests: list[int | None] = [0] * BUCKETS
        #: How often each bucket has changed.
        self.changes = [0] * BUCKETS
        self.count = 0

    def get(self, topic: bytes) -> int:
        """The version of a topic; 0, which is older than all, if none is known."""
        return self.buckets[crc32(topic) % BUCKETS].get(topic, 0)

    def put(self, topic: bytes, version: int) -> None:
        """A topic has another version from now on."""
        number = crc32(topic) % BUCKETS
        bucket = self.buckets[number]
        if topic not in bucket:
            self.count += 1
        bucket[topic] = version
        self._digests[number] = None
        self.changes[number] += 1

    def remove(self, topic: bytes) -> None:
        """Nothing is known of a topic any more."""
        number = crc32(topic) % BUCKETS
        if self.buckets[number].pop(topic, None) is not None:
            self.count -= 1
            self._digests[number] = None
            self.changes[number] += 1

    def is_newer(self, version: int, than: int) -> bool:
        """Whether a version is newer than another one; one is not newer than itself."""
        clock, other = version >> _BROKER_BITS, than >> _BROKER_BITS
        if clock != other or not than:
            return clock > other
        return self.names[version & _BROKER] > self.names[than & _BROKER]

    def digest(self, number: int) -> int:
        """The digest of a bucket; 0 of one that is empty."""
        known = self._digests[number]
        if known is None:
            known = self._digests[number] = self.digest_of(self.buckets[number].items())
        return known

    def remember(self, number: int, digest: int, changes: int) -> None:
        """Somebody has made the digest of a bucket since it had changed so often."""
        if self.changes[number] == changes:
            self._digests[number] = digest

    def is_digested(self, number: int) -> bool:
        """Whether the digest of a bucket costs nothing."""
        return self._digests[number] is not None

    def digest_of(self, entries: Iterable[tuple[bytes, int]]) -> int:
        """The digest of some topics with their versions."""
        total = 0
        names = self.names
        for topic, version in entries:
            name = names[version & _BROKER].encode()
            tail = (version >> _BROKER_BITS).to_bytes(8, "big") + len(topic).to_bytes(2, "big")
            digest = blake2b(topic + name + tail, digest_size=_DIGEST_BYTES).digest()
            total += int.from_bytes(digest, "big")
        return total % MODULUS
