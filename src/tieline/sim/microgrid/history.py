"""Months of a world as Parquet files in the shape of a broker's log, without a broker.

The rows are those that ``[log] capture`` would have kept of the same world: the same columns and types
(:mod:`tieline.log.columns`), one offset after the other, and behind them the name of the broker they stand for.
``attributes`` is left empty: the payload says the same, and whoever decodes it need not trust us.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple  # Any: pyarrow comes without types

import numpy as np
from numpy.typing import NDArray

from tieline.log.record import digest_of
from tieline.sim.microgrid.extra import need
from tieline.sim.microgrid.messages import CLASSES, LEVELS
from tieline.sim.microgrid.rows import tables
from tieline.sim.microgrid.scenario import DAY_S
from tieline.sim.microgrid.world import World

#: From a meter to the broker's log, and nothing more is known about it.
_TRANSIT_US: Final = 3_000
_MOST_PACKET_ID: Final = 65_535
_SEQ: Final = b"\x26\x00\x03seq\x00"  # user property, and the length of its name; the value's length follows


class Written(NamedTuple):
    """What is in the directory now."""

    rows: int
    files: int
    bytes: int
    #: The offset that a next row would get.
    next_offset: int


# Whatever `tieline sim` lets a user choose, each with its default.
def write(
    world: World,
    directory: Path | str,
    *,
    days: float,
    readings_qos: int = 0,
    shard: str = "history",
    run: str = "history",
    first_offset: int = 0,
    rows_per_file: int = 1_000_000,
    progress: Callable[[int], object] | None = None,
) -> Written:
    """Write ``days`` of the world, from its start; ``progress`` is told how many rows there are so far.

    Messages with QoS 1 carry ``seq``, as those that are published do.
    """
    parquet: Any = need("pyarrow.parquet")
    folder = Path(directory)
    folder.mkdir(parents=True, exist_ok=True)
    log = _Log(world, readings_qos=readings_qos, shard=shard, run=run, offset=first_offset)
    files = size = 0
    for table in _portions(map(log.append, tables(world, days * DAY_S)), rows_per_file):
        place = folder / f"part-{files:05}.parquet"
        unfinished = folder / f".{place.name}.part"
        # Whoever reads *.parquet meanwhile sees whole files only.
        parquet.write_table(table, unfinished, compression="zstd", compression_level=1, row_group_size=131_072)
        unfinished.rename(place)
        files += 1
        size += place.stat().st_size
        if progress is not None:
            progress(log.offset - first_offset)
    return Written(log.offset - first_offset, files, size, log.offset)


def _portions(parts: Iterator[Any], most: int) -> Iterator[Any]:
    """Tables of at least ``most`` rows, but for the last."""
    pa: Any = need("pyarrow")
    gathered: list[Any] = []
    for part in parts:
        gathered.append(part)
        if sum(each.num_rows for each in gathered) >= most:
            yield pa.concat_tables(gathered)
            gathered = []
    if any(each.num_rows for each in gathered):
        yield pa.concat_tables(gathered)


class _Log:
    """A log that grows: what a broker would have added to the messages of the world."""

    def __init__(self, world: World, *, readings_qos: int, shard: str, run: str, offset: int) -> None:
        from tieline.log.columns import LOG, SHARD

        self.offset = offset
        self._schema = LOG.append(SHARD)
        self._grid = world.grid
        self._readings_qos = readings_qos
        self._shard = shard
        self._run = run
        #: How many messages with a number each client has sent.
        self._numbered: dict[str, int] = {}

    def append(self, messages: Any) -> Any:
        """The next messages as rows of the log, numbered on from the last ones."""
        pa: Any = need("pyarrow")
        compute: Any = need("pyarrow.compute")
        count = messages.num_rows
        kinds = messages["kind"].combine_chunks().dictionary_encode()
        kind = kinds.indices.to_numpy()
        levels = np.array([LEVELS[name] for name in kinds.dictionary.to_pylist()], np.int8)[kind]
        qos = np.where(levels > 0, 1, self._readings_qos).astype(np.int8)
        publishers = compute.binary_join_element_wise(self._grid, messages["client"].combine_chunks(), "-")
        numbers = self._number(publishers, qos > 0)
        received_us = np.round(messages["sent_s"].to_numpy() * 1e6).astype(np.int64) + _TRANSIT_US
        topics, payloads = messages["topic"].combine_chunks(), messages["payload"].combine_chunks()
        seq = _joined(compute, f"{self._run}/", pa.array(numbers[qos > 0]).cast(pa.string()))
        columns = {
            "offset": np.arange(self.offset, self.offset + count),
            "received": pa.array(received_us).cast(self._schema.field("received").type),
            "received_ns": received_us * 1_000,
            "publisher": publishers,
            "epoch": np.ones(count, np.int64),
            "packet_id": np.where(qos > 0, (numbers - 1) % _MOST_PACKET_ID + 1, 0).astype(np.int32),
            "dup": np.zeros(count, bool),
            "qos": qos,
            "retain": np.zeros(count, bool),
            "level": levels,
            "class": pa.array([CLASSES[level] for level in range(4)]).take(pa.array(levels)),
            "topic": topics,
            "payload": payloads,
            "properties": _properties(pa, seq, qos > 0),
            "raw_properties": _raw_properties(pa, compute, seq, qos > 0),
            "digest": list(map(digest_of, topics.cast(pa.binary()).to_pylist(), payloads.to_pylist())),
            "event": messages["kind"],
            "attributes": pa.nulls(count, self._schema.field("attributes").type),
            "shard": pa.array([self._shard]).take(pa.array(np.zeros(count, np.int8))),
        }
        self.offset += count
        arrays = [_exactly(pa, columns[field.name], field.type) for field in self._schema]
        return pa.table(arrays, schema=self._schema)

    def _number(self, publishers: Any, is_numbered: NDArray[np.bool_]) -> NDArray[np.int64]:
        """For each row the number that its client gives it; 0 without one."""
        encoded = publishers.dictionary_encode()
        which = encoded.indices.to_numpy()
        numbers = np.zeros(len(which), np.int64)
        for code, name in enumerate(encoded.dictionary.to_pylist()):
            mine = (which == code) & is_numbered
            before = self._numbered.get(name, 0)
            numbers[mine] = before + np.arange(1, int(mine.sum()) + 1)
            self._numbered[name] = before + int(mine.sum())
        return numbers


def _exactly(pa: Any, values: Any, kind: Any) -> Any:
    return values if isinstance(values, pa.Array | pa.ChunkedArray) else pa.array(values, kind)


def _joined(compute: Any, *pieces: Any) -> Any:
    return compute.binary_join_element_wise(*pieces, "")


def _properties(pa: Any, seq: Any, has: NDArray[np.bool_]) -> Any:
    """A list with the pair ``seq`` where there is one; the flat values are one after the other."""
    from tieline.log.columns import PAIR

    names = pa.array(["seq"]).take(pa.array(np.zeros(len(seq), np.int8)))
    pairs = pa.StructArray.from_arrays([names, seq], fields=list(PAIR))
    ends = np.concatenate([[0], np.cumsum(has)]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(ends), pairs)


def _raw_properties(pa: Any, compute: Any, seq: Any, has: NDArray[np.bool_]) -> Any:
    """The same as on the wire."""
    lengths = pa.array([bytes([length]) for length in range(256)], pa.binary())
    sizes = compute.binary_length(seq)
    blocks = compute.binary_join_element_wise(_SEQ, lengths.take(sizes), seq.cast(pa.binary()), b"")
    places = np.where(has, np.cumsum(has) - 1, len(seq))  # behind them stands the empty block of all the others
    return pa.concat_arrays([blocks, pa.array([b""], pa.binary())]).take(pa.array(places))
