"""Both sinks: ``format("tieline")`` publishes each row once, ``format("mqtt")`` at least once, to any broker.

Theory of operation
-------------------
Once: tasks publish nothing; they hand their rows to the driver, in the message by which Spark tells it that they are
done.  When all are, Spark calls ``commit`` there.  It sorts the rows, numbers them (batch id × 2^32 + place) and
publishes them in this order with QoS 1 and the user property ``$once`` = ``<producer>/<number>``.  If the driver dies
before Spark has written down that the batch is done, the batch runs again, the same rows get the same numbers, and the
broker ignores those it has.  All rows of a batch pass through the driver's memory, hence the bound on their number.

At least once: every task publishes its own rows.  A task that Spark runs again publishes them again.  Each carries the
user property ``idem`` = ``<query>/<batch>/<partition>/<place>``, so that a receiver can tell: it is the same again if
the query gives its rows in the same order again, which one without a shuffle before the sink does.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from tieline.pipeline.broker import BrokerError
from tieline.pipeline.sink.options import SinkOptions
from tieline.pipeline.sink.publisher import Outgoing, Publisher
from tieline.pipeline.sink.rows import Message, messages, numbered, producer_of

#: The user property by which the broker knows a message again.
ONCE: Final = "$once"
MOST_ROWS: Final = 1_000_000


@dataclass(frozen=True)
class Staged(WriterCommitMessage):
    """The rows of one task, as an Arrow stream, and the query that they belong to."""

    query_id: str
    rows: int
    stream: bytes


class OnceStreamWriter(DataSourceStreamArrowWriter):
    """Publishes the batches of a query."""

    def __init__(self, options: SinkOptions) -> None:
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Staged:
        """Take the rows of one task; nothing is published yet."""
        return stage(iterator, _property("sql.streaming.queryId"))

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        """Publish the rows of all tasks, once even if Spark commits the batch again."""
        staged = [each for each in messages if isinstance(each, Staged)]
        if staged:
            publish(self._options, producer_of(staged[0].query_id), staged, batchId)


class OnceBatchWriter(DataSourceArrowWriter):
    """Publishes a data frame, once under one producer's name."""

    def __init__(self, options: SinkOptions) -> None:
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Staged:
        """Take the rows of one task; nothing is published yet."""
        return stage(iterator, "")

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Publish all of them."""
        staged = [each for each in messages if isinstance(each, Staged)]
        publish(self._options, self._options.producer or secrets.token_hex(8), staged, 0)


def stage(batches: Iterator[pa.RecordBatch], query_id: str) -> Staged:
    """The rows of one task, packed for the way to the driver."""
    sink, writer, rows = pa.BufferOutputStream(), None, 0
    for batch in batches:
        rows += batch.num_rows
        _check(rows)
        writer = writer or pa.ipc.new_stream(sink, batch.schema)
        writer.write_batch(batch)
    if writer is not None:
        writer.close()
    return Staged(query_id, rows, sink.getvalue().to_pybytes())


def unpack(staged: Sequence[Staged]) -> list[Message]:
    """The rows of all tasks; raises :class:`BrokerError` where they are too many or cannot be published."""
    _check(sum(each.rows for each in staged))
    return [
        message
        for each in staged
        if each.rows
        for batch in pa.ipc.open_stream(each.stream)
        for message in messages(batch, least_qos=1)
    ]


def publish(options: SinkOptions, producer: str, staged: Sequence[Staged], batch_id: int) -> None:
    """Number the rows and publish them; returns when the broker has acknowledged all."""
    outgoing = [
        Outgoing(message, ONCE, f"{producer}/{number}") for number, message in numbered(unpack(staged), batch_id)
    ]
    if not outgoing:
        return
    # The client id is the producer's: if another process still publishes this query's batches, the broker ends it.
    with Publisher(
        options.broker, f"tieline-{producer}", patience_s=options.patience_s, window=options.window
    ) as publisher:
        publisher.publish(outgoing)


def _check(rows: int) -> None:
    if rows > MOST_ROWS:
        raise BrokerError(
            f"a batch has more than {MOST_ROWS:,} rows for the broker, and all of them pass through the driver: "
            "aggregate them, or bound the batch with maxRowsPerTrigger"
        )


def _property(name: str) -> str:
    context = TaskContext.get()
    found = context.getLocalProperty(name) if context is not None else None
    if found is None:
        raise BrokerError(f"Spark does not say which query this is ({name} is missing)")
    return found


IDEM: Final = "idem"


@dataclass(frozen=True)
class Published(WriterCommitMessage):
    """How many rows a task has published."""

    rows: int


class AtLeastOnceStreamWriter(DataSourceStreamArrowWriter):
    """Publishes the batches of a query."""

    def __init__(self, options: SinkOptions) -> None:
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Published:
        """Publish the rows of one task."""
        context = TaskContext.get()
        assert context is not None, "Spark calls this inside a task"
        query, batch = (context.getLocalProperty(name) for name in ("sql.streaming.queryId", "streaming.sql.batchId"))
        return send(self._options, iterator, f"{query}/{batch}/{context.partitionId()}")


class AtLeastOnceBatchWriter(DataSourceArrowWriter):
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
