"""The nearest-rank quantile of a sorted sample."""

from __future__ import annotations

import math
from collections.abc import Sequence


def quantile(ordered: Sequence[int], q: float) -> int:
    """The smallest value that at least a share ``q`` of the sample does not exceed."""
    return ordered[max(0, math.ceil(q * len(ordered)) - 1)]
