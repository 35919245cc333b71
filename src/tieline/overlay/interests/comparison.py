"""What is new and what is gone with an interest that a broker says, found in portions: it may have 65,536 entries.

What is known of that broker must stay as it is until everything was compared; of one broker one update goes on at a
time.  A broker that is written off meanwhile wants nothing any more: then more is taken for gone than is there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from itertools import islice

from tieline.overlay.interests.entries import Entries, Entry, Terms, check_size, check_total, size_of


class Comparison:
    """Something that was said of one broker, beside what was known of it."""

    __slots__ = ("_broker", "_count", "_gone", "_grown", "_is_whole", "_known", "_said", "_shrunk", "_sizes", "_told",
                 "added", "removed")  # fmt: skip

    def __init__(  # what is known of all, and what is said of one
        self,
        known: Entries,
        said: Entries,
        gone: Collection[Entry] | None,
        sizes: Mapping[int, int],
        broker: int,
    ) -> None:
        """``gone`` is what is said to be gone; None if everything is that is not said.  ``sizes`` are those of all."""
        self._known = known
        self._said = said
        self._told: Iterator[tuple[Entry, Terms]] = iter(said.items())
        self._is_whole = gone is None
        self._gone: Iterator[Entry] = iter(list(known if gone is None else gone))
        self._sizes = sizes
        self._broker = broker
        self._count = len(known)
        self._grown = self._shrunk = 0
        #: Entries that are new, or have other terms; and those that are gone.
        self.added: dict[Entry, Terms] = {}
        self.removed: set[Entry] = set()

    def step(self, most: int) -> bool:
        """Look at so many entries more; whether that was all.  BadFrame if it is more than one broker may want."""
        looked = 0
        for entry, terms in islice(self._told, most):
            looked += 1
            before = self._known.get(entry)
            if before != terms:
                self.added[entry] = terms
            if before is None:
                self._count += 1
                self._grown += size_of(entry)
        for entry in islice(self._gone, most - looked):
            looked += 1
            if entry not in self._said and (self._is_whole or entry in self._known):
                self.removed.add(entry)
                self._count -= 1
                self._shrunk += size_of(entry)
        if looked == most:
            return False
        check_size(self._count, self._sizes.get(self._broker, 0) + self._grown - self._shrunk)
        check_total(sum(self._sizes.values()) + self._grown)
        return True
