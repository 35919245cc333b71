"""What sessions that are over still have in memory: taken off the routes, and handed on or named, in portions.

A session with ten thousand subscriptions or a full queue is over at once for everybody: nothing is queued for it, no
group chooses it, its client may have a new one.  To let go of what it had takes tens of milliseconds, so that is work
like any other: a share in each turn.  Until it is done, all of it counts on the account of whoever caused it.

Where the store kept messages of a group for it, others of the group must get them in the same batch in which the store
forgets the session.  Then nothing is put off.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Final

from tieline.core.account import Drop
from tieline.core.client import Session
from tieline.core.holdings import Holdings, Kind, session_bytes
from tieline.core.inbound.estates import Estates
from tieline.core.message import Bundle, Item
from tieline.core.outbound.deliver import Delivery
from tieline.core.outbound.window import Window
from tieline.core.receiver import Entry, Grant
from tieline.core.routing.content_match import ContentMatch
from tieline.core.routing.routes import Routes
from tieline.core.work import Work

#: Subscriptions and messages that are let go at once: hundreds of sessions may end in one turn.
FEW: Final = 50
#: What letting go of one of them counts towards the work of a turn.
WORK_PER_FILTER: Final = 30
WORK_PER_ENTRY: Final = 20


class Remains:
    """Lets go of what sessions had, one session after the other."""

    __slots__ = ("_content", "_delivery", "_estates", "_holdings", "_left", "_routes", "_window", "_work")

    def __init__(  # what a session has something in
        self,
        routes: Routes,
        content: ContentMatch,
        delivery: Delivery,
        estates: Estates,
        window: Window,
        holdings: Holdings,
        work: Work,
    ) -> None:
        self._routes = routes
        self._content = content
        self._delivery = delivery
        self._estates = estates
        self._window = window
        self._holdings = holdings
        self._work = work
        #: Those that are let go in portions, and how far that is; oldest first.
        self._left: deque[tuple[Session, Iterator[None]]] = deque()

    def __iter__(self) -> Iterator[Session]:
        """The sessions of which something is left."""
        return iter([session for session, _ in self._left])

    def let_go(self, session: Session, now: float, *, was_kept: bool) -> None:
        """A session is over: nothing of it is left after this, or after some more turns."""
        portions = self._portions(session, now)
        if not _may_wait(session, was_kept=was_kept):
            for _ in portions:
                pass
            return
        self._left.append((session, portions))
        if len(self._left) == 1:
            self._work.later(self._go_on)

    def _go_on(self, _: float) -> None:
        enough = self._work.enough()
        try:
            while self._left and self._work.done <= enough:
                for _portion in self._left[0][1]:
                    if self._work.done > enough:
                        break
                else:
                    self._left.popleft()
        finally:
            # also after a fault of our own: the others go on
            if self._left:
                self._work.later(self._go_on)

    def _portions(self, session: Session, now: float) -> Iterator[None]:
        """Let go of everything; stops wherever others may have their turn."""
        while session.subscriptions:
            written, subscription = session.subscriptions.popitem()
            self._routes.cancel(session, written, subscription)
            self._work.did(WORK_PER_FILTER)
            yield
        for message, grant, qos in self._window.clear(session):
            # [MQTT-4.8.2-5]: a QoS 1 message of a shared subscription goes to another member; one of QoS 2 must not
            for part, heir in self._content.heirs(message, grant.share if qos == 1 else None):
                if heir is not None:
                    self._delivery.hand_on(part, heir, now)
                else:
                    self._delivery.turn_away(session, part, Drop.UNCONFIRMED, now)
            self._work.did(WORK_PER_ENTRY)
            yield
        while (entry := next_entry(session, now)) is not None:
            item, grant = entry
            for each in item.bursts() if isinstance(item, Bundle) else (item,):
                self._leave(session, each, grant, now)
                self._work.did(WORK_PER_ENTRY)
            yield
        self._settle(session)

    def _leave(self, session: Session, item: Item, grant: Grant, now: float) -> None:
        queue = session.queue
        if session.spill is not None and item.qos and grant.qos:
            # the store has what waits in memory as well, and keeps the session for what does not
            queue.taken(item.messages, item.size)
            self._estates.leave(session, (item, grant), now)
            return
        for part, heir in self._content.heirs(item, grant.share):
            if heir is None:
                self._delivery.discard(session, part, grant, Drop.SESSION_ENDED, now)
            else:
                queue.taken(part.messages, part.size)
                self._delivery.hand_on(part, heir, now)

    def _settle(self, session: Session) -> None:
        """Nothing is left of it that anybody would have to account for."""
        owner = session.owner
        owner.give(Kind.SUBSCRIPTIONS, session.subscription_bytes)
        owner.weight -= session.weight
        session.weight = session.subscription_bytes = 0
        owner.sessions -= 1
        owner.give(Kind.SESSIONS, session_bytes(session.client_id) + session.inbound.bytes)
        self._holdings.forget_idle(session.user)
        if session.spill is not None:
            self._estates.add(session)


def _may_wait(session: Session, *, was_kept: bool) -> bool:
    """Whether there is much to let go, and nobody else must have a part of it at once."""
    queue = session.queue
    if len(session.subscriptions) + len(session.inflight) + queue.messages <= FEW or session.spill is not None:
        return False
    if not was_kept:
        return True
    grants = [entry[1] for line in (queue.blocked, queue.entries) for entry in line]
    grants += [flight[1] for flight in session.inflight.values() if flight is not None]
    return session.backlog is None and not any(grant.share is not None for grant in grants)


def next_entry(session: Session, now: float) -> Entry | None:
    """What waited longest for a session; None if nothing does."""
    queue, backlog = session.queue, session.backlog
    if queue.blocked:
        return queue.blocked.popleft()
    if backlog is not None:
        waiting = backlog.policy.pop(now)
        if waiting is not None:
            return waiting.entry
        session.backlog = None
    return queue.entries.popleft() if queue.entries else None
