"""Questions to access control, whose answers may take their time."""

from __future__ import annotations

from collections.abc import Iterable

from tieline.core.client import CLOSING, Again, Connection, Hold
from tieline.core.inbound.holds import Holds
from tieline.core.ports import Access, Allowed, Judge, Login, Pending, Refused, Verdict
from tieline.core.routing.routes import RESERVED, Routes


class Questions:
    """Asks on behalf of connections, and holds those whose answers are pending."""

    __slots__ = ("_holds", "_max_topic_levels", "_pending", "_routes", "access")

    def __init__(self, access: Access, routes: Routes, holds: Holds, max_topic_levels: int) -> None:
        self.access = access
        self._routes = routes
        self._holds = holds
        self._max_topic_levels = max_topic_levels
        #: Who waits for the answer with a token.
        self._pending: dict[int, Connection] = {}

    def ask(self, conn: Connection, what: str, subject: str, now: float) -> Allowed | Refused:
        """The verdict on what a client wants; raises Again, with the connection held, while it is pending."""
        login = conn.login
        assert login is not None
        verdict: Verdict | None = conn.verdicts.get((what, subject))
        if verdict is None:
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

    def guard(self, conn: Connection) -> None:
        """Look at the topics of a connection one by one where they may have to be refused."""
        conn.publishable.clear()
        is_shallow = conn.allowance.topic_levels < self._max_topic_levels
        conn.is_guarded = is_shallow or not self.access.is_open

    def begin_anew(self, connections: Iterable[Connection], max_topic_levels: int) -> None:
        """Access decides otherwise than before, or for the first time: nothing remembered of its verdicts holds."""
        self._max_topic_levels = max_topic_levels
        access = self.access
        self._routes.judge = access if isinstance(access, Judge) and not access.is_open else None
        self._routes.reset()
        for conn in connections:
            self.guard(conn)
