"""A node among brokers and the core that it stands on: what both take, and what they make permanent together.

Bytes of peers are handled in shares of a turn, as those of clients are.  A node seals its facts in the batch that has
what the core did in the same turn, so a broker that dies has both or neither; without a store nothing outlives the
process, and all of it holds at once.
"""

from __future__ import annotations

from functools import partial

from tieline.core.broker import Broker
from tieline.overlay.carrier.notes import Notes
from tieline.overlay.grants import Grants
from tieline.overlay.node import Node
from tieline.overlay.receivers.incoming import Incoming


class Side:
    """What is the same for a broker among those of its region, and for a gateway among gateways."""

    node: Node
    #: What others bring, on its way to those who want it here.
    incoming: Incoming
    #: What waits until others know of some subscriptions.
    grants: Grants

    def __init__(self, core: Broker, *, prefix: bytes = b"") -> None:
        """Keys of what is noted begin with ``prefix`` where a core has several nodes."""
        self._core = core
        self._written = Notes()
        self._prefix = prefix
        #: The time of what is being handled.
        self.now = 0.0

    def receive(self, handle: int, data: bytes, now: float) -> bool:
        """Bytes have come from a peer, of which as much is done as a share of a turn allows.

        True if some wait for :meth:`go_on`; nothing more should be read before that.
        """
        self._core.work.enough()
        self.now = now
        is_behind = self.node.receive(handle, data, now)
        self._settle(now)
        return is_behind

    def go_on(self, handle: int, now: float) -> bool:
        """Others have had their turn: look at more of what has come; whether something still waits."""
        self._core.work.enough()
        self.now = now
        is_behind = self.node.go_on(handle, now)
        self._settle(now)
        return is_behind

    def _spend(self, units: int) -> bool:
        work = self._core.work
        work.did(units)
        return self.incoming.is_behind or work.is_spent()

    def _settle(self, now: float) -> None:
        if self._core.journal.is_volatile:
            while (sealed := self.node.seal()) is not None:
                self.node.committed(sealed[0], now)
        self.grants.take()

    def _seal_node(self) -> None:
        """What is owed, and how far streams have come, become part of the batch."""
        sealed = self.node.seal()
        if sealed is None:
            return
        token, facts = sealed
        journal = self._core.journal
        for key, value in self._written.write(facts):
            journal.note(self._prefix + key, value)
        journal.then(partial(self._committed, token))

    def _committed(self, token: int) -> None:
        self.node.committed(token, self.now)
