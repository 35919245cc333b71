"""Shared subscriptions: each message goes to one member of a group.

Members take turns.  A member that is connected and has room is preferred; if none is, a receiver that waits for its
client takes the message (QoS 1 and 2), so that it is not lost.

Where members ask for conditions, or may not read every topic, each message has candidates of its own, and a turn round
the whole group would favour those that stand behind members who did not want it.  There, the candidate that was chosen
longest ago is next.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tieline.core.message import Item
from tieline.core.receiver import Grant, Receiver, Share


class Group:
    """The members of ``$share/NAME/FILTER``, and whose turn it is."""

    __slots__ = ("_turn", "choices", "conditionals", "members", "served", "share", "whole")

    def __init__(self, name: str, filter_: str) -> None:
        self.share = Share(name, filter_)
        #: Those who take every message.
        self.members: dict[Receiver, Grant] = {}
        #: How many members ask for conditions; they take part where theirs are met.
        self.conditionals = 0
        self._turn = 0
        #: Choices among those who want a message, and at which of them a member was chosen last.
        self.choices = 0
        self.served: dict[Receiver, int] = {}
        #: The group of which this is a part; itself if it is not one.
        self.whole = self

    def __repr__(self) -> str:
        return f"<Group {self.share.name} {self.share.filter}, {len(self.members) + self.conditionals} members>"

    def __str__(self) -> str:
        return f"$share/{self.share.name}/{self.share.filter}"

    def part(self, conditional: dict[Receiver, Grant]) -> Group:
        """The group as it is for one message: everyone who takes all, and those whose conditions it meets."""
        return _Part(self.whole, {**self.members, **conditional})

    def readers(self, may_read: Callable[[Receiver], bool] | None) -> Group:
        """The group as it is for one topic: those of its members who may read it."""
        if may_read is None or all(map(may_read, self.members)):
            return self
        return _Part(self.whole, {receiver: grant for receiver, grant in self.members.items() if may_read(receiver)})

    def pick(self, item: Item) -> Grant | None:
        """The grant of the member whose turn it is; None when nobody can take the message."""
        grant, step = self._choose(item)
        if grant is not None and step is not None:
            self._note_choice(grant.receiver, step)
        return grant

    def peek(self, item: Item, ahead: Mapping[Receiver, int]) -> Grant | None:
        """What :meth:`pick` would answer once so many copies of the item are queued; the turn stays."""
        return self._choose(item, ahead)[0]

    def _choose(self, item: Item, ahead: Mapping[Receiver, int] | None = None) -> tuple[Grant | None, int | None]:
        """A grant, and how many were passed over for it; None if it was only the best that could be done."""
        away: Grant | None = None
        full: Grant | None = None
        last: Grant | None = None
        for step, grant in enumerate(self._in_turn()):
            receiver = grant.receiver
            if receiver.is_over:
                continue  # it is about to leave the group
            has_room = receiver.has_room(item, 0 if ahead is None else ahead.get(receiver, 0))
            if not receiver.is_present:
                if item.qos and grant.qos:
                    if away is None and has_room:
                        away = grant
                    last = last or grant
            elif has_room:
                return grant, step
            elif full is None:
                full = grant
        # the last choice is one whose session ends because of it; the others of the group get all that it had
        return away or full or last, None

    def _in_turn(self) -> list[Grant]:
        grants = list(self.members.values())
        turn = self._turn % len(grants) if grants else 0
        return grants[turn:] + grants[:turn]

    def _note_choice(self, receiver: Receiver, step: int) -> None:
        self._turn = (self._turn + step + 1) % len(self.members)


class _Part(Group):
    """Those of a group who take part in a message."""

    __slots__ = ()

    def __init__(self, whole: Group, members: dict[Receiver, Grant]) -> None:
        super().__init__(whole.share.name, whole.share.filter)
        self.whole = whole
        self.members = members

    def _in_turn(self) -> list[Grant]:
        served = self.whole.served
        return sorted(self.members.values(), key=lambda grant: served.get(grant.receiver, 0))

    def _note_choice(self, receiver: Receiver, step: int) -> None:
        self.whole.choices += 1
        self.whole.served[receiver] = self.whole.choices
