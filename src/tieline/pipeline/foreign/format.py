"""The format ``mqtt``: how Spark asks for readers and writers of any broker.

Spark imports this in every process in which it looks for formats, with all its versions; what only some of them have is
imported when it is asked for.
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

from tieline.pipeline.foreign.options import MQTT, read_options
from tieline.pipeline.options import OptionError, needs_spark
from tieline.pipeline.sink.options import sink_options


class MqttSource(DataSource):
    """Any broker's messages as a stream, and tables and streams as messages: at least once, both ways."""

    @classmethod
    def name(cls) -> str:
        """What stands in ``format(...)``."""
        return "mqtt"

    def schema(self) -> StructType:
        """The columns of a message, which are the same for every broker."""
        return MQTT

    def reader(self, schema: StructType) -> DataSourceReader:
        """There is nothing to read once."""
        raise OptionError('MQTT keeps no history to read: use spark.readStream, or format("tieline") on its log')

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        """Reads on and on; needs Spark 4.2."""
        with needs_spark("4.2", 'reading streams of format("mqtt")'):
            from tieline.pipeline.foreign.stream import ForeignReader

        return ForeignReader(read_options(self.options))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Publishes a data frame."""
        with needs_spark("4.1", 'publishing with format("mqtt")'):
            from tieline.pipeline.sink.writers import AtLeastOnceBatchWriter

        return AtLeastOnceBatchWriter(sink_options("mqtt", self.options, schema, overwrite=overwrite))

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802 - Spark's name
        """Publishes the batches of a query."""
        with needs_spark("4.1", 'publishing with format("mqtt")'):
            from tieline.pipeline.sink.writers import AtLeastOnceStreamWriter

        return AtLeastOnceStreamWriter(sink_options("mqtt", self.options, schema, overwrite=overwrite))
