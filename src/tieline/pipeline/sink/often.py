"""``format("mqtt")`` as a sink: every task publishes its own rows to any broker, at least once.

A task that Spark runs again publishes its rows again.  Each carries the user property ``idem`` =
``<query>/<batch>/<partition>/<place>``, so that a receiver can tell: it is the same again if the query gives its rows
in the same order again, which one without a shuffle before the sink does.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from tieline.pipeline.sink.options import SinkOptions
from tieline.pipeline.sink.publisher import Outgoing, Publisher
from tieline.pipeline.sink.rows import messages

IDEM: Final = "idem"


@dataclass(frozen=True)
class Published(WriterCommitMessage):
    """How many rows a task has published."""

    rows: int


class OftenStreamWriter(DataSourceStreamArrowWriter):
    """Publishes the batches of a query."""

    def __init__(self, options: SinkOptions) -> None:
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Published:
        """Publish the rows of one task."""
        context = TaskContext.get()
        assert context is not None, "Spark calls this inside a task"
        query, batch = (context.getLocalProperty(name) for name in ("sql.streaming.queryId", "streaming.sql.batchId"))
        return send(self._options, iterator, f"{query}/{batch}/{context.partitionId()}")


class OftenBatchWriter(DataSourceArrowWriter):
    """Publishes a data frame."""

    def __init__(self, options: SinkOptions) -> None:
        self._options = options
        self._producer = options.producer or secrets.token_hex(8)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Published:
        """Publish the rows of one task."""
        context = TaskContext.get()
        assert context is not None, "Spark calls this inside a task"
        return send(self._options, iterator, f"{self._producer}/0/{context.partitionId()}")


def send(options: SinkOptions, batches: Iterator[pa.RecordBatch], prefix: str) -> Published:
    """Publish rows as they come; returns when the broker has acknowledged all that can be."""
    rows = (message for batch in batches for message in messages(batch, least_qos=0))
    first = next(rows, None)
    if first is None:
        return Published(0)

    def outgoing() -> Iterator[Outgoing]:
        yield Outgoing(first, IDEM, f"{prefix}/0")
        for place, message in enumerate(rows, 1):
            yield Outgoing(message, IDEM, f"{prefix}/{place}")

    client_id = f"tieline-{secrets.token_hex(8)}"
    with Publisher(options.broker, client_id, patience_s=options.patience_s, window=options.window) as publisher:
        return Published(publisher.publish(outgoing()))
