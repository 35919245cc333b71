"""Shared subscriptions: each message goes to one member of a group.

Members take turns.  A member that is connected and has room is preferred; if none is, a session that waits for its
client takes the message (QoS 1 and 2), so that it is not lost.

Where members ask for conditions, or may not read every topic, each message has candidates of its own, and a turn round
the whole group would favour those that stand behind members who did not want it.  There, the candidate that was chosen
longest ago is next.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tieline.core.message import Item
    from tieline.core.session import Grant, Session


class Group:
    """The members of ``$share/NAME/FILTER``, and whose turn it is."""

    __slots__ = ("_turn", "askers", "choices", "filter", "members", "name", "served", "whole")

    def __init__(self, name: str, filter_: str) -> None:
        self.name = name
        self.filter = filter_
        #: Those who take every message.
        self.members: dict[Session, Grant] = {}
        #: How many members ask for conditions; they take part where theirs are met.
        self.askers = 0
        self._turn = 0
        #: Choices among those who want a message, and at which of them a member was chosen last.
        self.choices = 0
        self.served: dict[Session, int] = {}
        #: The group of which this is a part; itself if it is not one.
        self.whole = self

    def __repr__(self) -> str:
        return f"<Group {self.name} {self.filter}, {len(self.members) + self.askers} members>"

    def part(self, askers: dict[Session, Grant]) -> Group:
        """The group as it is for one message: everyone who takes all, and those whose conditions it meets."""
        return _Part(self.whole, {**self.members, **askers})

    def readers(self, may_read: Callable[[Session], bool] | None) -> Group:
        """The group as it is for one topic: those of its members who may read it."""
        if may_read is None or all(map(may_read, self.members)):
            return self
        return _Part(self.whole, {session: grant for session, grant in self.members.items() if may_read(session)})

    def pick(self, item: Item) -> Grant | None:
        """The grant of the member whose turn it is; None when nobody can take the message."""
        grant, step = self._choose(item)
        if grant is not None and step is not None:
            self._note_choice(grant.session, step)
        return grant

    def peek(self, item: Item, ahead: Mapping[Session, int]) -> Grant | None:
        """What :meth:`pick` would answer once so many copies of the item are queued; the turn stays."""
        return self._choose(item, ahead)[0]

    def _choose(self, item: Item, ahead: Mapping[Session, int] | None = None) -> tuple[Grant | None, int | None]:
        """A grant, and how many were passed over for it; None if it was only the best that could be done."""
        away: Grant | None = None
        full: Grant | None = None
        for step, grant in enumerate(self._in_turn()):
            session = grant.session
            if session.connection is None:
                if away is None and item.qos and grant.qos and _has_room(session, item, ahead):
                    away = grant
            elif _has_room(session, item, ahead):
                return grant, step
            elif full is None:
                full = grant
        return away or full, None

    def _in_turn(self) -> list[Grant]:
        grants = list(self.members.values())
        turn = self._turn % len(grants) if grants else 0
        return grants[turn:] + grants[:turn]

    def _note_choice(self, session: Session, step: int) -> None:
        self._turn = (self._turn + step + 1) % len(self.members)


class _Part(Group):
    """Those of a group who take part in a message."""

    __slots__ = ()

    def __init__(self, whole: Group, members: dict[Session, Grant]) -> None:
        super().__init__(whole.name, whole.filter)
        self.whole = whole
        self.members = members

    def _in_turn(self) -> list[Grant]:
        served = self.whole.served
        return sorted(self.members.values(), key=lambda grant: served.get(grant.session, 0))

    def _note_choice(self, session: Session, step: int) -> None:
        self.whole.choices += 1
        self.whole.served[session] = self.whole.choices


def _has_room(session: Session, item: Item, ahead: Mapping[Session, int] | None) -> bool:
    queue = session.queue
    if ahead is None:
        return queue.has_room(item.size)
    copies = ahead.get(session, 0)
    held = queue.bytes + queue.sent_bytes + (copies + 1) * item.size
    return queue.messages + copies < queue.max_messages and held <= queue.max_bytes
