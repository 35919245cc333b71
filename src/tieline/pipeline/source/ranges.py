"""Ranges of offsets: a task reads one, straight from a broker's log server."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import pyarrow as pa

from tieline.log.columns import SHARD
from tieline.pipeline.source.client import Gap
from tieline.pipeline.source.options import ARROW, SourceOptions

log: Final = logging.getLogger("tieline.pipeline.source")

#: What to do about lost data, for the end of a sentence.
REMEDY: Final = '.option("failOnDataLoss", "false") goes on behind them'


@dataclass(frozen=True, slots=True)
class Range:
    """The offsets from ``start`` up to, and without, ``end`` of one broker's log."""

    shard: str
    url: str
    start: int
    end: int


def cut(shard: str, url: str, start: int, end: int, *, rows: int) -> list[Range]:
    """A range in pieces of at most so many offsets, as equal as they can be."""
    count = -(-(end - start) // rows)
    edges = [start + (end - start) * place // count for place in range(count + 1)] if count > 0 else []
    return [Range(shard, url, first, last) for first, last in pairwise(edges)]


def read_range(options: SourceOptions, part: Range) -> Iterator[pa.RecordBatch]:
    """The records of a range, in exactly the columns that were asked for."""
    schema = pa.schema([ARROW[options.stream].field(name) for name in options.columns])
    asked = [name for name in options.columns if name != SHARD.name] or ["offset"]
    batches = options.client(part.url).read(
        options.stream,
        part.start,
        part.end,
        topics=options.topics,
        where=options.where,
        columns=asked,
        on_gap=None if options.fail_on_data_loss else lambda gap: warn(part.shard, gap),
    )
    try:
        for batch in batches:
            yield pa.RecordBatch.from_arrays([_column(field, batch, part.shard) for field in schema], schema=schema)
    except Gap as gap:
        raise Gap(f"{gap}; {REMEDY}", gap.first, gap.last) from None


def warn(shard: str, gap: Gap) -> None:
    """Say which records a reader goes on without."""
    log.warning("%d records of %s are lost: offsets %d to %d", gap.last - gap.first, shard, gap.first, gap.last - 1)


def _column(field: pa.Field, batch: pa.RecordBatch, shard: str) -> pa.Array:
    if field.name == SHARD.name:
        return pa.repeat(shard, batch.num_rows)
    found = batch.column(field.name)
    return found if found.type == field.type else found.cast(field.type)
