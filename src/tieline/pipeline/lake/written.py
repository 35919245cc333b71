"""A file that a task wrote, as it tells the driver, and where tasks write: what tasks and lakes say to each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec
import pyarrow as pa

from tieline.pipeline.lake.layout import Table


class Written(msgspec.Struct, frozen=True):
    """A file that a task wrote."""

    table: str
    #: Where it is: a path on this machine's file systems, or one below a Delta table.
    path: str
    rows: int
    #: The date of its rows, ``YYYY-MM-DD``.
    day: str
    size: int = 0
    #: Least and greatest values as a Delta table's log has them; empty where nobody needs them.
    statistics: str = ""


class Target(Protocol):
    """Where the tasks of a batch write; it travels to them."""

    def write(self, rows: pa.Table, table: Table) -> Sequence[Written]:
        """Write rows into files, one for each day, that count when they are reported and adopted."""
        ...
