"""Questions to access control, whose answers may take their time."""

from __future__ import annotations

from collections.abc import Iterable

from tieline.core.client import CLOSING, Again, Connection, Hold
from tieline.core.holdings import Kind
from tieline.core.inbound.holds import Holds
from tieline.core.ports import Access, Allowed, Judge, Login, Pending, Refused, Verdict, Weighed
from tieline.core.routing.routes import RESERVED, Routes
from tieline.core.work import Work


class Questions:
    """Asks on behalf of connections, and holds those whose answers are pending."""

    __slots__ = ("_effort", "_holds", "_max_topic_levels", "_pending", "_routes", "_work", "access", "judgement")

    def __init__(self, access: Access, routes: Routes, holds: Holds, work: Work, max_topic_levels: int) -> None:
        self.access = access
        self._routes = routes
        self._holds = holds
        self._work = work
        #: What one question counts towards the work of a turn.
        self._effort = 0
        self._max_topic_levels = max_topic_levels
        #: Grows whenever access begins to decide otherwise than before.
        self.judgement = 0
        #: Who waits for the answer with a token.
        self._pending: dict[int, Connection] = {}

    def ask(self, conn: Connection, what: str, subject: str, now: float) -> Allowed | Refused:
        """The verdict on what a client wants; raises Again, with the connection held, while it is pending."""
        login = conn.login
        assert login is not None
        verdict: Verdict | None = conn.verdicts.get((what, subject))
        if verdict is None:
            self._work.did(self._effort)
            verdict = self.verdict(login, what, subject)
        if isinstance(verdict, Pending):
            conn.asked[verdict.token] = (what, subject)
            self._pending[verdict.token] = conn
            self._holds.suspend(conn, Hold.VERDICT, now)
            raise Again
        return verdict

    def verdict(self, login: Login, what: str, subject: str) -> Verdict:
        """What access says, or the broker in its place: nobody is held for it."""
        if what == "connect":
            return self.access.connect(login)
        if what == "subscribe":
            return self.access.subscribe(login, subject)
        return (
            Refused("$SYS belongs to the broker")
            if subject.startswith(RESERVED)
            else self.access.publish(login, subject)
        )

    def decided(self, token: int, verdict: Allowed | Refused, now: float) -> None:
        """A pending question was answered."""
        conn = self._pending.pop(token, None)
        if conn is None or conn.state is CLOSING:
            return
        conn.verdicts[conn.asked.pop(token)] = verdict
        if conn.hold is Hold.VERDICT:
            self._holds.resume(conn, now)

    def forget(self, conn: Connection) -> None:
        """A connection ends: it waits for no answer any more."""
        for token in conn.asked:
            self._pending.pop(token, None)

    @staticmethod
    def forget_rights(conn: Connection) -> None:
        """Nothing is known of what a connection may publish to; it is asked about again."""
        conn.publishable.clear()
        conn.owner.give(Kind.RIGHTS, conn.right_bytes)
        conn.right_bytes = 0

    def guard(self, conn: Connection) -> None:
        """Look at the topics of a connection one by one where they may have to be refused."""
        self.forget_rights(conn)
        is_shallow = conn.allowance.topic_levels < self._max_topic_levels
        conn.is_guarded = is_shallow or not self.access.is_open

    def begin_anew(self, connections: Iterable[Connection], max_topic_levels: int) -> None:
        """Access decides otherwise than before, or for the first time: nothing remembered of its verdicts holds."""
        self._max_topic_levels = max_topic_levels
        self.judgement += 1
        access = self.access
        self._effort = access.effort if isinstance(access, Weighed) else 0
        self._routes.judge = access if isinstance(access, Judge) and not access.is_open else None
        self._routes.reset()
        for conn in connections:
            conn.verdicts.clear()
            self.guard(conn)
