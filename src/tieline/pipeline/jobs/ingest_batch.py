"""One batch of ingest on the driver: let tasks write files, find repeats, land everything in one step.

Theory of operation
-------------------
Repeats are rare.  So the tasks decode and write all records at once, and report the keys by which repeats are found.
Only if there is a repeat, the files are thrown away and written again without it; the repeated record goes to the table
of duplicates instead.  A batch costs one reading of the source, and one with repeats costs two.

The driver sees keys of the records, and no rows: a few tens of bytes for each record that has ``seq``, and at most some
hundred records of each session otherwise.  How many, the size of a batch bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

import msgspec
import pyarrow as pa

from tieline.pipeline.decode.births import PATTERN, Birth
from tieline.pipeline.decode.records import NEEDED
from tieline.pipeline.dedupe.repeats import IngestMemory, Repeat
from tieline.pipeline.jobs.ingest_task import Repeats, Seen, Work, Written
from tieline.pipeline.lake import Lake
from tieline.pipeline.lake.disk import walk
from tieline.pipeline.lake.document import State, newest_state
from tieline.pipeline.lake.landing import Attempt

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


#: Runs the tasks of a batch with this work, and returns what they reported.
RunTasks = Callable[[Work], Iterable[tuple[str, bytes]]]
#: The state after a batch, but for what all batches have in common.
After = Callable[[State], State]


class Batch(NamedTuple):
    """Where the records of a batch come from."""

    run: RunTasks
    #: The births among them.
    births: Callable[[], list[Birth]]
    #: How the state tells that it was taken.
    after: After


class Landed(NamedTuple):
    """What a batch brought."""

    records: int
    #: Rows by table.
    rows: dict[str, int]


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
        #: The memory after the batch of this number; None if it has to be read again.
        self._memory: IngestMemory | None = None
        self._number = -1
        self._reads_births = any(known.declared.payload == "sparkplug" for known in lake.document.types.values())

    def take(self, batch: Batch) -> Landed:
        """Decode and land a batch."""
        state, directory = newest_state(self._lake.layout.state)
        memory = self._memory
        if memory is None or self._number != state.batch:
            memory = IngestMemory.restored(directory)
        # until the batch has landed, what is in memory is ahead of what is on the disk
        self._memory = None
        with self._lake.attempt() as attempt:
            work = self._work(attempt, memory, batch)
            reported = read(batch.run(work))
            found = memory.repeats(reported.numbered, reported.sent)
            if found:
                self._lake.disk.remove(attempt.content / "tables")
                reported = read(batch.run(work._replace(repeats=_by_shard(found))))
            _drop_strangers(attempt, reported.files)
            after = _after(batch.after(state), reported)
            attempt.state.mkdir(parents=True, exist_ok=True)
            memory.save(attempt.state)
            self._number = self._lake.land(attempt, after).batch
        self._memory = memory
        return Landed(sum(seen.records for seen in reported.seen), _rows(reported.files))

    def _work(self, attempt: Attempt, memory: IngestMemory, batch: Batch) -> Work:
        before = tuple(memory.births)
        if self._reads_births:
            memory.learn(births := batch.births())
            before = (*before, *births)
        return Work(msgspec.json.encode(self._lake.document), str(attempt.content / "tables"), before)


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


def run_frame(frame: DataFrame, work: Work) -> list[tuple[str, bytes]]:
    """Run the tasks of a batch over a DataFrame of log records."""
    from tieline.pipeline.decode.records import NEEDED
    from tieline.pipeline.jobs import ingest_task

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return ingest_task.run(batches, work)

    reports = frame.select(*NEEDED).mapInArrow(task, ingest_task.REPORT_DDL).collect()
    return [(row["kind"], bytes(row["data"])) for row in reports]


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


def _drop_strangers(attempt: Attempt, files: Iterable[Written]) -> None:
    """Remove what tasks wrote that were repeated elsewhere: only the files in the list are the batch."""
    known = {each.path for each in files}
    for path in walk(attempt.content / "tables"):
        if path.is_dir():
            if not any(path.iterdir()):
                path.rmdir()
        elif str(path) not in known:
            path.unlink()


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


class Filling(Protocol):
    """Fills a lake from logs, in the background."""

    def start(self, *, once: bool = False, every_s: float | None = None) -> None:
        """Begin; with ``once`` it ends when it has what there is now.

        ``every_s`` is the least time between the beginnings of two batches.
        """

    def wait(self, seconds: int) -> bool:
        """Whether it has ended, or does so within this time; raises what ended it."""

    def stop(self) -> None:
        """End between two batches: the one in the making lands, the next does not begin."""

    def behind(self) -> int | None:
        """How many offsets the logs are ahead; None while that is not known."""


def batch_of(frame: DataFrame, after: After) -> Batch:
    """Records of logs as a batch."""

    def births() -> list[Birth]:
        rows = frame.where(frame["topic"].rlike(PATTERN)).select(*Birth._fields).collect()
        return [Birth(row["shard"], row["offset"], row["topic"], bytes(row["payload"])) for row in rows]

    return Batch(lambda work: run_frame(frame, work), births, after)


def ahead(latest: Mapping[str, int], end: Mapping[str, int]) -> int:
    """How many offsets lie between where logs end and where reading has come to."""
    return sum(max(0, offset - end.get(name, 0)) for name, offset in latest.items())
