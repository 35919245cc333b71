"""The format ``mqtt``: how Spark asks for readers and writers of brokers that are not ours."""

from __future__ import annotations

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from tieline.pipeline.foreign.options import read_options
from tieline.pipeline.foreign.schema import MQTT
from tieline.pipeline.foreign.stream import ForeignReader
from tieline.pipeline.options import OptionError
from tieline.pipeline.sink.door import sink_options
from tieline.pipeline.sink.often import OftenBatchWriter, OftenStreamWriter


class MqttSource(DataSource):
    """Any broker's messages as a stream, and tables and streams as messages: at least once, both ways."""

    @classmethod
    def name(cls) -> str:
        """What stands in ``format(...)``."""
        return "mqtt"

    def schema(self) -> StructType:
        """The columns."""
        return MQTT

    def reader(self, schema: StructType) -> DataSourceReader:
        """There is nothing to read once."""
        raise OptionError('MQTT keeps no history to read: use spark.readStream, or format("tieline") on its log')

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        """Reads on and on."""
        return ForeignReader(read_options(self.options))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Publishes a data frame."""
        return OftenBatchWriter(sink_options("mqtt", self.options, schema, overwrite=overwrite))

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802
        """Publishes the batches of a query."""
        return OftenStreamWriter(sink_options("mqtt", self.options, schema, overwrite=overwrite))
