"""What must be permanent before it is acknowledged.

Handlers note facts and hand their acknowledgements over; when a chunk is done the facts go to the store as one batch,
and the acknowledgements leave once the store has committed it.  With a store that keeps nothing they leave at once.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from tieline.core.ports import Fact

if TYPE_CHECKING:
    from tieline.core.connection import Connection
    from tieline.core.ports import Store


class Journal:
    """Facts of the current chunk, and acknowledgements that wait for a commit."""

    __slots__ = ("_acks", "_facts", "_last", "_store", "_waiting", "is_volatile")

    def __init__(self, store: Store) -> None:
        self._store = store
        #: Nobody will read the facts: do not make them.
        self.is_volatile = store.is_volatile
        self._facts: list[Fact] = []
        #: Acknowledgements of the current chunk.
        self._acks: list[tuple[Connection, bytes, bool]] = []
        #: Sealed acknowledgements, oldest first, with the token they wait for.
        self._waiting: deque[tuple[int, Connection, bytes, bool]] = deque()
        self._last = 0

    def note(self, kind: str, session: str = "", subject: object = None) -> None:
        """Add a fact to the batch; callers skip this when the journal is volatile."""
        self._facts.append(Fact(kind=kind, session=session, subject=subject))

    def acknowledge(self, conn: Connection, data: bytes, *, counts: bool = False) -> None:
        """Send ``data`` when everything noted so far is permanent; until then it ``counts`` as unacknowledged."""
        if self.is_volatile:
            conn.say(data)
        else:
            conn.unacknowledged += counts
            self._acks.append((conn, data, counts))

    def seal(self) -> list[Connection]:
        """Hand the batch over; the connections whose acknowledgements may leave."""
        if self._facts:
            self._last = self._store.submit(self._facts)
            self._facts = []
        if not self._acks:
            return []
        self._waiting.extend((self._last, *ack) for ack in self._acks)
        self._acks = []
        return self.committed(self._store.committed)

    def committed(self, token: int) -> list[Connection]:
        """Everything up to this token is permanent; the connections whose acknowledgements may leave."""
        released: list[Connection] = []
        waiting = self._waiting
        while waiting and waiting[0][0] <= token:
            _, conn, data, counts = waiting.popleft()
            conn.unacknowledged -= counts
            if not conn.closing:
                conn.say(data)
                released.append(conn)
        return released
