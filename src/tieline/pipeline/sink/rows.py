"""Rows of a data frame as MQTT messages, in an order that does not depend on how Spark cut them into partitions.

A batch that Spark runs again has the same rows, but maybe in other partitions and another order.  Sorted by all their
columns they get the same numbers again, and a broker that has seen a number ignores it.  Rows that are equal in every
column are interchangeable, so it does not matter which of them comes first.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

import pyarrow as pa

from tieline.pipeline.broker import BrokerError
from tieline.wire.errors import Violation
from tieline.wire.topics import check_name

#: Numbers of one batch; the next batch's begin behind them.
BATCH_SPAN: Final = 2**32
#: Levels of a topic that any broker takes; ours may be configured to take fewer.
_MOST_LEVELS: Final = 65_535


class Message(NamedTuple):
    """One row, with its fields in the order by which rows are sorted."""

    #: The column ``order``: what a query has to say about the order of its messages.
    order: int
    topic: str
    payload: bytes
    qos: int
    retain: bool
    #: How urgent, 0 to 3; -1 where the broker's own rules shall say.
    level: int


def messages(batch: pa.RecordBatch, *, least_qos: int) -> Iterator[Message]:
    """The rows of a batch; raises :class:`BrokerError` for one that no broker would take."""
    count = batch.num_rows
    names = batch.schema.names

    def column(name: str) -> list[object]:
        return batch.column(name).to_pylist() if name in names else [None] * count

    rows = zip(*(column(name) for name in ("order", "topic", "payload", "qos", "retain", "level")), strict=True)
    for order, topic, payload, qos, retain, level in rows:
        yield Message(
            order if isinstance(order, int) else 0,
            _topic(topic),
            payload.encode() if isinstance(payload, str) else payload if isinstance(payload, bytes) else b"",
            _within("qos", qos, least_qos, 2, 1),
            retain is True,
            _within("level", level, 0, 3, -1),
        )


def numbered(rows: Iterable[Message], batch_id: int) -> list[tuple[int, Message]]:
    """Rows in their order, each with its number; the same rows of a batch always get the same."""
    return list(enumerate(sorted(rows), batch_id * BATCH_SPAN))


def producer_of(query_id: str) -> str:
    """The name under which a query numbers its messages: the same after a restart, another for another query."""
    return hashlib.sha256(query_id.encode()).hexdigest()[:16]


def _topic(topic: object) -> str:
    if not isinstance(topic, str):
        raise BrokerError("a row has no topic (null), so it cannot be published")
    try:
        check_name(topic, _MOST_LEVELS)
    except Violation as problem:
        raise BrokerError(f'a row has the topic "{topic}", which cannot be published to: {problem}') from None
    return topic


def _within(name: str, value: object, least: int, most: int, default: int) -> int:
    if not isinstance(value, int):
        return default
    if least <= value <= most:
        return value
    reason = ", because only acknowledged messages can be made sure of" if name == "qos" and value == 0 else ""
    raise BrokerError(f"a row has {name} = {value}: here it lies between {least} and {most}{reason}")
