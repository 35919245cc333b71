"""Messages without ``seq``: a record with DUP that looks like the last one of its packet id is suspected to repeat it.

A publisher sends a message again only while it has no acknowledgement, and uses its packet id for nothing else until
then.  So only the latest record of a packet id within a session can be what is sent again, and only among the last ones
of the session: as many as a publisher may leave unacknowledged.  A suspicion it remains: a message may get lost before
it is logged, and its retry may look like the record before it that used the same packet id.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Final, NamedTuple

import pyarrow as pa

#: Records remembered of one session (a broker lets so many be unacknowledged unless told otherwise), and sessions
#: remembered; the oldest are forgotten first.
MOST_RECORDS: Final = 1_024
MOST_SESSIONS: Final = 10_000
#: Records remembered of all sessions, about: many sessions share them, and each has its last few in any case.
_MOST_TOTAL: Final = 250_000
_FEW: Final = 16

_SCHEMA: Final = pa.schema(
    [
        ("shard", pa.string()),
        ("publisher", pa.string()),
        ("epoch", pa.int64()),
        ("packet_id", pa.int32()),
        ("digest", pa.binary()),
        ("offset", pa.int64()),
    ]
)


class Sent(NamedTuple):
    """What counts of a record with QoS 1 and without ``seq``."""

    shard: str
    publisher: str
    epoch: int
    packet_id: int
    digest: bytes
    offset: int
    dup: bool


class _Last(NamedTuple):
    digest: bytes
    offset: int


_Session = tuple[str, str, int]


class Retries:
    """The last records of each session, by packet id."""

    def __init__(self, *, most_records: int = MOST_RECORDS, most_sessions: int = MOST_SESSIONS) -> None:
        self._sessions: OrderedDict[_Session, OrderedDict[int, _Last]] = OrderedDict()
        self._most_records = most_records
        self._most_sessions = most_sessions

    def __len__(self) -> int:
        return sum(map(len, self._sessions.values()))

    def firsts(self, records: Sequence[Sent]) -> list[int | None]:
        """For each record of a log, in its order: the offset of the record that it seems to repeat, or None."""
        return [self._first(record) for record in records]

    def _first(self, record: Sent) -> int | None:
        key = (record.shard, record.publisher, record.epoch)
        session = self._sessions.setdefault(key, OrderedDict())
        self._sessions.move_to_end(key)
        if len(self._sessions) > self._most_sessions:
            self._sessions.popitem(last=False)
        last = session.pop(record.packet_id, None)
        is_retry = record.dup and last is not None and last.digest == record.digest
        session[record.packet_id] = last if last is not None and is_retry else _Last(record.digest, record.offset)
        most = min(self._most_records, max(_FEW, _MOST_TOTAL // len(self._sessions)))
        while len(session) > most:
            session.popitem(last=False)
        return last.offset if last is not None and is_retry else None

    def table(self) -> pa.Table:
        """The state, to be kept."""
        rows = [
            (*key, packet_id, last.digest, last.offset)
            for key, session in self._sessions.items()
            for packet_id, last in session.items()
        ]
        columns = list(zip(*rows, strict=True)) if rows else [()] * len(_SCHEMA)
        return pa.table([pa.array(column, field.type) for column, field in zip(columns, _SCHEMA, strict=True)], _SCHEMA)

    def restore(self, table: pa.Table) -> None:
        """Take over a state that was kept."""
        self._sessions.clear()
        for shard, publisher, epoch, packet_id, digest, offset in zip(*table.to_pydict().values(), strict=True):
            session = self._sessions.setdefault((shard, publisher, epoch), OrderedDict())
            session[packet_id] = _Last(digest, offset)
