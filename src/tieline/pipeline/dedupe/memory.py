"""What ingest remembers between batches: the numbers seen, the last records of sessions, Sparkplug's births.

It is kept as Parquet files next to the state of each batch, and lands with it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tieline.pipeline.decode.births import Birth, latest
from tieline.pipeline.dedupe.numbered import BEFORE, NEW, Numbered
from tieline.pipeline.dedupe.retries import Retries, Sent

_BIRTHS: Final = pa.schema(
    [("shard", pa.string()), ("offset", pa.int64()), ("topic", pa.string()), ("payload", pa.binary())]
)


class Repeat(NamedTuple):
    """A record that repeats another one."""

    shard: str
    offset: int
    reason: str
    #: The offset of the other one; None if it is only known to lie in an earlier batch.
    first_offset: int | None


class Memory:
    """All of it."""

    def __init__(self) -> None:
        self.numbered = Numbered()
        self.retries = Retries()
        self.births: list[Birth] = []

    @classmethod
    def restored(cls, directory: Path | None) -> Memory:
        """What was remembered after a batch; nothing before the first."""
        memory = cls()
        if directory is not None and (directory / "numbered.parquet").is_file():
            memory.numbered.restore(pq.read_table(directory / "numbered.parquet"))
            memory.retries.restore(pq.read_table(directory / "retries.parquet"))
            births = pq.read_table(directory / "births.parquet").to_pydict()
            memory.births = [Birth(*each) for each in zip(*births.values(), strict=True)]
        return memory

    def save(self, directory: Path) -> None:
        """Write it into a directory."""
        births = list(zip(*self.births, strict=True)) if self.births else [()] * len(_BIRTHS)
        columns = [pa.array(column, field.type) for column, field in zip(births, _BIRTHS, strict=True)]
        pq.write_table(self.numbered.table(), directory / "numbered.parquet", compression="zstd")
        pq.write_table(self.retries.table(), directory / "retries.parquet", compression="zstd")
        pq.write_table(pa.table(columns, _BIRTHS), directory / "births.parquet", compression="zstd")

    def learn(self, births: list[Birth]) -> None:
        """Remember the births of a batch."""
        if births:
            self.births = latest([*self.births, *births])

    def repeats(self, numbered: pa.Table | None, sent: pa.Table | None) -> list[Repeat]:
        """Which records of a batch repeat others; takes the batch into the memory."""
        return [*self._numbered(numbered), *self._sent(sent)]

    def _numbered(self, keys: pa.Table | None) -> list[Repeat]:
        if keys is None or len(keys) == 0:
            return []
        keys = _sorted(keys)
        firsts = self.numbered.firsts(
            keys["publisher"].combine_chunks(), keys["run"].combine_chunks(), keys["number"].to_numpy()
        )
        places = np.flatnonzero(firsts != NEW)
        shards, offsets = keys["shard"].take(pa.array(places)).to_pylist(), keys["offset"].to_numpy()
        return [
            Repeat(shard, int(offsets[place]), "seq", None if firsts[place] == BEFORE else int(offsets[firsts[place]]))
            for shard, place in zip(shards, places, strict=True)
        ]

    def _sent(self, keys: pa.Table | None) -> list[Repeat]:
        if keys is None or len(keys) == 0:
            return []
        records = [Sent(*each) for each in zip(*_sorted(keys).select(Sent._fields).to_pydict().values(), strict=True)]
        firsts = self.retries.firsts(records)
        return [
            Repeat(record.shard, record.offset, "retry", first)
            for record, first in zip(records, firsts, strict=True)
            if first is not None
        ]


def _sorted(keys: pa.Table) -> pa.Table:
    """In the order of the logs, whatever the order in which tasks ended."""
    return keys.sort_by([("shard", "ascending"), ("offset", "ascending")])
