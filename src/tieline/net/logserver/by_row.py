"""Records decoded one by one: what conditions, events of the broker and unusual bytes need."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain, compress
from typing import Any  # Any: the stream decides what its records are

import msgspec
import pyarrow as pa

from tieline.log.record import Occurrence, Record, record_up_to
from tieline.net.logserver import columns
from tieline.net.logserver.batches import Found
from tieline.net.logserver.question import OffsetSpan, decoded
from tieline.net.logserver.selection import Remembered, Selection, Visibility
from tieline.net.store.reading import Group


class ByRow:
    """One stream's way from encoded records to columns."""

    def __init__(
        self,
        kind: type[msgspec.Struct],
        sees: Callable[[Any], bool] | None,
        takes: Callable[[Any], bool] | None,
        batch: Callable[[Sequence[int], Sequence[Any]], pa.RecordBatch],
    ) -> None:
        """``sees`` and ``takes`` decide on records; None where nothing is hidden, or everything is asked for."""
        self._kind = kind
        self._sees = sees
        self._takes = takes
        self._batch = batch

    @classmethod
    def of_messages(cls, schema: pa.Schema, selection: Selection, visibility: Visibility) -> ByRow:
        """Messages; no more of a record is decoded than the columns and the selection need."""
        sees = Remembered(visibility.record)
        needed = columns.fields_of(schema) | selection.fields
        says = "attributes" in schema.names

        def batch(offsets: Sequence[int], some: Sequence[Any]) -> pa.RecordBatch:
            if says:
                for record in some:
                    selection.types.complete(record)
            return columns.log_batch(some, schema, selection.event_of, offsets)

        return cls(
            record_up_to(needed if visibility.is_open else needed | {"topic"}),
            None if visibility.is_open else lambda record: sees(record.topic),
            None if selection.is_everything else selection.takes,
            batch,
        )

    @classmethod
    def of_events(cls, schema: pa.Schema, selection: Selection, visibility: Visibility) -> ByRow:
        """Events of the broker."""
        return cls(
            Occurrence,
            None if visibility.is_open else visibility.occurrence,
            None if selection.is_everything else selection.takes_occurrence,
            lambda offsets, some: columns.events_batch(some, schema, offsets),
        )

    def __call__(self, groups: Sequence[Group], span: OffsetSpan) -> Found:
        """Build a batch record by record, which takes every record there is."""
        portions = list(decoded(groups, self._kind, span))
        records: list[Any] = list(chain.from_iterable(portion.records for portion in portions))
        first = portions[0].first
        offsets: Sequence[int] = range(first, first + len(records))
        if self._kind is Record:
            # what they say depends on what was declared there
            for offset, record in zip(offsets, records, strict=True):
                record.offset = offset
        withheld = 0
        if self._sees is not None:
            offsets, seen = _those(self._sees, offsets, records)
            withheld = len(records) - len(seen)
            records = seen
        if self._takes is not None:
            offsets, records = _those(self._takes, offsets, records)
        return Found(self._batch(offsets, records), withheld)


def _those(test: Callable[[Any], bool], offsets: Sequence[int], records: Sequence[Any]) -> tuple[list[int], list[Any]]:
    """The records that pass a test, and their offsets."""
    passed = list(map(test, records))
    return list(compress(offsets, passed)), list(compress(records, passed))
