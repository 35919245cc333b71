"""Shared subscriptions: each message goes to one member of a group.

Members take turns.  A member that is connected and has room is preferred; if none is, a session that waits for its
client takes the message (QoS 1 and 2), so that it is not lost.

Where members ask for conditions, each message has candidates of its own, and a turn round the whole group would favour
those that stand behind members who did not want it.  There, the candidate that was chosen longest ago is next.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tieline.core.message import Item
    from tieline.core.session import Grant, Session


class Group:
    """The members of ``$share/NAME/FILTER``, and whose turn it is."""

    __slots__ = ("_turn", "askers", "choices", "filter", "members", "name", "served")

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

    def __repr__(self) -> str:
        return f"<Group {self.name} {self.filter}, {len(self.members) + self.askers} members>"

    def part(self, askers: dict[Session, Grant]) -> Group:
        """The group as it is for one message: everyone who takes all, and those whose conditions it meets."""
        return _Part(self, askers)

    def pick(self, item: Item) -> Grant | None:
        """The grant of the member whose turn it is; None when nobody can take the message."""
        away: Grant | None = None
        full: Grant | None = None
        for step, grant in enumerate(self._in_turn()):
            session = grant.session
            if session.connection is None:
                if away is None and item.qos and grant.qos and session.queue.has_room(item.size):
                    away = grant
            elif session.queue.has_room(item.size):
                self._note_choice(session, step)
                return grant
            elif full is None:
                full = grant
        return away or full

    def _in_turn(self) -> list[Grant]:
        grants = list(self.members.values())
        if not grants:
            return grants
        self._turn %= len(grants)
        return grants[self._turn :] + grants[: self._turn]

    def _note_choice(self, session: Session, step: int) -> None:
        self._turn += step + 1


class _Part(Group):
    """The members of a group that want one message."""

    __slots__ = ("_whole",)

    def __init__(self, whole: Group, askers: dict[Session, Grant]) -> None:
        super().__init__(whole.name, whole.filter)
        self._whole = whole
        self.members = {**whole.members, **askers}

    def _in_turn(self) -> list[Grant]:
        served = self._whole.served
        return sorted(self.members.values(), key=lambda grant: served.get(grant.session, 0))

    def _note_choice(self, session: Session, step: int) -> None:
        self._whole.choices += 1
        self._whole.served[session] = self._whole.choices
