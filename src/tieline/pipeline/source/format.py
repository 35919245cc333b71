"""The format ``tieline``: how Spark asks for readers and writers.

Spark plans every query in a new Python process, which imports this first.  Who reads does not wait for what only
writers need, which is an MQTT client.

Batches are read and written with Spark 4.0 and later.  A stream has to be told where it stands when it is asked for the
next end, or a broker that joins would lose its first records; sources in Python are told so since Spark 4.2.
"""

from __future__ import annotations

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from tieline.pipeline.options import OptionError, needs_spark
from tieline.pipeline.source.batch import BatchReader
from tieline.pipeline.source.options import SPARK, SourceOptions, read_options


class TielineSource(DataSource):
    """Brokers' logs as tables and streams, and tables and streams as messages.

    It defines no ``pushFilters``: with Spark's default settings a reader that has one fails, and streams never call it.
    Topics and conditions are options, and the log servers evaluate them.
    """

    @classmethod
    def name(cls) -> str:
        """What stands in ``format(...)``."""
        return "tieline"

    def schema(self) -> StructType:
        """The columns of the stream that was asked for."""
        return _schema(read_options(self.options))

    def reader(self, schema: StructType) -> DataSourceReader:
        """Reads a range of every log, as it stands when the query is planned."""
        return BatchReader(_checked(read_options(self.options), schema))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        """Reads on and on; needs Spark 4.2."""
        with needs_spark("4.2", 'reading streams of format("tieline")'):
            from tieline.pipeline.source.stream import StreamReader

        return StreamReader(_checked(read_options(self.options), schema))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Publishes a data frame."""
        from tieline.pipeline.sink.options import sink_options

        with needs_spark("4.1", 'publishing with format("tieline")'):
            from tieline.pipeline.sink.writers import OnceBatchWriter

        return OnceBatchWriter(sink_options("tieline", self.options, schema, overwrite=overwrite))

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802 - Spark's name
        """Publishes the batches of a query."""
        from tieline.pipeline.sink.options import sink_options

        with needs_spark("4.1", 'publishing with format("tieline")'):
            from tieline.pipeline.sink.writers import OnceStreamWriter

        return OnceStreamWriter(sink_options("tieline", self.options, schema, overwrite=overwrite))


def _schema(options: SourceOptions) -> StructType:
    return StructType([SPARK[options.stream][name] for name in options.columns])


def _checked(options: SourceOptions, schema: StructType) -> SourceOptions:
    """Refuse a schema of the user's own that is not ours."""
    ours = _schema(options)
    if schema.simpleString() != ours.simpleString():
        raise OptionError(
            f'format("tieline") has its own schema, {ours.simpleString()}: leave .schema(...) out; '
            '.option("columns", "offset,topic") reads fewer columns'
        )
    return options
