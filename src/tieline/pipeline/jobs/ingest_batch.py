"""One batch of ingest on the driver: let tasks write files, find repeats, land everything in one step.

Theory of operation
-------------------
Repeats are rare.  So the tasks decode and write all records at once, and report the keys by which repeats are found.
Only if there is a repeat, they do so again without it; the repeated record goes to the table of duplicates instead.  A
batch costs one reading of the source, and one with repeats costs two.

Files count that the tasks have reported, by name: an executor that was given up may go on writing, and harms nothing.

The driver sees keys of the records, and no rows: a few tens of bytes for each record that has ``seq``, and at most some
hundred records of each session otherwise.  How many, the size of a batch bounds.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec
import pyarrow as pa

from tieline.pipeline.decode.births import Birth
from tieline.pipeline.decode.records import NEEDED
from tieline.pipeline.dedupe.repeats import IngestMemory, Repeat
from tieline.pipeline.jobs import ingest_task
from tieline.pipeline.jobs.ingest_task import Repeats, Seen, Work
from tieline.pipeline.lake import Lake
from tieline.pipeline.lake.document import State
from tieline.pipeline.lake.keeper import Attempt
from tieline.pipeline.lake.written import Written
from tieline.pipeline.tasks import Piece, in_tasks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Runs the tasks of a batch with this work, and returns what they reported.
RunTasks = Callable[[Work], Iterable[tuple[str, bytes]]]
#: The state after a batch, but for what all batches have in common.
After = Callable[[State], State]
#: Raises :class:`tieline.pipeline.lake.layout.Overtaken` unless a batch follows a state.
Check = Callable[[State], None]


class Batch(NamedTuple):
    """Where the records of a batch come from."""

    run: RunTasks
    #: The births among them.
    births: Callable[[], list[Birth]]
    #: How the state tells that it was taken.
    after: After
    #: Whether it begins where a state ends.  Of two that fill one lake, the later one's place is behind the lake's, and
    #: what comes next for it is in the tables.
    check: Check


class Landed(NamedTuple):
    """What a batch brought."""

    records: int
    #: Rows by table.
    rows: dict[str, int]
    #: The number of the batch, and how long it took.
    number: int = -1
    seconds: float = 0.0


class Reported(NamedTuple):
    """What the tasks of a batch have done."""

    files: list[Written]
    seen: list[Seen]
    numbered: pa.Table | None
    sent: pa.Table | None


class Ingest:
    """Brings batches into a lake, one after the other."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        #: The memory after this state; None if it has to be read again.
        self._memory: IngestMemory | None = None
        self._landed = State()
        self._reads_births = any(known.declared.payload == "sparkplug" for known in lake.document.types.values())

    def take(self, batch: Batch) -> Landed:
        """Decode and land a batch; refuses one that does not begin where the lake's state ends."""
        began = time.monotonic()
        state = self._lake.state()
        # the batch lands on this state or not at all
        batch.check(state)
        memory = self._memory
        if memory is None or self._landed != state:
            with self._lake.memory() as directory:
                memory = IngestMemory.restored(directory)
        # until the batch has landed, what is in memory is ahead of what is on the disk
        self._memory = None
        with self._lake.attempt() as attempt:
            work = self._work(attempt, memory, batch)
            reported = read(batch.run(work))
            found = memory.repeats(reported.numbered, reported.sent)
            if found:
                attempt.discard(reported.files)
                reported = read(batch.run(work._replace(repeats=_by_shard(found))))
            for each in reported.files:
                attempt.adopt(each)
            after = _after(batch.after(state), reported)
            attempt.state.mkdir(parents=True, exist_ok=True)
            memory.save(attempt.state)
            self._landed = self._lake.land(attempt, state, after)
        self._memory = memory
        records = sum(seen.records for seen in reported.seen)
        return Landed(records, _rows(reported.files), self._landed.batch, time.monotonic() - began)

    def _work(self, attempt: Attempt, memory: IngestMemory, batch: Batch) -> Work:
        before = tuple(memory.births)
        if self._reads_births:
            memory.learn(births := batch.births())
            before = (*before, *births)
        return Work(msgspec.json.encode(self._lake.document), attempt.target, before)


def read(reports: Iterable[tuple[str, bytes]]) -> Reported:
    """Put together what the tasks reported."""
    files: list[Written] = []
    seen: list[Seen] = []
    keys: dict[str, list[pa.Table]] = {"numbered": [], "sent": []}
    for kind, data in reports:
        if kind == "file":
            files.append(msgspec.json.decode(data, type=Written))
        elif kind == "seen":
            seen.append(msgspec.json.decode(data, type=Seen))
        else:
            keys[kind].append(pa.ipc.open_stream(data).read_all())
    numbered, sent = (pa.concat_tables(found) if found else None for found in keys.values())
    return Reported(files, seen, numbered, sent)


def ingest_in_tasks(
    spark: SparkSession,
    pieces: Sequence[Piece],
    read: Callable[[Sequence[Piece]], Iterator[pa.RecordBatch]],
    work: Work,
) -> list[tuple[str, bytes]]:
    """Let tasks read the records of pieces, decode them and write files; what they reported."""

    def task(mine: Sequence[Piece]) -> Iterator[pa.RecordBatch]:
        return ingest_task.run(read(mine), work)

    rows = in_tasks(spark, pieces, task, ingest_task.REPORT_DDL)
    return [(row["kind"], bytes(row["data"])) for row in rows]


def _by_shard(found: list[Repeat]) -> Mapping[str, Repeats]:
    shards: dict[str, list[Repeat]] = {}
    for each in sorted(found, key=lambda repeat: (repeat.shard, repeat.offset)):
        shards.setdefault(each.shard, []).append(each)
    return {
        shard: Repeats([r.offset for r in each], [r.reason for r in each], [r.first_offset for r in each])
        for shard, each in shards.items()
    }


def _after(state: State, reported: Reported) -> State:
    positions = dict(state.positions)
    for seen in reported.seen:
        for shard, position in seen.positions.items():
            positions[shard] = max(position, positions.get(shard, 0))
    rows = dict(state.rows)
    for name, count in _rows(reported.files).items():
        rows[name] = rows.get(name, 0) + count
    return msgspec.structs.replace(state, positions=positions, rows=rows)


def _rows(files: Iterable[Written]) -> dict[str, int]:
    found: dict[str, int] = {}
    for each in files:
        found[each.table] = found.get(each.table, 0) + each.rows
    return found


#: Offsets in one batch, unless said otherwise.
MAX_ROWS: Final = 1_000_000

#: Told about each batch that landed.
OnLanded = Callable[[Landed], None]


class Logs(NamedTuple):
    """Which logs are read, and how."""

    urls: Sequence[str]
    max_rows: int = MAX_ROWS
    #: More options of ``format("tieline")``: topics, where, user, reader, startingOffsets.
    options: Mapping[str, str] = {}

    def source(self) -> dict[str, str]:
        """All options of ``format("tieline")``."""
        ours = {"url": ",".join(self.urls), "maxRowsPerTrigger": str(self.max_rows), "columns": ",".join(NEEDED)}
        return {**ours, **self.options}
