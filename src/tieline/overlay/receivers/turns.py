"""Which gateway of a region carries what a publisher sends: one of them, and the same for all that it sends.

A region may have several gateways, and each of them is told, and tells, the same.  Whoever is about to send something
to several gateways of one region sends it to one.  Which one follows from the names of those that are known to want it
and from the publisher, whether they are in reach or not: what is owed to one that is away waits for it, since nobody
else can know what it had passed on before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final
from zlib import crc32

from tieline.overlay.interests.entries import Entry

#: What a gateway says that it wants, so that others of its region know that it is one; no client can ask for it.
_MARK: Final = "$SYS/gateway"


def gateway_mark(region: str) -> Entry:
    """What a gateway of a region says of itself among what it wants."""
    return Entry(_MARK, region)


def is_gateway(entry: Entry) -> bool:
    """Whether an entry says that whoever wants it is a gateway."""
    return entry.filter == _MARK and bool(entry.share)


def outside_name(name: str, region: str) -> str:
    """What a gateway is called by those of other regions."""
    return f"{name}@{region}"


def region_of(name: str) -> str:
    """The region of a gateway, by what those of other regions call it."""
    return name.rpartition("@")[2]


class Turns:
    """The gateways that one broker knows of, by its numbers of brokers."""

    def __init__(self, names: Mapping[int, str]) -> None:
        #: Brokers by number, as far as they are known.
        self.names = names
        #: By number, the region that each speaks for.
        self.regions: dict[int, str] = {}

    def choose(self, wanted: list[int], publisher: str) -> list[int]:
        """Those of some brokers that are to get what a publisher sends: of several gateways of one region, one."""
        regions = self.regions
        if len(regions) < 2:
            return wanted
        by_region: dict[str, list[int]] = {}
        for number in wanted:
            if number in regions:
                by_region.setdefault(regions[number], []).append(number)
        idle = {each for numbers in by_region.values() for each in numbers if each != self._turn(numbers, publisher)}
        return [number for number in wanted if number not in idle] if idle else wanted

    def _turn(self, numbers: Sequence[int], publisher: str) -> int:
        """The one that draws the highest lot: when another one comes or goes, nobody else changes hands."""
        if len(numbers) == 1:
            return numbers[0]
        return max(numbers, key=lambda number: (crc32(f"{self.names[number]}\0{publisher}".encode()), number))
