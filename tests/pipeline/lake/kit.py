"""Small lakes for tests: settings, rows, batches."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.dataset as ds

from tieline.conf.load import loads
from tieline.conf.schema import Settings
from tieline.pipeline.lake import Lake, State
from tieline.pipeline.lake.disk import Disk
from tieline.pipeline.lake.document import new_document, save_document, save_state
from tieline.pipeline.lake.layout import Layout, Table, table
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
            for written in attempt.target.write(rows, where):
                attempt.adopt(written)
        return lake.land(attempt, state := lake.state(), state)


def make_first_version(lake: Lake) -> None:
    """Turn a lake into one as the first version made them: batches above days."""
    for where in lake.tables():
        for batch in sorted(lake.plain.layout.table(where).glob("day=*/batch=*")):
            above = lake.plain.layout.table(where) / batch.name
            above.mkdir(exist_ok=True)
            batch.rename(above / batch.parent.name)
        for day in lake.plain.layout.table(where).glob("day=*"):
            day.rmdir()
    document = msgspec.json.decode(lake.plain.layout.document.read_bytes())
    lake.plain.layout.document.write_bytes(msgspec.json.encode({**document, "version": 1}))


def make_delta_of_before(root: Path) -> Path:
    """A lake of Delta tables as the second version left it: one batch in its table, one decided and not yet there."""
    from deltalake import CommitProperties, Transaction, write_deltalake

    document = msgspec.structs.replace(new_document("delta", "2026-03-01T00:00:00+00:00"), version=2)
    document = document.evolved(settings().event, document.created)
    rows = rows_of(Lake.create(root / "elsewhere", settings()), READING, [0])
    shutil.rmtree(root / "elsewhere")
    layout = Layout(root)
    for directory in (layout.staging, layout.landing, layout.state):
        directory.mkdir(parents=True)
    save_document(document, layout.document, Disk())
    write_deltalake(
        str(layout.table(READING)),
        rows.append_column("batch", [[0]]).append_column("day", [[date(2026, 3, 1)]]),
        partition_by=["day"],
        commit_properties=CommitProperties(app_transactions=[Transaction(document.id, 0)]),
    )
    save_state(State(batch=0, positions={"edge": 4}), layout.state / "0", Disk())
    decided = layout.landing / "1"
    where = decided.joinpath("tables", *READING.parts)
    write(rows.set_column(0, "_offset", [[1]]), READING, where)
    save_state(State(batch=1, positions={"edge": 5}), decided / "state", Disk())
    (decided / "state" / "numbered.parquet").write_bytes(b"remembered")
    return root


def parquet(lake: Lake, where: Table) -> list[Path]:
    """Every Parquet file below a table, whether it counts or not."""
    return sorted(path for path in Path(lake.where, *where.parts).glob("day=*/**/*.parquet"))


def offsets_in(lake: Lake, where: Table) -> list[int]:
    """The offsets of a table, as a reader of plain files finds them."""
    found = parquet(lake, where)
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
