"""Shared subscriptions: each message goes to one member of a group.

Members take turns.  A member that is connected and has room is preferred; if none is, a session that waits for its
client takes the message (QoS 1 and 2), so that it is not lost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tieline.core.message import Item
    from tieline.core.session import Grant, Session


class Group:
    """The members of ``$share/NAME/FILTER``, and whose turn it is."""

    __slots__ = ("_turn", "filter", "members", "name")

    def __init__(self, name: str, filter_: str) -> None:
        self.name = name
        self.filter = filter_
        self.members: dict[Session, Grant] = {}
        self._turn = 0

    def __repr__(self) -> str:
        return f"<Group {self.name} {self.filter}, {len(self.members)} members>"

    def pick(self, item: Item, *, besides: Session | None = None) -> Grant | None:
        """The grant of the member whose turn it is; None when nobody can take the message."""
        grants = list(self.members.values())
        count = len(grants)
        away: Grant | None = None
        full: Grant | None = None
        for step in range(count):
            index = (self._turn + step) % count
            grant = grants[index]
            session = grant.session
            if session is besides:
                continue
            if session.connection is None:
                if away is None and item.qos and grant.qos and session.queue.has_room(item.size):
                    away = grant
            elif session.queue.has_room(item.size):
                self._turn = index + 1
                return grant
            elif full is None:
                full = grant
        return away or full
