"""The statistics of a file as a Delta log has them, from the footer that was written with it.

A column may be left out, and readers then know nothing of it: texts too long to be written whole, numbers that JSON
does not have, bytes.
"""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime
from typing import Any  # Any: values of JSON

import pyarrow.parquet as pq

#: Longer texts bound nothing that anybody asks for.
_MOST_TEXT = 64


def statistics_of(footer: pq.FileMetaData) -> str:
    """The rows, least and greatest values and nulls of a file, as JSON."""
    least: dict[str, Any] = {}
    greatest: dict[str, Any] = {}
    nulls: dict[str, int] = {}
    for place in range(footer.num_columns):
        name = footer.schema.column(place).path
        found = [footer.row_group(group).column(place).statistics for group in range(footer.num_row_groups)]
        if "." in name or any(each is None or not each.has_null_count for each in found):
            continue
        nulls[name] = sum(each.null_count for each in found)
        known = [each for each in found if each.has_min_max]
        # a group of nothing but nulls has no least value; one without for another reason makes the rest useless
        if not known or any(not each.has_min_max and each.num_values for each in found):
            continue
        ends = _told(min(each.min for each in known)), _told(max(each.max for each in known))
        if None not in ends:
            least[name], greatest[name] = ends
    return json.dumps(
        {"numRecords": footer.num_rows, "minValues": least, "maxValues": greatest, "nullCount": nulls},
        separators=(",", ":"),
    )


def _told(value: Any) -> Any:
    if isinstance(value, bool):
        return value
    if isinstance(value, datetime):
        return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, str):
        return value if len(value) <= _MOST_TEXT else None
    return value if isinstance(value, int) else None
