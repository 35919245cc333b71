"""A message for very many clients that are away: it is queued for them in portions, and nobody can tell.

Theory of operation
-------------------
To queue one message for twenty thousand sessions takes a tenth of a second.  Nothing goes out of the queue of a session
whose client is away, so it need not be there at once: the sessions are kept with how each gets it, and the message is
queued for a share of them in each turn.  Whoever would see that something is missing has it queued before
(:meth:`Late.settle`): another message comes for the session, somebody asks whether it has room, its client comes back,
it ends, or it is handed to another broker.  So each queue holds the same messages in the same order as without this.

One message at a time is put off.  The publisher of the next one for as many waits for its turn; what has no publisher
that could wait is queued in one go.  Whoever is to be told that a message was taken is told when it is in all queues:
what the store has to know of it is noted by then, and becomes permanent before the answer goes out.

The store forgets a message that nobody waits for any more, and those who have it may have acknowledged it before the
others get it.  So where it has a number there, each portion is a message of its own.

What the store must learn in one batch is not put off: messages that are routed after they were taken over
(:mod:`tieline.core.inbound.taken_over`).
"""

from __future__ import annotations

from tieline.core.client import Session
from tieline.core.message import Message
from tieline.core.receiver import Grant
from tieline.core.routing.route import Route
from tieline.core.work import Work

#: What keeping a session for later counts towards the work of a turn.
KEPT_PER_WORK = 2


class Late:
    """The message that is being queued in portions, and for whom it still is to be."""

    __slots__ = ("_is_due", "_message", "_now", "_work", "rest")

    def __init__(self, work: Work) -> None:
        self._work = work
        #: The sessions that are to get it, and how.  Empty while nothing is put off.
        self.rest: dict[Session, Grant] = {}
        self._message: Message | None = None
        #: When it was accepted.
        self._now = 0.0
        #: The next portion is put off already.
        self._is_due = False

    def put_off(self, message: Message, route: Route, now: float) -> int:
        """Queue a message for everyone on a simple route, later for those who are away; the number of receivers."""
        assert not self.rest, "one message at a time"
        rest = self.rest
        for grant in route.grants:
            receiver = grant.receiver
            # whoever has come from another broker may have to wait for what is on its way from there
            if isinstance(receiver, Session) and receiver.connection is None and not receiver.is_diverted:
                rest[receiver] = grant
            else:
                receiver.offer(message, grant, now)
        route.away = len(rest)
        self._work.did(len(route.grants) // KEPT_PER_WORK)
        if rest:
            self._message, self._now = message, now
            self._come_back()
        return len(route.grants)

    def is_under_way(self, message: Message) -> bool:
        """Whether a message is not in all queues yet."""
        return self._message is message

    def _come_back(self) -> None:
        if not self._is_due:
            self._is_due = True
            self._work.later(self._go_on)

    def _go_on(self, now: float) -> None:
        """Queue it for some more."""
        self._is_due = False
        if not self.rest:
            return  # all of them were asked for
        enough = self._work.enough()
        try:
            message = self._portion()
            while self.rest and self._work.done <= enough:
                session, grant = self.rest.popitem()
                session.offer(message, grant, now)
        finally:
            # also after a fault of our own: the others get it
            if self.rest:
                self._come_back()
            else:
                self._message = None

    def settle(self, session: Session) -> None:
        """Queue what was put off for a session, before anything else happens to it."""
        grant = self.rest.pop(session, None)
        if grant is not None:
            session.offer(self._portion(), grant, self._now)
            if not self.rest:
                self._message = None

    def finish(self, now: float) -> None:
        """Queue all of it at once: the broker ends."""
        while self.rest:
            session, grant = self.rest.popitem()
            session.offer(self._portion(), grant, now)
        self._message = None

    def _portion(self) -> Message:
        """The message for some of those who are to get it."""
        message = self._message
        assert message is not None
        return message.afresh() if message.number else message
