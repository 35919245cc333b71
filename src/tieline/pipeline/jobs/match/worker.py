"""What a worker of Spark does with a batch of rows: which subscription is sent which of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tieline.conf.schema import Settings
from tieline.match.events import Events, EventType
from tieline.pipeline.jobs.match.bound import BoundSubscriptions
from tieline.pipeline.jobs.match.rows import Readings, Values, kept_attributes, points
from tieline.pipeline.jobs.match.search import NONE, Integers, Rows, Search

#: Rows of a batch, and for each the number of a subscription that is sent it.
Match = Callable[[pa.RecordBatch], tuple[Integers, Integers]]


def on_columns(bound: BoundSubscriptions) -> Match:
    """Matches batches of a table."""
    search = _search(bound)
    search.leave(None)

    def find(batch: pa.RecordBatch) -> tuple[Integers, Integers]:
        rows = _rows(batch, bound)
        found = search.match(rows)
        if bound.is_stateful and len(rows.keys):
            search.leave(rows.keys[rows.topic_of[-1]])
        return found

    return find


def on_messages(by_type: Mapping[str, BoundSubscriptions], settings: Settings) -> Match:
    """Matches batches of the log, with the subscriptions bound to each event type."""
    events = Events(settings)
    searches = {name: _search(bound) for name, bound in by_type.items()}
    for each in searches.values():
        each.leave(None)

    def find(batch: pa.RecordBatch) -> tuple[Integers, Integers]:
        if not batch.num_rows:
            return NONE, NONE
        topics, keys, topic_of = _topics(batch, is_keyed=True)
        types = [events.of(topic) for topic in topics]
        found = [
            _of_type(batch, event, by_type[event.name], searches[event.name], (topics, keys, topic_of), types)
            for event in dict.fromkeys(types)
        ]
        for search in searches.values():
            search.leave(keys[topic_of[-1]])
        return np.concatenate([rows for rows, _ in found]), np.concatenate([numbers for _, numbers in found])

    return find


def _of_type(
    batch: pa.RecordBatch,
    event: EventType,
    bound: BoundSubscriptions,
    search: Search,
    known: tuple[list[str], list[bytes], Integers],
    types: Sequence[EventType],
) -> tuple[Integers, Integers]:
    """The matches of those rows of a batch whose topics have one type."""
    topics, keys, topic_of = known
    mine = np.flatnonzero(np.array([each is event for each in types])[topic_of])
    part = batch.take(pa.array(mine))
    sent = Readings(
        event,
        bound,
        [topics[code] for code in topic_of[mine].tolist()],
        part.column("payload").to_pylist(),
        part.column("raw_properties").to_pylist(),
        kept_attributes(part.column("attributes")) if event.reads_topic else [None] * len(mine),
    )
    rows = Rows(topics, keys, topic_of[mine], sent.points, sent.get, sent.is_readable)
    found, numbers = search.match(rows)
    return mine[found], numbers


def _rows(batch: pa.RecordBatch, bound: BoundSubscriptions) -> Rows:
    """A batch of a table, as a search takes it."""
    if "_topic" in batch.schema.names:
        topics, keys, topic_of = _topics(batch, is_keyed=bound.is_stateful)
    else:
        assert bound.any_topic is not None
        topics, keys, topic_of = [bound.any_topic], [], np.zeros(batch.num_rows, np.int64)
    return Rows(topics, keys, topic_of, points(batch, bound), Values(batch, bound).of)


def _topics(batch: pa.RecordBatch, *, is_keyed: bool) -> tuple[list[str], list[bytes], Integers]:
    """The topics of a batch, their keys with the broker's name, and where each row's is among them."""
    whole = batch.column("_topic")
    if is_keyed:
        whole = pc.binary_join_element_wise(batch.column("_shard"), whole, "\0")
    encoded = whole.dictionary_encode()
    found: list[str] = encoded.dictionary.to_pylist()
    codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    if not is_keyed:
        return found, [], codes
    return [each.partition("\0")[2] for each in found], [each.encode() for each in found], codes


@lru_cache(maxsize=8)
def _search(bound: BoundSubscriptions) -> Search:
    """The indexes of bound subscriptions, made once in a process that Spark uses again and again."""
    return Search(bound)
