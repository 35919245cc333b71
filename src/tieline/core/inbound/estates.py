"""What sessions that have ended left in the store: read in portions, and handed on or named, one estate at a time.

The session is over for everybody else: its client may have a new one.  In the store it is known as one that has ended
until the last of its messages was seen to, so a broker that starts in between goes on with it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from tieline.core.account import Drop
from tieline.core.client import Session
from tieline.core.durable.journal import Journal
from tieline.core.outbound.deliver import Delivery
from tieline.core.outbound.spills import Spills
from tieline.core.receiver import Entry
from tieline.core.routing.content_match import ContentMatch


class Estates:
    """The sessions that have ended and left something in the store."""

    __slots__ = ("_content", "_delivery", "_journal", "_left", "_spills", "heirs")

    def __init__(self, content: ContentMatch, delivery: Delivery, spills: Spills, journal: Journal) -> None:
        self._content = content
        self._delivery = delivery
        self._spills = spills
        self._journal = journal
        #: The first one is being seen to.
        self._left: deque[Session] = deque()
        #: By their numbers, sessions that another broker has now: who gets what they have left, and None at its end.
        self.heirs: dict[int, Callable[[list[Entry] | None, float], None]] = {}

    def __len__(self) -> int:
        return len(self._left)

    def add(self, session: Session) -> None:
        """A session has ended, and something of it is in the store alone."""
        self._left.append(session)
        if len(self._left) == 1:
            self._go_on(session.left or 0.0)

    def _go_on(self, now: float) -> None:
        while self._left and not self._spills.look_behind(self._left[0]):
            session = self._left.popleft()
            self._journal.forget(session)
            heir = self.heirs.pop(session.number, None)
            if heir is not None:
                heir(None, now)

    def settle(self, session: Session, entries: list[Entry], now: float) -> None:
        """Hand on what was read of an estate, or name it."""
        heir = self.heirs.get(session.number)
        if heir is not None:
            for item, grant in entries:
                self._journal.dropped(session, item, grant)  # type: ignore[arg-type]  # what is stored is no burst
            heir(entries, now)
        else:
            for item, grant in entries:
                self.leave(session, (item, grant), now)
        self._go_on(now)

    def leave(self, session: Session, entry: Entry, now: float) -> None:
        """See to one message that waited for a session which is over."""
        item, grant = entry
        self._journal.dropped(session, item, grant)  # type: ignore[arg-type]  # what is stored is no burst
        for part, heir in self._content.heirs(item, grant.share):  # type: ignore[arg-type]  # nor a bundle
            if heir is None:
                grant.unmark()
                self._delivery.turn_away(session, part, Drop.SESSION_ENDED, now)
            else:
                self._delivery.hand_on(part, heir, now)
