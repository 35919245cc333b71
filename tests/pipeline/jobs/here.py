"""Ingest without Spark: what it needs of a session, carried out in this process."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

import pyarrow as pa

#: An event type of the records that :mod:`tests.net.logserver.writing` makes.
TOML = '[event.reading]\ntopic = "grid/+/pcc"\nattributes = [{name = "number", kind = "integer"}]\n'


class Here:
    """What ingest needs of a session: a task for each number of a range."""

    def __init__(self) -> None:
        self.queries = 0
        #: Raised by the next query, after its tasks have run.
        self.breaks: list[Exception] = []

    def range(self, start: int, end: int, step: int, tasks: int) -> Self:
        assert (start, step) == (0, 1) and end == tasks
        self._tasks = tasks
        return self

    def mapInArrow(self, task: Any, _columns: str) -> Self:  # noqa: N802 - Spark's name
        self._task = task
        return self

    def collect(self) -> list[dict[str, Any]]:
        self.queries += 1
        found = [row for number in range(self._tasks) for row in self._rows(number)]
        if self.breaks:
            raise self.breaks.pop()
        return found

    def _rows(self, number: int) -> Iterator[dict[str, Any]]:
        numbers = pa.RecordBatch.from_arrays([pa.array([number])], names=["id"])
        for batch in self._task(iter([numbers])):
            yield from pa.RecordBatch.to_pylist(batch)
