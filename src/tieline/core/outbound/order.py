"""Whether order matters in a queue, and whose policy then decides.

Most of the time nobody has asked for an order, and every queue is first in, first out.  Order matters everywhere while
the configuration says so (topic rules, claims, another policy) or somebody has given a table of heat.  Otherwise it
matters in those queues in which something more or less urgent than usual waits, for as long as it does: one client's
urgent message changes nothing for those who do not get it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from tieline.core.account import Account
from tieline.core.backlog import Backlog, is_congested
from tieline.core.client import Connection, Session
from tieline.core.message import Queued
from tieline.core.receiver import Entry
from tieline.core.routing.priorities import Priorities
from tieline.sched.levels import URGENT, Patience
from tieline.sched.policies import make
from tieline.sched.policy import WindowState
from tieline.sched.queue import Queue

#: One place in the in-flight window of eight is kept for urgent messages.
_RESERVE: Final = 8
#: Packet ids that a session can have in use.
PACKET_IDS: Final = 65_535


class Order:
    """Decides between first in, first out and the configured policy, queue by queue."""

    __slots__ = ("_account", "_policy", "_priorities")

    def __init__(self, policy: str, priorities: Priorities, account: Account) -> None:
        self._policy = policy
        self._priorities = priorities
        self._account = account

    def matters_in(self, queue: Queue[Entry]) -> bool:
        """Whether order matters in this queue now."""
        return queue.is_mixed or self._priorities.always_matter

    def is_due(self, session: Session, conn: Connection, now: float) -> bool:
        """Whether the policy should take a queue over: order matters in it, and its receiver is congested."""
        queue = session.queue
        if session.backlog is not None:
            return True
        if not queue.is_mixed and not self._priorities.always_matter:
            return False
        line = queue.blocked or queue.entries
        return bool(line) and is_congested(conn.path, line[0], now)

    def engage(self, session: Session, now: float) -> Backlog:
        """Hand what waits for a session to the policy, or what has come since then."""
        backlog = session.backlog
        if backlog is None:
            rules = self._priorities.classes.rules
            if session.patience is not None:
                rules = replace(rules, patience=session.patience)
            backlog = session.backlog = Backlog(make(self._policy, rules), self._priorities.classes.is_ordered)
            self._account.congestions += 1
        backlog.absorb(session.queue, now)
        return backlog

    @staticmethod
    def heed(session: Session, patience: Patience | None) -> None:
        """A subscriber asks for something else for its low classes."""
        session.patience = patience
        if patience is not None and session.backlog is not None:
            session.backlog.policy.heed(patience)

    # -- the in-flight window, of which one part is for urgent messages

    def reserve_of(self, session: Session, conn: Connection, level: int | None = None) -> int:
        """Places in the window that only urgent messages may take, so that bulk never takes the last.

        With a message of this ``level`` in the queue, which by itself may make order matter there.
        """
        is_mixed = level is not None and level != self._priorities.default_level
        if conn.window <= 1 or not (is_mixed or self.matters_in(session.queue)):
            return 0
        return max(1, conn.window // _RESERVE)

    def window_of(self, session: Session, conn: Connection) -> WindowState:
        """What the window still takes."""
        if not conn.quota or len(session.inflight) >= PACKET_IDS:
            return WindowState.CLOSED
        return WindowState.OPEN if conn.quota > self.reserve_of(session, conn) else WindowState.URGENT_ONLY

    def stops(self, session: Session, conn: Connection, item: Queued, taken: int = 0) -> bool:
        """Whether the window has no place for a QoS 1 or 2 message, or none but for an urgent one.

        The message is in the queue, or would be; so many places would be taken before it is its turn.
        """
        quota = conn.quota - taken
        if len(session.inflight) + taken >= PACKET_IDS:
            return True
        if quota > 1 and quota > conn.window // _RESERVE:
            # more is free than is ever kept
            return False
        return quota <= 0 or (item.level < URGENT and quota <= self.reserve_of(session, conn, item.level))
