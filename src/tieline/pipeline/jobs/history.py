"""History: directories of Parquet files that have the columns of the log, ingested like a log and each file once.

A file is known by its content.  Its name says little: two directories may each have a ``0.parquet`` of one size, and a
file that was copied elsewhere has the same records still.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tieline.match.events.sparkplug import Births
from tieline.pipeline.decode.births import Birth
from tieline.pipeline.decode.records import NEEDED
from tieline.pipeline.jobs import ingest_task
from tieline.pipeline.jobs.ingest_batch import Batch, ingest_in_tasks
from tieline.pipeline.jobs.ingest_task import Work
from tieline.pipeline.lake import LakeError, Overtaken, State
from tieline.pipeline.lake.columns import RECORD

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log: Final = logging.getLogger("tieline.pipeline.history")

#: Rows of one task.
_TASK_ROWS: Final = 524_288


class File(NamedTuple):
    """A file of history."""

    #: Of its content, by which it is remembered.
    digest: str
    path: Path
    rows: int


class Piece(NamedTuple):
    """Some row groups of a file: the work of one task."""

    path: str
    groups: tuple[int, ...]


def pending(directory: Path, state: State) -> list[File]:
    """The files of a directory whose content was not taken yet; refuses one that has changed since it was taken."""
    if not directory.is_dir():
        raise LakeError(f"{directory} is no directory of history files.")
    # tasks read the files, and they run in other directories than this process
    directory = directory.absolute()
    places = set(state.files.values())
    found: dict[str, File] = {}
    earlier = 0
    for path in sorted(directory.rglob("*.parquet")):
        rows = _checked(path).num_rows
        digest = _digest(path)
        if digest in state.files or digest in found:
            continue
        if str(path) in places:
            raise LakeError(
                f"{path} has another content than it had when it was taken: a history file must not change. Give new "
                "rows a new name."
            )
        if state.history.get(path.relative_to(directory).as_posix()) == path.stat().st_size:
            earlier += 1
            continue
        found[digest] = File(digest, path, rows)
    if earlier:
        log.warning(
            "%d files are passed over: an earlier version took files of the same names and sizes, and did not remember "
            "their content",
            earlier,
        )
    return list(found.values())


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()


def groups(files: Iterable[File], most_rows: int) -> Iterator[list[File]]:
    """Files put together to batches of about so many rows; a file is never divided between two."""
    batch: list[File] = []
    count = 0
    for each in files:
        if batch and count + each.rows > most_rows:
            yield batch
            batch, count = [], 0
        batch.append(each)
        count += each.rows
    if batch:
        yield batch


def batch_of(spark: SparkSession, files: Sequence[File]) -> Batch:
    """Some files as a batch."""
    pieces = [piece for each in files for piece in _pieces(each.path)]

    def run(work: Work) -> list[tuple[str, bytes]]:
        return ingest_in_tasks(spark, pieces, _read, work)

    def after(state: State) -> State:
        return msgspec.structs.replace(state, files={**state.files, **{each.digest: str(each.path) for each in files}})

    def check(state: State) -> None:
        taken = [str(each.path) for each in files if each.digest in state.files]
        if taken:
            raise Overtaken(
                f"{', '.join(taken)}: in the tables since this command has looked, because somebody else fills this "
                "lake. Nothing of this batch was brought in; the same command goes on with the files that are left."
            )

    return Batch(run, lambda: _births(files), after, check)


def _pieces(path: Path) -> Iterator[Piece]:
    metadata = pq.read_metadata(path)
    waiting: list[int] = []
    count = 0
    for number in range(metadata.num_row_groups):
        waiting.append(number)
        count += metadata.row_group(number).num_rows
        if count >= _TASK_ROWS:
            yield Piece(str(path), tuple(waiting))
            waiting, count = [], 0
    if waiting:
        yield Piece(str(path), tuple(waiting))


def _read(pieces: Iterable[Piece]) -> Iterator[pa.RecordBatch]:
    """The records of some pieces, with the types that the log has."""
    schema = pa.schema([RECORD.field(name) for name in NEEDED])
    for piece in pieces:
        with pq.ParquetFile(piece.path) as file:
            for batch in file.iter_batches(ingest_task.PORTION_ROWS, row_groups=piece.groups, columns=list(NEEDED)):
                yield from pa.Table.from_batches([batch]).select(NEEDED).cast(schema).to_batches()


def _checked(path: Path) -> pq.FileMetaData:
    try:
        metadata = pq.read_metadata(path)
    except (pa.ArrowInvalid, OSError) as problem:
        raise LakeError(f"{path} is no Parquet file: {problem}.") from None
    missing = [name for name in NEEDED if name not in metadata.schema.to_arrow_schema().names]
    if missing:
        raise LakeError(f"{path} does not have the columns of a log: {', '.join(missing)} are missing.")
    return metadata


def _births(files: Iterable[File]) -> list[Birth]:
    found: list[Birth] = []
    columns = list(Birth._fields)
    for each in files:
        with pq.ParquetFile(each.path) as file:
            for batch in file.iter_batches(ingest_task.PORTION_ROWS, columns=columns):
                table = pa.Table.from_batches([batch]).select(columns)
                table = table.filter(pc.match_substring(table["topic"], "BIRTH/"))
                found += [Birth(*row) for row in zip(*table.to_pydict().values(), strict=True)]
    return [birth for birth in found if Births.is_birth(birth.topic)]
