"""Heat from outside: a table of topics and filters with a heat for each, which holds for a while.

Theory of operation
-------------------
The broker's own heat is what it can see at the moment: subscribers, and deliveries where they count.  Somebody who
looks at more than a moment (sliding windows over the log, a forecast, an operator) may know better, and say so with a
:class:`HeatTable`.  Where it speaks of a topic its number is the topic's heat; where it does not, the broker's own is.

A topic is spoken of by its own name before any filter, and by the most specific of several filters: level by level,
left to right, a name is more specific than ``+``, and ``+`` than ``#``.  So exactly one entry speaks, in whatever order
they were written.

A table is made apart and takes effect whole (:mod:`tieline.core.routing.heat_source`), or not at all.  It is not kept
for ever: whoever gave it may have died, and old heat is worse than none.  The number is looked up when a topic's route
is found, and is then the route's heat (:meth:`tieline.core.routing.routes.Routes.warm`), so the hot path pays nothing
for it.
"""

from __future__ import annotations

from heapq import heappush, heapreplace, nlargest
from math import inf, isfinite
from typing import Any, Final  # Any: a number of Python's or of numpy's

from tieline.match.trees import FilterTree, tree_bytes
from tieline.wire.errors import ProtocolError
from tieline.wire.fields import LONGEST_FIELD
from tieline.wire.topics import check_filter

#: Entries of one table, and what they may take in memory, about.
MOST_ENTRIES = 100_000
MOST_BYTES = 67_108_864
#: The most that is shown of one.
MOST_SHOWN: Final = 1_000
#: How long a table may hold, in seconds, and how long it does unless it says so.
LEAST_PERIOD_S: Final = 1.0
MOST_PERIOD_S: Final = 86_400.0
PERIOD_S: Final = 60.0
#: What a topic costs beside its letters.
_TOPIC_BYTES: Final = 128
#: How specific a level of a filter is; a filter that ends is more so than one that goes on with #.
_RANK: Final = {"#": b"\0", "+": b"\1"}
_NAME, _END = b"\2", b"\3"


class HeatError(ValueError):
    """What is wrong with a table; the text is a sentence without its full stop."""


class HeatTable:
    """Heat by topic; made entry by entry, then only read."""

    __slots__ = ("_bytes", "_filters", "_hottest", "_max_levels", "_topics", "_written", "visited")

    def __init__(self, max_levels: int) -> None:
        self._max_levels = max_levels
        #: By topic name; by filter, with how specific it is; and filters as they were written.
        self._topics: dict[str, float] = {}
        self._filters: FilterTree[tuple[bytes, float]] = FilterTree()
        self._written: dict[str, float] = {}
        self._bytes = 0
        #: The hottest entries, as a heap: looking for them among all takes longer than anybody may wait on the loop.
        self._hottest: list[tuple[float, str]] = []
        #: Nodes that the last look-up visited.
        self.visited = 0

    def __len__(self) -> int:
        return len(self._topics) + len(self._written)

    def __repr__(self) -> str:
        return f"<HeatTable {len(self._topics)} topics, {len(self._written)} filters>"

    def add(self, filter_: str, heat: object) -> None:
        """Say how hot a topic is, or all topics of a filter, once; raises HeatError, and then nothing was said."""
        if isinstance(heat, bool) or not isinstance(heat, int | float):
            raise HeatError(f'the heat of "{shown(filter_)}" is no number')
        number = _as_float(heat)
        if not (isfinite(number) and number >= 0):
            raise HeatError(f'the heat of "{shown(filter_)}" is not a finite number from zero up')
        self._check(filter_)
        is_filter = "+" in filter_ or "#" in filter_
        known = self._written if is_filter else self._topics
        if filter_ in known:
            raise HeatError(f'"{shown(filter_)}" is in the table twice')
        if len(self) >= MOST_ENTRIES:
            raise HeatError(f"the table has more than {MOST_ENTRIES:,} entries")
        self._bytes += tree_bytes(filter_) if is_filter else _TOPIC_BYTES + len(filter_)
        if self._bytes > MOST_BYTES:
            raise HeatError(f"the table takes more than {MOST_BYTES >> 20} MiB of memory: fewer or shorter filters")
        known[filter_] = number
        if is_filter:
            self._filters.put(filter_, (_rank(filter_), number))
        if len(self._hottest) < MOST_SHOWN:
            heappush(self._hottest, (number, filter_))
        elif number > self._hottest[0][0]:
            heapreplace(self._hottest, (number, filter_))

    def _check(self, filter_: str) -> None:
        try:
            size = len(filter_.encode())
        except UnicodeEncodeError:
            raise HeatError(f'"{shown(filter_)}" is no text') from None
        if "\0" in filter_ or size > LONGEST_FIELD:
            raise HeatError(f'"{shown(filter_)}" cannot be a topic: a zero in it, or more than {LONGEST_FIELD:,} bytes')
        if filter_.startswith(("$share/", "$where/")):
            raise HeatError(f'"{shown(filter_)}" is a way to subscribe: the table takes topics and plain filters')
        try:
            check_filter(filter_, self._max_levels)
        except ProtocolError as error:
            raise HeatError(f'"{shown(filter_)}" is no topic filter: {error.text}') from None

    def of(self, topic: str) -> float | None:
        """The heat of a topic; None where the table says nothing."""
        self.visited = 1
        heat = self._topics.get(topic)
        if heat is not None or not self._written:
            return heat
        found = self._filters.match(topic)
        self.visited += self._filters.visited
        return max(found)[1] if found else None

    def hottest(self, most: int) -> list[tuple[str, float]]:
        """The entries with the greatest heat, as they were written; at most :data:`MOST_SHOWN`."""
        return [(filter_, heat) for heat, filter_ in nlargest(most, self._hottest)]


def _as_float(number: Any) -> float:
    try:
        return float(number)
    except OverflowError:  # a whole number larger than any float
        return inf


def _rank(filter_: str) -> bytes:
    ranks = b"".join(_RANK.get(level, _NAME) for level in filter_.split("/"))
    return ranks if filter_.endswith("#") else ranks + _END


def shown(filter_: str) -> str:
    """A filter for an error message: short, and printable whatever is in it."""
    text = "".join(letter if letter.isprintable() else f"\\x{ord(letter):02x}" for letter in filter_[:60])
    return text + ("…" if len(filter_) > 60 else "")


def check_period(period_s: float) -> None:
    """Refuse a period for which a table cannot hold."""
    if not LEAST_PERIOD_S <= period_s <= MOST_PERIOD_S:  # nor is that true of NaN
        raise HeatError(f"a table holds for {LEAST_PERIOD_S:g} to {MOST_PERIOD_S:,.0f} seconds, not {period_s:g}")
