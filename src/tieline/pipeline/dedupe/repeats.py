"""Which records of a batch repeat earlier ones: the keys that tasks take out of them, and what ingest remembers.

The memory is kept as Parquet files next to the state of each batch, and lands with it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tieline.pipeline.decode.births import Birth, latest
from tieline.pipeline.decode.records import seq_numbers, seq_texts
from tieline.pipeline.dedupe.numbered import BEFORE, NEW, Numbered
from tieline.pipeline.dedupe.retries import MOST_RECORDS, Retries, Sent

_NUMBERED: Final = ("shard", "offset", "publisher")
_SENT: Final = ("shard", "offset", "publisher", "epoch", "packet_id", "digest", "dup")


class Keys(NamedTuple):
    """The keys of some records, in the order of the log."""

    #: shard, offset, publisher, run, number: of every record with ``seq``.
    numbered: pa.Table
    #: What :class:`tieline.pipeline.dedupe.retries.Sent` has, of records with QoS 1 and without ``seq``: the last ones
    #: of each session, and all of a session in which anything was sent again.
    sent: pa.Table


def keys(records: pa.Table, most: int = MOST_RECORDS) -> Keys:
    """The keys of a portion of records that is in the order of the log; ``most`` are remembered of a session."""
    run, number = seq_numbers(seq_texts(records["raw_properties"].combine_chunks()))
    has = pc.is_valid(number)
    numbered = records.select(_NUMBERED).append_column("run", run).append_column("number", number).filter(has)
    sent = records.filter(pc.and_(pc.equal(records["qos"], 1), pc.invert(has))).select(_SENT)
    return Keys(numbered, _last(sent, most))


def _last(sent: pa.Table, most: int) -> pa.Table:
    """Leave out what later records of the same session make irrelevant."""
    if len(sent) <= most:
        return sent
    session = _sessions(sent)
    again = np.unique(session[np.asarray(sent["dup"].combine_chunks().to_numpy(zero_copy_only=False), bool)])
    keep = np.isin(session, again)
    # from the end: the first of each packet id, and of those as many as a session remembers
    packet = sent["packet_id"].combine_chunks().to_numpy(zero_copy_only=False).astype(np.int64)
    backwards = (session * 65_536 + packet)[::-1]
    latest = np.zeros(len(sent), bool)
    latest[len(sent) - 1 - np.unique(backwards, return_index=True)[1]] = True
    latest &= ~keep
    places = np.flatnonzero(latest)[::-1]
    order = np.argsort(session[places], kind="stable")
    ranked = session[places][order]
    begins = np.concatenate(([0], np.flatnonzero(np.diff(ranked)) + 1)) if len(ranked) else np.empty(0, np.int64)
    counts = np.diff(np.concatenate((begins, [len(ranked)]))) if len(ranked) else np.empty(0, np.int64)
    rank = np.arange(len(ranked)) - np.repeat(begins, counts)
    keep[places[order][rank < most]] = True
    return sent.filter(pa.array(keep))


def _sessions(sent: pa.Table) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """A number for each shard, publisher and epoch."""
    number = np.zeros(len(sent), np.int64)
    for name in ("shard", "publisher", "epoch"):
        encoded = sent[name].combine_chunks().dictionary_encode()
        number = number * len(encoded.dictionary) + encoded.indices.to_numpy(zero_copy_only=False)
        number = np.unique(number, return_inverse=True)[1]
    return number


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


class IngestMemory:
    """What ingest remembers between batches: the numbers seen, the last records of sessions, Sparkplug's births."""

    def __init__(self) -> None:
        self.numbered = Numbered()
        self.retries = Retries()
        self.births: list[Birth] = []

    @classmethod
    def restored(cls, directory: Path | None) -> IngestMemory:
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
