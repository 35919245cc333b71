"""How a broker behaves on the ring: how often it looks around, how many it knows, and how long it waits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

#: In front of the keys of everything that a broker on a ring notes in its store.
NOTE: Final = b"Y"


@dataclass(frozen=True, slots=True, kw_only=True)
class RingSettings:
    """All times in seconds."""

    #: How often a broker looks after its successor and its fingers; changes are pushed at once all the same.
    stabilise_s: float = 2.0
    #: Periods without a sign of life after which a peer counts as dead.
    patience: float = 2.5
    #: Brokers behind it that a broker knows, so that so many neighbours may die at once.
    successors: int = 8
    #: Bytes up to which it is told of an arc who wants what in it; beyond that, what is wanted.
    account_bytes: int = 2_048
    #: How long a subscription waits for everybody's echo before it is acknowledged all the same, and counted.
    growth_s: float = 5.0
    #: How long after a watcher has died its part of a growth counts as done.  It gave its last word to others up to a
    #: period later, they look once a period, and what they are told instead goes through a few brokers.
    margin_s: float = 4.5
    #: How long less is wanted before others are told so.
    shrink_s: float = 5.0
    #: After which an assured batch that has not been settled is handed over again.
    again_s: float = 4.0
    #: Messages and bytes of one assured batch.
    batch_events: int = 64
    batch_bytes: int = 65_536
    #: Bytes of assured messages that one broker may owe; beyond that it takes no more.
    owed_bytes: int = 16_777_216
    #: Batches that a broker may be carrying for others, and batches and positions of others that it remembers.
    tasks: int = 4_096
    remembered: int = 65_536

    @property
    def lease_s(self) -> float:
        """How long after the last sign of life a peer counts as dead."""
        return self.patience * self.stabilise_s


#: The paper stabilises every 60 ms; what that costs is measured (`tieline bench overlay --only ring`).
PAPER: Final = RingSettings(stabilise_s=0.06, patience=10.0)
