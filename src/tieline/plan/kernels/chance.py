"""Random numbers for the loops: xorshift64*, whose state is one number that the caller keeps."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tieline.compiling import compiled

Seed = npt.NDArray[np.uint64]


def seeded(seed: int) -> Seed:
    """The state for a seed; neighbouring seeds give unrelated numbers."""
    return np.array([np.random.SeedSequence(seed).generate_state(1, np.uint64)[0] | np.uint64(1)], np.uint64)


@compiled
def uniform(seed: Seed) -> float:
    """A number from 0 up to, but not including, 1."""
    x = seed[0]
    x ^= x >> np.uint64(12)
    x ^= x << np.uint64(25)
    x ^= x >> np.uint64(27)
    seed[0] = x
    # the upper 32 bits of the product are the best; a product in two halves never overflows
    low = (x & np.uint64(0xFFFFFFFF)) * np.uint64(0x4F6CDD1D)
    high = (x >> np.uint64(32)) * np.uint64(0x4F6CDD1D)
    mixed = (high + (low >> np.uint64(32))) & np.uint64(0xFFFFFFFF)
    return float(mixed) / 4294967296.0


@compiled
def below(seed: Seed, count: int) -> int:
    """A whole number from 0 to count - 1."""
    return int(uniform(seed) * count)
