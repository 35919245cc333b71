"""The Hilbert key of many rows: the same cells and the same curve as in the broker's index."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from tieline.match.space_arrays import Points, keys
from tieline.pipeline.lake.document import Clustering


class Curve:
    """The curve of one event type.  A value that is missing lies in the last cell of its axis."""

    def __init__(self, clustering: Clustering) -> None:
        self._attributes = clustering.attributes
        self._space = clustering.space()

    def keys(self, arrays: Mapping[str, pa.Array], count: int) -> pa.Array:
        """The keys of some rows, from the columns of their attributes."""
        points = np.full((count, len(self._attributes)), np.nan)
        for axis, name in enumerate(self._attributes):
            if name in arrays:
                points[:, axis] = _numbers(arrays[name])
        # the order is chosen so that a key is below 2**62
        return pa.array(keys(self._space, points).astype(np.int64))


def _numbers(array: pa.Array) -> Points:
    """A column as numbers, NaN where it is null; times in seconds, as their bounds are."""
    if pa.types.is_timestamp(array.type):
        micros = array.cast(pa.int64())
        found = micros.cast(pa.float64()).to_numpy(zero_copy_only=False) / 1e6
    else:
        found = array.cast(pa.float64()).to_numpy(zero_copy_only=False)
    return np.asarray(found, np.float64)
