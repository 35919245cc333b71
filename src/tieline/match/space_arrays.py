"""Cells and keys of many points at once: the same function as :class:`Space`, number for number."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tieline.match.curve import arrays
from tieline.match.space import Space

Points = NDArray[np.float64]


def cells(space: Space, points: Points) -> NDArray[np.int64]:
    """The cell of every point, ``cells[point, axis]``."""
    if points.ndim != 2 or points.shape[1] != space.dimensions:
        raise ValueError(f"points of this space are an array of n by {space.dimensions}, not {points.shape}")
    low, high = np.array(space.bounds).T
    end = 1 << space.order
    with np.errstate(over="ignore"):  # what is too far away for a number is outside the bounds, and so is infinity
        places: Points = (points - low) / (high - low)
        places *= end
    # fmin rather than minimum: NaN counts as missing, and is in the last cell.
    np.fmin(places, end - 1, out=places)
    np.maximum(places, 0, out=places)
    return places.astype(np.int64)


def keys(space: Space, points: Points) -> NDArray[np.uint64]:
    """The key of every point's cell."""
    return arrays.keys(cells(space, points), space.order)
