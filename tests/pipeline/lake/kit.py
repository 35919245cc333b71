"""Small lakes for tests: settings, rows, batches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.dataset as ds

from tieline.conf.load import loads
from tieline.conf.schema import Settings
from tieline.pipeline.lake import Lake, State
from tieline.pipeline.lake.layout import Table, table
from tieline.pipeline.lake.writing import write

TOML = """
[event.reading]
topic = "grid/+/reading"
attributes = [
    {name = "time", kind = "timestamp"},
    {name = "voltage", bounds = [0.0, 500.0]},
    {name = "current", bounds = [0.0, 100.0]},
    {name = "frequency", bounds = [45.0, 55.0]},
    {name = "node", kind = "category"},
]

[event.switch]
topic = "grid/+/switch"
attributes = [{name = "closed", kind = "boolean"}, {name = "count", kind = "integer"}]
"""
READING, SWITCH = TABLES = table("events/reading"), table("events/switch")


def settings(text: str = TOML) -> Settings:
    return loads(text)


def rows_of(lake: Lake, where: Table, offsets: Sequence[int], *, day: int = 1) -> pa.Table:
    """Rows that differ in their offsets."""
    schema = lake.schema(where)
    time = datetime(2026, 3, day, 12, tzinfo=UTC)
    given = {"_offset": list(offsets), "_time": [time] * len(offsets), "_hilbert": [o * 7 % 11 for o in offsets]}
    return pa.table(
        {field.name: pa.array(given.get(field.name, [None] * len(offsets)), field.type) for field in schema},
        schema=schema,
    )


def land(lake: Lake, content: Mapping[Table, pa.Table]) -> State:
    """Land one batch, as ingest does."""
    with lake.attempt() as attempt:
        for where, rows in content.items():
            for path, _rows in write(rows, where, attempt.written):
                attempt.adopt(path, where, lake.disk)
        return lake.land(attempt, lake.state())


def make_first_version(lake: Lake) -> None:
    """Turn a lake into one as the first version made them: batches above days."""
    for where in lake.tables():
        for batch in sorted(lake.layout.table(where).glob("day=*/batch=*")):
            above = lake.layout.table(where) / batch.name
            above.mkdir(exist_ok=True)
            batch.rename(above / batch.parent.name)
        for day in lake.layout.table(where).glob("day=*"):
            day.rmdir()
    document = msgspec.json.decode(lake.layout.document.read_bytes())
    lake.layout.document.write_bytes(msgspec.json.encode({**document, "version": 1}))


def offsets_in(lake: Lake, where: Table) -> list[int]:
    """The offsets of a table, as a reader of plain files finds them."""
    found = sorted(lake.layout.table(where).glob("**/*.parquet"))
    if not found:
        return []
    return sorted(
        ds.dataset([str(path) for path in found], schema=pa.schema([("_offset", pa.int64())]))
        .to_table()["_offset"]
        .to_pylist()
    )


def debris(root: Path) -> list[str]:
    """What is below the tables and no Parquet file with rows."""
    found = [path for name in ("events", "quarantine", "duplicates") for path in (root / name).glob("**/*")]
    return [str(path) for path in found if path.is_file() and (path.suffix != ".parquet" or path.stat().st_size == 0)]
