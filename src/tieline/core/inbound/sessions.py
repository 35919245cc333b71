"""All sessions of a broker: how they begin, lose their connection, and end."""

from __future__ import annotations

from typing import Final

from tieline.conf.quantities import bound
from tieline.conf.schema import Settings
from tieline.core.account import Account, Event
from tieline.core.client import NEVER, Connection, Session
from tieline.core.durable.journal import Journal
from tieline.core.elsewhere import NOWHERE, Elsewhere
from tieline.core.holdings import Holdings, Kind, Owner, session_bytes
from tieline.core.inbound.holds import Holds
from tieline.core.inbound.remains import Remains
from tieline.core.inbound.will import Wills
from tieline.core.outbound.deliver import Delivery
from tieline.core.outbound.replay import Replays
from tieline.core.receiver import Entry
from tieline.core.routing.routes import Routes
from tieline.core.timers import Timer, Timers
from tieline.core.work import Work
from tieline.sched.queue import Queue

#: The name of the end of a session that had no room for a message while its client was away.
ABSENT_FULL: Final = "absent_full"
#: What the end of a session counts towards the work of a turn, beside what it had.
WORK_PER_END: Final = 200


class Sessions:
    """Every session, whether its client is connected or not."""

    __slots__ = (
        "_account",
        "_delivery",
        "_holdings",
        "_holds",
        "_journal",
        "_limits",
        "_remains",
        "_replays",
        "_routes",
        "_timers",
        "_wills",
        "_work",
        "by_id",
        "elsewhere",
    )

    def __init__(  # a session ends in every room
        self,
        settings: Settings,
        routes: Routes,
        delivery: Delivery,
        remains: Remains,
        replays: Replays,
        wills: Wills,
        holds: Holds,
        holdings: Holdings,
        journal: Journal,
        timers: Timers,
        work: Work,
        account: Account,
    ) -> None:
        self._limits = settings.limits
        self._holdings = holdings
        self._routes = routes
        self._delivery = delivery
        self._remains = remains
        self._replays = replays
        self._wills = wills
        self._holds = holds
        self._journal = journal
        self._timers = timers
        self._work = work
        self._account = account
        #: By client id.
        self.by_id: dict[str, Session] = {}
        #: Told of what becomes of them, and asked for those that are not here.
        self.elsewhere: Elsewhere = NOWHERE

    def renew(self, settings: Settings) -> None:
        """Other limits hold from now on."""
        self._limits = settings.limits
        for session in self.by_id.values():
            session.queue.limit(max_messages=bound(settings.limits.queue_messages))

    # -- begin

    def new(self, client_id: str, user: str | None, number: int | None = None) -> Session:
        """Begin a session of a user; with a number, one that the store knows."""
        limits, owner = self._limits, self._holdings.owner(user)
        queue: Queue[Entry] = Queue(bound(limits.queue_messages), bound(limits.queue_bytes), self._delivery.pool, owner)
        number = self._journal.next_session() if number is None else number
        session = self.by_id[client_id] = Session(client_id, number, queue, self._delivery, owner)
        session.user = user
        owner.sessions += 1
        owner.take(Kind.SESSIONS, session_bytes(client_id))
        self._account.sessions_most = max(self._account.sessions_most, len(self.by_id))
        return session

    def owner(self, user: str | None) -> Owner:
        """On whose account the sessions and messages of a user are kept."""
        return self._holdings.owner(user)

    def take_up(self, client_id: str, user: str | None, now: float, *, is_clean: bool) -> tuple[Session, bool]:
        """The session that a new connection continues or begins, and whether it was there before."""
        old = self.by_id.get(client_id)
        if old is not None:
            # what waits for nobody in particular was not meant for a user who comes later with that id
            if old.is_doomed:
                self.end_overflown(old, now)
                return self.new(client_id, user), False
            if not is_clean and old.user == user:
                self._timers.cancel(old.ends)
                old.ends = None
                # [MQTT-3.1.3-9] back in time: the delayed will is not sent
                self._wills.forget(old)
                # [MQTT-3.1.2-5]
                return old, True
            # [MQTT-3.1.2-4]
            self.end(old, now)
        # [MQTT-3.1.2-6]
        return self.new(client_id, user), False

    def keep(self, session: Session) -> None:
        """Let the store know the session: all of it if it outlives its connection, its will in any case."""
        if self._journal.is_volatile:
            return
        session.left = None
        if not session.expiry_s and session.is_kept and session.spill is None:
            # it ends with this connection, so nothing of it would be restored
            self._journal.forget(session)
            session.is_known = session.is_kept = False
            session.renumber(self._journal.next_session())
        if session.expiry_s or session.will is not None or session.spill is not None:
            session.is_known = True
            # what waits in the store alone has to stay there
            session.is_kept = session.expiry_s > 0 or session.spill is not None
            self._journal.session(session)

    # -- end

    def detach(self, conn: Connection, now: float) -> None:
        """A session loses its connection: it waits, or ends with it ([MQTT-3.1.2-23], [MQTT311-4.1.0-1])."""
        session = conn.session
        assert session is not None
        session.detach()
        self._wills.schedule(session, now)
        if not session.expiry_s:
            # [MQTT-4.1.0-2]
            self.end(session, now)
            return
        session.left = now
        if session.is_known:
            self._journal.session(session)
        self.expire_at(session, now + session.expiry_s)

    def expire_at(self, session: Session, when: float) -> None:
        """End a session then, unless its client comes back before; never if it is kept for ever."""
        if session.expiry_s != NEVER:
            timer = self._timers.at(
                when, lambda now: self._work.due(lambda due: self._expire(session, timer, due), now)
            )
            session.ends = timer

    def _expire(self, session: Session, timer: Timer, now: float) -> None:
        if session.ends is timer and not session.is_over:
            self._account.sessions_expired += 1
            self.end(session, now)

    def end_overflown(self, session: Session, now: float) -> None:
        """A session whose client is away had no room for a message: nobody waits for it any more."""
        if session.is_over:
            return
        queue = session.queue
        spill = session.spill
        messages, size = (0, 0) if spill is None else (spill.count, spill.bytes)
        text = f"its client is away, and {queue.messages + messages} messages, {queue.bytes + size} bytes"
        text += " were more than may wait for it"
        self._account.sessions_ended[ABSENT_FULL] += 1
        self._account.tell(Event("session_ended", session.client_id, "", text, is_trouble=True, why=ABSENT_FULL))
        self.end(session, now)

    def end(self, session: Session, now: float) -> None:
        """Forget everything about a client; what still waited for it is named, or goes to others of its group."""
        self._delivery.settle(session)
        self._timers.cancel(session.ends)
        self._wills.publish(session, now)
        if session.is_known and session.spill is None:
            self._journal.forget(session)
        elif session.is_known:
            self._journal.ended(session, now)
        was_kept = session.is_kept
        session.is_known = session.is_kept = False
        self._replays.forget(session)
        session.end()
        if self.by_id.get(session.client_id) is session:
            del self.by_id[session.client_id]
        self.elsewhere.ended(session)
        self._work.did(WORK_PER_END)
        self._remains.let_go(session, now, was_kept=was_kept)
        self._holds.release_publishers(session, now)

    def bequeathed(self, number: int, client_id: str, user: str | None) -> Session:
        """A session that had ended when the broker did, and has left something in the store."""
        owner = self._holdings.owner(user)
        limits = self._limits
        queue: Queue[Entry] = Queue(bound(limits.queue_messages), bound(limits.queue_bytes), self._delivery.pool, owner)
        session = Session(client_id, number, queue, self._delivery, owner)
        session.user = user
        session.detach()
        session.end()
        return session
