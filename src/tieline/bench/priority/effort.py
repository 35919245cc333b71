"""The parts of the priority benchmark, and with how much effort each is measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

PARTS: Final = {
    "thin": "a subscriber behind 128 kbit/s: urgent, bulk and low flows (needs root)",
    "busy": "50 publishers at full speed beside an urgent one",
    "slow": "a subscriber that reads 1 kB/s, and what others notice of it",
    "cost": "what classes cost while nothing is congested",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How much is done."""

    thin_s: float
    slow_s: float
    busy_s: float
    busy_repetitions: int
    stranger_s: float
    stranger_repetitions: int
    cost_s: float
    cost_repetitions: int


FULL: Final = Effort(
    thin_s=45.0,
    slow_s=30.0,
    busy_s=5.0,
    busy_repetitions=3,
    stranger_s=0.6,
    stranger_repetitions=3,
    cost_s=0.5,
    cost_repetitions=7,
)
QUICK: Final = Effort(
    thin_s=14.0,
    slow_s=16.0,
    busy_s=1.5,
    busy_repetitions=3,
    stranger_s=0.2,
    stranger_repetitions=3,
    cost_s=0.2,
    cost_repetitions=3,
)
