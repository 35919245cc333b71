"""How many days the rows of a portion may spread over: a publisher that invents times makes no file for each."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

#: Days of one portion of records that get files; those with the most rows count first.
MOST: Final = 400


def few_days(
    records: pa.Table, time: pa.Array | None, good: NDArray[np.bool_], reasons: list[str]
) -> tuple[NDArray[np.bool_], list[str], pa.Array | None]:
    """Which records are still good, why the others are not, and which of the good ones stay (None: all of them)."""
    if time is None or not pa.types.is_timestamp(time.type):
        return good, reasons, None
    days = pc.floor_temporal(time, unit="day")
    counted = pc.value_counts(days.drop_null())
    if len(counted) <= MOST:
        return good, reasons, None
    order = np.argsort(-counted.field("counts").to_numpy(), kind="stable")[:MOST]
    stays = pc.or_(pc.is_in(days, value_set=counted.field("values").take(pa.array(order))), pc.is_null(days))
    kept = np.asarray(stays.to_numpy(zero_copy_only=False), bool)
    explained = np.full(len(records), None, object)
    explained[~good] = reasons
    still = good.copy()
    still[good] = kept
    explained[good & ~still] = f"its time lies on one of too many different days: a portion of records has {MOST}"
    return still, list(explained[~still]), pa.array(kept)
