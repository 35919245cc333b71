"""What one Spark task of ingest does: decode a part of the batch and write its files below the staging area.

Rows go from the source into files without leaving the task; only the names of the files, and what the search for
repeats needs, go to the driver.  Files that a task of a lost executor left behind are in nobody's list.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tieline.pipeline.decode import Decoder
from tieline.pipeline.decode.births import Birth
from tieline.pipeline.decode.records import NEEDED, duplicated
from tieline.pipeline.dedupe.repeats import keys
from tieline.pipeline.lake.document import Document
from tieline.pipeline.lake.layout import DUPLICATES, Table
from tieline.pipeline.lake.written import Target

#: Records decoded at once, and rows of one file at most.
PORTION_ROWS: Final = 65_536
FILE_ROWS: Final = 1_048_576
#: The same in bytes, for large payloads.
_PORTION_BYTES: Final = 67_108_864
_FILE_BYTES: Final = 268_435_456

#: What a task tells the driver.
REPORT: Final = pa.schema([("kind", pa.string()), ("data", pa.binary())])
REPORT_DDL: Final = "kind string, data binary"


class Repeats(NamedTuple):
    """The records of one shard that repeat others, ascending by offset."""

    offsets: list[int]
    reasons: list[str]
    first_offsets: list[int | None]


class Work(NamedTuple):
    """What the tasks of one batch have to know."""

    #: ``lake.json``.
    document: bytes
    #: Where the files of tables go.
    target: Target
    births: tuple[Birth, ...] = ()
    repeats: Mapping[str, Repeats] = {}


class Seen(msgspec.Struct, frozen=True):
    """How many records a task read, and the offset behind the last of each shard."""

    records: int
    positions: dict[str, int]


def run(batches: Iterable[pa.RecordBatch], work: Work) -> Iterator[pa.RecordBatch]:
    """Decode and write all records of a task."""
    task = _Task(work)
    for portion in portions(batches):
        yield from task.take(portion)
    yield from task.finish()


def portions(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Batches put together: Spark cuts them smaller than is good for decoding."""
    waiting: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        if batch.num_rows:
            waiting.append(batch)
            rows += batch.num_rows
            size += batch.nbytes
        if rows >= PORTION_ROWS or size >= _PORTION_BYTES:
            yield pa.Table.from_batches(waiting)
            waiting, rows, size = [], 0, 0
    if waiting:
        yield pa.Table.from_batches(waiting)


class _Task:
    def __init__(self, work: Work) -> None:
        self._decoder = Decoder(msgspec.json.decode(work.document, type=Document), work.births)
        self._work = work
        self._rows: dict[Table, list[pa.Table]] = {}
        self._records = 0
        self._positions: dict[str, int] = {}

    def take(self, records: pa.Table) -> Iterator[pa.RecordBatch]:
        """Decode a portion; write what has become large."""
        records = _in_order(records.select(NEEDED))
        self._records += len(records)
        found = keys(records)
        yield _report("numbered", _packed(found.numbered))
        yield _report("sent", _packed(found.sent))
        for table, rows in self._without_repeats(records):
            waiting = self._rows.setdefault(table, [])
            waiting.append(rows)
            if sum(map(len, waiting)) >= FILE_ROWS or sum(each.nbytes for each in waiting) >= _FILE_BYTES:
                yield from self._write(table)

    def finish(self) -> Iterator[pa.RecordBatch]:
        """Write what is left of all tables, and report how much was read."""
        for table in list(self._rows):
            yield from self._write(table)
        yield _report("seen", msgspec.json.encode(Seen(self._records, self._positions)))

    def _without_repeats(self, records: pa.Table) -> Iterator[tuple[Table, pa.Table]]:
        shards = records["shard"].combine_chunks().dictionary_encode()
        offsets = records["offset"].combine_chunks().to_numpy(zero_copy_only=False)
        codes = shards.indices.to_numpy(zero_copy_only=False)
        is_repeat = np.zeros(len(records), bool)
        for code, shard in enumerate(shards.dictionary.to_pylist()):
            here = codes == code
            self._positions[shard] = max(self._positions.get(shard, 0), int(offsets[here].max()) + 1)
            known = self._work.repeats.get(shard)
            if known is None:
                continue
            again = here & np.isin(offsets, known.offsets)
            if again.any():
                is_repeat |= again
                places = np.searchsorted(known.offsets, offsets[again])
                repeated = records.filter(pa.array(again))
                yield (
                    Table((DUPLICATES,)),
                    duplicated(
                        repeated,
                        self._decoder.names(repeated["topic"]),
                        [known.reasons[place] for place in places],
                        [known.first_offsets[place] for place in places],
                    ),
                )
        if is_repeat.any():
            records = records.filter(pa.array(~is_repeat))
        if len(records):
            yield from self._decoder.decode(records).rows.items()

    def _write(self, table: Table) -> Iterator[pa.RecordBatch]:
        rows = pa.concat_tables(self._rows.pop(table))
        for written in self._work.target.write(rows, table):
            yield _report("file", msgspec.json.encode(written))


def _in_order(records: pa.Table) -> pa.Table:
    """Records in the order of their logs: what a source gives, and what a file of history should give."""
    one_shard = pc.count_distinct(records["shard"]).as_py() == 1
    if one_shard and (np.diff(records["offset"].combine_chunks().to_numpy(zero_copy_only=False)) > 0).all():
        return records
    return records.sort_by([("shard", "ascending"), ("offset", "ascending")])


def _report(kind: str, data: bytes) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([kind]), pa.array([data], pa.binary())], schema=REPORT)


def _packed(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue().to_pybytes())
