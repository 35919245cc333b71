"""What both sinks ask before they take a data frame: options, columns, and that it is appended."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql.types import StructType

from tieline.pipeline.options import OptionError
from tieline.pipeline.sink.options import SinkOptions, read_options
from tieline.pipeline.sink.rows import check_columns


def sink_options(format_name: str, options: Mapping[str, str], schema: StructType, *, overwrite: bool) -> SinkOptions:
    """The options of a writer for these columns; raises :class:`OptionError`."""
    if overwrite:
        raise OptionError('what was published cannot be overwritten: use .mode("append")')
    check_columns(format_name, schema)
    return read_options(format_name, options)
