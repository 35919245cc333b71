"""The question that every way of dispatching answers: who gets a copy of what has been published, or has just come.

A way that goes by arcs visits everybody at most once, whoever is asked to pass on, so that acknowledgements can be
gathered backwards and a lost hand-over can be made again: it keeps promises.  The others are there to compare with:
they know who has seen a publication only from a list or from memory, and nobody knows when it has been everywhere.
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple, Protocol

from tieline.overlay.ring.messages import Data, Peer
from tieline.overlay.ring.table import Finger, Table


class Onward(NamedTuple):
    """What becomes of a publication at one broker."""

    copies: list[tuple[Peer, Data]]
    #: Places between here and the successor, of which nobody is known: both ends of each, as identifiers.
    gaps: list[tuple[int, int]]


class Dispatch(Protocol):
    """Chooses among the fingers of a table."""

    name: ClassVar[str]
    #: Whether it goes by arcs, so that everybody is visited once and acknowledgements can be gathered.
    keeps_promises: ClassVar[bool]

    def watched_end(self, table: Table, finger: Finger) -> int:
        """Up to which place a finger is asked to tell what is wanted."""
        ...

    def onward(self, table: Table, data: Data, came_from: int) -> Onward:
        """The copies that leave here; the origin's own publication has come from itself."""
        ...


def passed_on(data: Data, **changed: object) -> Data:
    """A publication one hop further."""
    return data._replace(hops=data.hops + 1, **changed)  # type: ignore[arg-type]  # the fields are the caller's
