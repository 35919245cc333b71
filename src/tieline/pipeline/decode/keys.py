"""What the search for repeats needs of a portion of records: as little as gives the same answer as all of them."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tieline.pipeline.decode import sequence
from tieline.pipeline.dedupe.retries import MOST_RECORDS

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
    run, number = sequence.numbers(sequence.texts(records["raw_properties"].combine_chunks()))
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
