"""Connections that are not read for a while, and how they go on.

A packet that cannot be decided yet stays where it is, in ``conn.partial``, with everything behind it; when the reason
is gone, all of it is parsed again.  Nothing of what a held packet would have changed has happened.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from tieline.core.account import Account, Event
from tieline.core.client import CLOSING, CONNECTED, Changed, Connection, Hold
from tieline.core.receiver import Receiver
from tieline.core.timers import Timers
from tieline.core.work import Work


class Holds:
    """Suspends and resumes connections; nothing else sets ``conn.hold``."""

    __slots__ = (
        "_account",
        "_behind",
        "_changed",
        "_timers",
        "_waiting",
        "_work",
        "on_overdue",
        "parse",
        "pause_max_s",
    )

    def __init__(self, changed: Changed, timers: Timers, work: Work, account: Account, pause_max_s: float) -> None:
        self._changed = changed
        self._timers = timers
        self._work = work
        self._account = account
        #: How long a connection may be held by others before it is given up.
        self.pause_max_s = pause_max_s
        #: Connections that wait for the store, or for what is to be routed.
        self._behind: list[Connection] = []
        #: Connections that wait for room at a receiver, in the order in which they go on.
        self._waiting: dict[Receiver, deque[Connection]] = {}
        #: Parses what a connection had sent when it was held.
        self.parse: Callable[[Connection, bytes, float], None]
        #: Called when a hold has lasted too long, with the reason in words and whether they name another client.
        self.on_overdue: Callable[[Connection, str, bool, float], None]

    # -- begin

    def suspend(self, conn: Connection, why: Hold, now: float) -> None:
        """Stop reading from a connection until :meth:`resume`."""
        conn.hold = why
        self._account.holds[why] += 1
        # every client of a store waits for it once, and subscribers of joined brokers for those: nothing to tell
        if now >= conn.told_hold + 1.0 and why not in (Hold.COMMIT, Hold.PEERS, Hold.HOME):
            conn.told_hold = now
            self._account.tell(Event("held", conn.client_id, conn.peer, why.value, why=why.value))
        if why not in (Hold.NOT_READING, Hold.RATE) and conn.hold_timer is None:
            conn.hold_timer = self._timers.at(
                now + self.pause_max_s, lambda due: self.on_overdue(conn, *_overdue(conn), due)
            )
        self._changed.mark(conn)

    def wait_for_room(self, conn: Connection, receiver: Receiver, now: float) -> None:
        """Stop reading from a connection until a receiver has room for what it sent."""
        if conn.waits_for is not receiver:
            conn.waits_for = receiver
            receiver.is_awaited = True
            self._waiting.setdefault(receiver, deque()).append(conn)
        self.suspend(conn, Hold.QUEUE_FULL, now)

    def postpone(self, conn: Connection) -> None:
        """Go on with a connection after the others have had their turn."""
        conn.hold = Hold.TURN
        self._work.later(lambda due: self._resume_in_turn(conn, due))
        self._changed.mark(conn)

    def _resume_in_turn(self, conn: Connection, now: float) -> None:
        if conn.hold is Hold.TURN:
            self.resume(conn, now)

    def wait_for_store(self, conn: Connection, now: float) -> None:
        """Stop reading from a connection until the store has caught up."""
        self.suspend(conn, Hold.STORE, now)
        self._behind.append(conn)

    def pace(self, conn: Connection, messages: int, size: int, now: float) -> None:
        """Charge what a connection has sent; one that is too fast is not read for a while."""
        wait_s = max(meter.charge(messages, size, now) for meter in conn.meters)
        if wait_s > 0 and conn.state is CONNECTED and conn.hold is None:
            self.suspend(conn, Hold.RATE, now)
            self._timers.at(now + wait_s, lambda due: self._read_if_paid(conn, due))

    def _read_if_paid(self, conn: Connection, now: float) -> None:
        """Read it again, unless others of its user have spent what it waited for."""
        if conn.hold is not Hold.RATE:
            return
        wait_s = max((meter.debt_s(now) for meter in conn.meters), default=0.0)
        if wait_s > 0:
            self._timers.at(now + wait_s, lambda due: self._read_if_paid(conn, due))
        else:
            self.resume(conn, now)

    # -- end

    def resume(self, conn: Connection, now: float) -> None:
        """Go on with a connection that was held: what it had sent is parsed now."""
        if conn.hold is None or conn.state is CLOSING:
            return
        data, deadline = conn.release()
        if data or conn.unfinished is not None:
            self.parse(conn, data, now)
        if conn.hold_timer is not None and len(conn.partial) == len(data):
            # held again, without any progress: the first deadline stands
            self._timers.cancel(conn.hold_timer)
            conn.hold_timer = deadline
        else:
            self._timers.cancel(deadline)
        self._changed.mark(conn)

    def resume_soon(self, conn: Connection, why: Hold) -> None:
        """The same in the next turn, if it is still held for this reason then."""
        self._timers.soon(lambda due: self.resume(conn, due) if conn.hold is why else None)

    def resume_those_behind(self) -> None:
        """There is no longer too much to be made permanent or to be routed."""
        behind, self._behind = self._behind, []
        for conn in behind:
            self.resume_soon(conn, Hold.STORE)

    def release_publishers(self, receiver: Receiver, now: float) -> None:
        """There is room at a receiver again: its waiting publishers go on, one after the other while the room lasts.

        In the next turn, not from inside a write.
        """
        waiting = self._waiting.get(receiver)
        while waiting:
            conn = waiting.popleft()
            conn.waits_for = None
            if conn.hold is Hold.QUEUE_FULL:
                self._timers.soon(lambda due, conn=conn: self._release(conn, receiver, due))  # type: ignore[misc]  # a default binds
                break
        self._tidy(receiver)

    def _release(self, conn: Connection, receiver: Receiver, now: float) -> None:
        self.resume(conn, now)
        if receiver.is_half_empty or receiver.is_over:
            self.release_publishers(receiver, now)

    def _tidy(self, receiver: Receiver) -> None:
        if not self._waiting.get(receiver):
            self._waiting.pop(receiver, None)
            receiver.is_awaited = False

    def forget(self, conn: Connection) -> None:
        """A connection ends: it waits for nothing any more."""
        self._timers.cancel(conn.hold_timer)
        conn.hold_timer = conn.unfinished = None
        conn.unfinished_bytes = 0
        receiver, conn.waits_for = conn.waits_for, None
        if receiver is not None:
            self._waiting[receiver].remove(conn)
            self._tidy(receiver)


def _overdue(conn: Connection) -> tuple[str, bool]:
    """What a connection waited for in vain, in words, and whether they name another client."""
    if conn.waits_for is not None:
        return f"the queue of {conn.waits_for.client_id} stayed full", True
    if conn.hold in (Hold.PEERS, Hold.HOME):
        return "other brokers did not answer", False
    if conn.hold in (Hold.COMMIT, Hold.STORE):
        return "the store did not keep up", False
    return "no access decision came", False
