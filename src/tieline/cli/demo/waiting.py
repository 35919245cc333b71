"""How long messages waited for one subscriber, by level, and which urgent ones overtook how many others."""

from __future__ import annotations

import statistics
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass

from tieline.cli.demo.ledger import Said

#: From this level on a message counts as urgent here: commands, faults, protection.
URGENT = 2


@dataclass(frozen=True, slots=True)
class Wait:
    """One level: how many of its messages arrived of how many, and how long they waited."""

    level: int
    sent: int
    arrived: int
    #: Of those that have not arrived, the time until now counts.
    median_s: float
    longest_s: float


def waits(sent: Mapping[Said, tuple[float, int]], arrived: Mapping[Said, float], now: float) -> list[Wait]:
    """The waits of each level that was used, the most urgent first."""
    by_level: dict[int, list[tuple[float, bool]]] = {}
    for said, (when, level) in list(sent.items()):
        came = arrived.get(said)
        by_level.setdefault(level, []).append(((now if came is None else came) - when, came is not None))
    return [
        Wait(
            level,
            len(found),
            sum(is_here for _wait, is_here in found),
            statistics.median(wait for wait, _is_here in found),
            max(wait for wait, _is_here in found),
        )
        for level, found in sorted(by_level.items(), reverse=True)
    ]


def overtaken(sent: Mapping[Said, tuple[float, int]], arrived: Mapping[Said, float]) -> list[int]:
    """For each urgent message that arrived: how many less urgent ones were sent before it and had not arrived yet."""
    bulk = [(when, arrived.get(said, float("inf"))) for said, (when, level) in sent.items() if level < URGENT]
    sent_order = sorted(when for when, _came in bulk)
    counts = []
    for said, (when, level) in sent.items():
        came = arrived.get(said)
        if level >= URGENT and came is not None:
            before = bisect_left(sent_order, when)
            # Whatever arrived before this one was also sent before it, or else it is no delay of ours.
            here = sum(arrival <= came and start < when for start, arrival in bulk)
            counts.append(before - here)
    return counts
