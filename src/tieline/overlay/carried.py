"""How long messages of other brokers were under way, and over how many links, summed until somebody takes the sums.

Frames say how old they have grown in the hands of brokers, so this is what brokers on the way took, waiting for links
included, and not what the wires between them did: their clocks need not agree.  A frame that was parked has begun a new
way there.  Frames that were sent before count like the others: each is one that came, whether or not it was needed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final  # Any: values of JSON

from tieline.core.account import WAIT_BUCKETS
from tieline.overlay.frames.frame import Data

#: Ways longer than this count as so long.
_MOST_HOPS: Final = 15


class Carried:
    """The sums of one broker, by the broker that accepted the messages and their level: never many."""

    __slots__ = ("_sums",)

    def __init__(self) -> None:
        #: How much came, and bytes; how much was under way for less than 2^n ms; and how much came over n links.
        self._sums: dict[tuple[int, int], tuple[list[int], list[int], list[int]]] = {}

    def add(self, data: Data, now: float) -> None:
        """A frame has come to its destination."""
        key = data.origin, data.level
        sums = self._sums.get(key)
        if sums is None:
            sums = self._sums[key] = [0, 0], [0] * WAIT_BUCKETS, [0] * (_MOST_HOPS + 1)
        count = data.count
        totals, ages, hops = sums
        totals[0] += count
        totals[1] += data.size
        bucket = max(0, int((now - data.born) * 1e3)).bit_length()
        ages[min(bucket, WAIT_BUCKETS - 1)] += count
        hops[min(len(data.path), _MOST_HOPS)] += count

    def take(self, names: Mapping[int, str]) -> list[dict[str, Any]]:
        """The sums since they were last taken."""
        found: list[dict[str, Any]] = []
        for (origin, level), (totals, ages, hops) in sorted(self._sums.items()):
            found.append(
                {
                    "broker": names[origin],
                    "level": level,
                    "count": totals[0],
                    "bytes": totals[1],
                    "ages_ms": {1 << bucket: count for bucket, count in enumerate(ages) if count},
                    "hops": {links: count for links, count in enumerate(hops) if count},
                }
            )
        self._sums.clear()
        return found
