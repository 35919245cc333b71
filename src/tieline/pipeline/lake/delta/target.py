"""Where tasks write the files of Delta tables: into the tables' own places, where they count once committed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from tieline.pipeline.lake.columns import BATCH
from tieline.pipeline.lake.delta.statistics import statistics_of
from tieline.pipeline.lake.delta.store import Store, part_name
from tieline.pipeline.lake.layout import Table
from tieline.pipeline.lake.writing import by_day, clustered, time_column, write_rows
from tieline.pipeline.lake.written import Written


class InPlace:
    """Writes the files of one batch; see :class:`tieline.pipeline.lake.written.Target`."""

    def __init__(self, store: Store, number: int) -> None:
        self._store = store
        self._number = number

    def write(self, rows: pa.Table, table: Table) -> Sequence[Written]:
        found: list[Written] = []
        for day, part in by_day(rows, time_column(table)):
            number = pa.array(np.full(len(part), self._number, np.int64))
            found.append(put(self._store, clustered(part).append_column(BATCH, number), table, day.isoformat()))
        return found


def put(store: Store, rows: pa.Table, table: Table, day: str) -> Written:
    """Write rows of one day as one file below their table."""
    sink = pa.BufferOutputStream()
    footer = write_rows(rows, sink)
    data = sink.getvalue()
    name = part_name(day)
    store.put(f"{table.name}/{name}", memoryview(data))
    return Written(table.name, name, len(rows), day, data.size, statistics_of(footer))
