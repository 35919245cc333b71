"""Numbers for which nothing is needed but that brokers do not all do the same at the same time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

_WORD: Final = (1 << 64) - 1
_STEP: Final = 0x9E3779B97F4A7C15


def chances(seed: int) -> Callable[[], float]:
    """Numbers from 0 to 1, the same for the same seed: splitmix64 (Steele, Lea and Flood 2014)."""
    state = seed & _WORD

    def chance() -> float:
        nonlocal state
        state = state + _STEP & _WORD
        mixed = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 & _WORD
        mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB & _WORD
        return ((mixed ^ mixed >> 31) >> 11) / (1 << 53)

    return chance
