"""Tables in the Delta format: batches are appended by delta-rs, each with a transaction that tells whether it is there.

A Delta table has its own log, so nothing is renamed into it.  The number of the batch goes into the commit; a batch
that is brought a second time is recognised by it.  The rows pass through the driver, a file at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final  # Any: values of JSON
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.parquet as pq

from tieline.extras import remedy
from tieline.pipeline.lake.columns import PARTITIONS
from tieline.pipeline.lake.disk import Disk
from tieline.pipeline.lake.document import Document
from tieline.pipeline.lake.layout import LakeError, Layout, Table, day_of

if TYPE_CHECKING:
    from datetime import date

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


#: In the order that tables have from their beginning.
_BEHIND: Final = ("batch", "day")


def check() -> None:
    """Raise :class:`LakeError` if delta-rs is not installed."""
    try:
        import deltalake  # noqa: F401 - only whether it is there
    except ModuleNotFoundError:
        raise LakeError(f"Delta tables need deltalake: {remedy('delta')}") from None


class Appended:
    """Brings batches into Delta tables; see :class:`tieline.pipeline.lake.landing.Place`."""

    def __init__(self, layout: Layout, document: Document, disk: Disk) -> None:
        check()
        self._layout = layout
        self._document = document
        self._disk = disk

    def put(self, source: Path, table: Table, number: int) -> None:
        from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

        target = str(self._layout.table(table))
        app = self._document.id
        if DeltaTable.is_deltatable(target):
            landed = DeltaTable(target).transaction_version(app)
            if landed is not None and landed >= number:
                self._disk.remove(source)
                return
        schema = pa.schema([*self._document.schema(table), *(PARTITIONS.field(name) for name in _BEHIND)])
        write_deltalake(
            target,
            pa.RecordBatchReader.from_batches(schema, _batches(source, schema, number)),
            mode="append",
            partition_by=["day"],
            schema_mode="merge",
            commit_properties=CommitProperties(app_transactions=[Transaction(app, number)]),
        )
        self._disk.remove(source)


def frame(spark: SparkSession, directory: Path, schema: StructType) -> DataFrame:
    """A table as Spark reads it: the files that its log names, as plain Parquet."""
    found = files(directory)
    if not found:
        return spark.createDataFrame([], schema)
    return spark.read.schema(schema).option("basePath", str(directory)).parquet(*map(str, found))


def files(directory: Path) -> list[Path]:
    """The files of a table as it is now."""
    check()
    from deltalake import DeltaTable

    if not DeltaTable.is_deltatable(str(directory)):
        return []
    return sorted(_path(uri) for uri in DeltaTable(str(directory)).file_uris())


def compacted(directory: Path, clustering: tuple[str, ...], keep_from: date | None) -> int:
    """Merge the small files of a table along a curve through some columns; returns how many rows were removed."""
    from deltalake import DeltaTable

    table = DeltaTable(str(directory))
    removed = 0
    if keep_from is not None:
        said: dict[str, Any] = table.delete(f"day < '{keep_from.isoformat()}'")
        removed = int(said["num_deleted_rows"])
    if clustering:
        table.optimize.z_order(list(clustering))
    else:
        table.optimize.compact()
    # files that readers of a week ago might still use stay for that long
    table.vacuum(dry_run=False)
    return removed


def _batches(source: Path, schema: pa.Schema, number: int) -> Iterator[pa.RecordBatch]:
    for path in sorted(source.glob("day=*/*.parquet")):
        for batch in pq.ParquetFile(path).iter_batches():
            rows = pa.Table.from_batches([batch])
            day = pa.scalar(day_of(path)).cast(pa.date32())
            rows = rows.append_column("batch", pa.repeat(pa.scalar(number, pa.int64()), len(rows)))
            rows = rows.append_column("day", pa.repeat(day, len(rows)))
            yield from rows.select(schema.names).cast(schema).to_batches()


def _path(uri: str) -> Path:
    parts = urlsplit(uri)
    return Path(unquote(parts.path)) if parts.scheme == "file" else Path(uri)
