"""Shared subscriptions: each message goes to one member of a group.

Members take turns.  A member that is connected and has room is preferred; if none is, a session that waits for its
client takes the message (QoS 1 and 2), so that it is not lost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tieline.core.asking import Asking
    from tieline.core.message import Item
    from tieline.core.session import Grant, Session


class Group:
    """The members of ``$share/NAME/FILTER``, and whose turn it is."""

    __slots__ = ("_turn", "askers", "filter", "members", "name")

    def __init__(self, name: str, filter_: str) -> None:
        self.name = name
        self.filter = filter_
        #: Those who take every message.
        self.members: dict[Session, Grant] = {}
        #: How many members ask for conditions; they take part where theirs are met.
        self.askers = 0
        #: Whose turn it is; shared with the parts of this group.
        self._turn = [0]

    def __repr__(self) -> str:
        return f"<Group {self.name} {self.filter}, {len(self.members)} members>"

    def pick(self, item: Item, *, besides: Session | None = None) -> Grant | None:
        """The grant of the member whose turn it is; None when nobody can take the message."""
        grants = self._candidates()
        count = len(grants)
        away: Grant | None = None
        full: Grant | None = None
        for step in range(count):
            index = (self._turn[0] + step) % count
            grant = grants[index]
            session = grant.session
            if session is besides:
                continue
            if session.connection is None:
                if away is None and item.qos and grant.qos and session.queue.has_room(item.size):
                    away = grant
            elif session.queue.has_room(item.size):
                self._turn[0] = index + 1
                return grant
            elif full is None:
                full = grant
        return away or full

    def _candidates(self) -> list[Grant]:
        return list(self.members.values())

    def with_askers(self, askers: dict[Session, tuple[Asking, Grant]]) -> Group:
        """The group as it is for one message: everyone who takes all, and those whose conditions it meets."""
        return _Part(self, askers)


class _Part(Group):
    """A group as it is for one message, which it outlives while the message waits."""

    __slots__ = ("_askers",)

    def __init__(self, whole: Group, askers: dict[Session, tuple[Asking, Grant]]) -> None:
        super().__init__(whole.name, whole.filter)
        self._turn = whole._turn  # noqa: SLF001 - a part of it
        self._askers = askers
        self.members = {**whole.members, **{session: grant for session, (_, grant) in askers.items()}}
        for _, grant in askers.values():
            grant.group = self

    def _candidates(self) -> list[Grant]:
        askers = self._askers
        return [grant for session, grant in self.members.items() if session not in askers or askers[session][0].is_live]
