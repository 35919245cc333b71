"""What a lake holds, from the names and footers of its files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pyarrow.parquet as pq

from tieline.pipeline.lake.layout import day_of, files

if TYPE_CHECKING:
    from tieline.pipeline.lake.lake import Lake


class TableStatus(msgspec.Struct, frozen=True):
    """One table."""

    name: str
    rows: int
    files: int
    bytes: int
    #: The first and the last day that has rows.
    first_day: str | None
    last_day: str | None


class Status(msgspec.Struct, frozen=True):
    """A lake."""

    lake: str
    id: str
    format: str
    query: str | None
    #: The number of the last batch and when it landed.
    batch: int
    landed: str | None
    #: The offset behind the last record of each broker's log.
    positions: dict[str, int]
    history_files: int
    tables: list[TableStatus]


def status_of(lake: Lake) -> Status:
    """Look at a lake."""
    state = lake.state()
    return Status(
        lake=str(lake.layout.root),
        id=lake.document.id,
        format=lake.document.format,
        query=lake.document.query,
        batch=state.batch,
        landed=state.landed,
        positions=dict(sorted(state.positions.items())),
        history_files=len(state.history),
        tables=[_table(table.name, _files(lake, lake.layout.table(table))) for table in lake.tables()],
    )


def _files(lake: Lake, directory: Path) -> list[Path]:
    if lake.document.format == "delta":
        from tieline.pipeline.lake import delta

        return delta.files(directory)
    return files(directory)


def _table(name: str, found: list[Path]) -> TableStatus:
    days = sorted({day_of(path) for path in found})
    return TableStatus(
        name=name,
        rows=sum(pq.read_metadata(path).num_rows for path in found),
        files=len(found),
        bytes=sum(path.stat().st_size for path in found),
        first_day=days[0] if days else None,
        last_day=days[-1] if days else None,
    )
