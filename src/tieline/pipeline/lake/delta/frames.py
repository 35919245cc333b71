"""A Delta table as a Spark DataFrame, without a jar: the files that its log names, and no others.

In a directory Spark reads them itself.  It can read no object store without jars, so there tasks read the files with
the library that reads the log.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from tieline.pipeline.lake.columns import BATCH, DAY, spark_schema
from tieline.pipeline.lake.delta.commits import live
from tieline.pipeline.lake.delta.store import Store
from tieline.pipeline.lake.keeper import Days
from tieline.pipeline.lake.layout import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def frame(spark: SparkSession, store: Store, table: Table, schema: pa.Schema, days: Days) -> DataFrame:
    """The rows of some days of a table; ``schema`` is that of its files."""
    plain = pa.schema([field for field in schema if field.name != BATCH.name])
    found = [each for each in live(store.table(table.name)) if days.has(each.day)]
    if not found:
        return spark.createDataFrame([], spark_schema(plain))
    if store.directory is not None:
        above = store.address(table.name)
        paths = [f"{above}/{each.path}" for each in found]
        return spark.read.schema(spark_schema(plain)).option("basePath", above).parquet(*paths)
    whole = pa.schema([*plain, DAY, BATCH])
    names = [f"{table.name}/{each.path}" for each in found]
    dates = [each.day for each in found]

    def task(numbers: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        files = store.files()
        for batch in numbers:
            for number in batch.column("id").to_pylist():
                yield from _rows(files, names[number], dates[number], whole)

    return spark.range(0, len(names), 1, len(names)).mapInArrow(task, spark_schema(plain))


def _rows(files: object, name: str, day: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    with pq.ParquetFile(name, filesystem=files) as file:
        for batch in file.iter_batches():
            columns = {column: batch.column(column) for column in batch.schema.names}
            columns[DAY.name] = pa.repeat(pa.scalar(day).cast(DAY.type), len(batch))
            yield pa.RecordBatch.from_arrays(
                [columns[each.name] if each.name in columns else pa.nulls(len(batch), each.type) for each in schema],
                schema=schema,
            )
