"""Shared subscriptions: each message goes to one member of a group.

Members take turns.  A member that is connected and has room is preferred; if none is, a receiver that waits for its
client takes the message (QoS 1 and 2), so that it is not lost.

Where members ask for conditions, or may not read every topic, each message has candidates of its own, and a turn round
the whole group would favour those that stand behind members who did not want it.  There, the candidate that was chosen
longest ago is next.

Members may be clients of other brokers (:mod:`tieline.core.routing.group_brokers`).  Where a message is accepted, one
of the brokers is picked; a broker that was picked takes one of its own members.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping

from tieline.core.message import Item
from tieline.core.receiver import Grant, Receiver, Share
from tieline.core.routing.group_brokers import GroupBrokers, fitting, overfull


class Group:
    """The members of ``$share/NAME/FILTER``, and whose turn it is."""

    __slots__ = ("_turn", "brokers", "choices", "conditionals", "members", "remote", "served", "share", "span", "whole")

    def __init__(self, name: str, filter_: str) -> None:
        self.share = Share(name, filter_)
        #: Those who take every message.
        self.members: dict[Receiver, Grant] = {}
        #: How many members ask for conditions; they take part where theirs are met.
        self.conditionals = 0
        #: How many of those are other brokers.
        self.remote = 0
        #: How messages are spread over other brokers, and those that take every message; None where none has members.
        self.span: GroupBrokers | None = None
        self.brokers: dict[Receiver, Grant] | None = None
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

    @property
    def spanning(self) -> GroupBrokers:
        """How messages are spread over other brokers; made when the first of them has members."""
        if self.span is None:
            self.span = GroupBrokers()
            self.brokers = self.span.grants
        return self.span

    @property
    def has_members_here(self) -> bool:
        """Whether some client of this broker is a member, whatever it asks for."""
        return bool(self.members) or self.conditionals > self.remote

    @property
    def has_receivers(self) -> bool:
        """Whether anybody takes every message."""
        return bool(self.members or self.brokers)

    @property
    def is_over(self) -> bool:
        """Whether it has no members, here or elsewhere."""
        return not (self.members or self.conditionals or self.brokers)

    @property
    def hands(self) -> int:
        """Over how many members a burst is dealt out."""
        span = self.whole.span
        return len(self.members) + (0 if span is None else len(span))

    @property
    def grants(self) -> list[Grant]:
        """Those of everyone who may be picked."""
        return [*self.members.values(), *(() if self.brokers is None else self.brokers.values())]

    def joined(self, receiver: Receiver) -> None:
        """Somebody who asks for a condition is a member."""
        self.conditionals += 1
        if receiver.is_broker:
            self.remote += 1
            self.brokers = self.spanning.grants

    def left(self, receiver: Receiver) -> None:
        """One who asked for a condition is no member any more."""
        self.conditionals -= 1
        self.remote -= receiver.is_broker
        self.served.pop(receiver, None)

    def part(self, conditional: dict[Receiver, Grant]) -> Group:
        """The group as it is for one message: everyone who takes all, and those whose conditions it meets."""
        if self.whole.span is None:
            return _Part(self.whole, {**self.members, **conditional})
        here = {receiver: grant for receiver, grant in conditional.items() if not receiver.is_broker}
        there = {receiver: grant for receiver, grant in conditional.items() if receiver.is_broker}
        return _Part(self.whole, {**self.members, **here}, {**(self.brokers or {}), **there})

    def readers(self, may_read: Callable[[Receiver], bool] | None) -> Group:
        """The group as it is for one topic: those of its members who may read it; other brokers ask themselves."""
        if may_read is None or all(map(may_read, self.members)):
            return self
        members = {receiver: grant for receiver, grant in self.members.items() if may_read(receiver)}
        return _Part(self.whole, members, self.brokers)

    def pick(self, item: Item) -> Grant | None:
        """The grant of the member, or of the broker, whose turn it is; None when nobody can take the message."""
        if not self.brokers:
            return self.pick_here(item)
        grant, step = self._choose_anywhere(item)
        if grant is not None:
            receiver = grant.receiver
            if receiver.is_broker:
                self.whole.spanning.note(receiver)
            elif step is not None:
                self.whole.spanning.note(None, len(self.members))
                self._note_choice(receiver, step)
        return grant

    def pick_here(self, item: Item) -> Grant | None:
        """The same among the clients of this broker."""
        grant, step = self._choose(item)
        if grant is not None and step is not None:
            self._note_choice(grant.receiver, step)
        return grant

    def pick_elsewhere(self, item: Item, but: Container[Receiver]) -> Grant | None:
        """The same among other brokers but some; None when there is none that takes it or can wait for it."""
        brokers = {broker: grant for broker, grant in (self.brokers or {}).items() if broker not in but}
        near, away = fitting(brokers, item)
        chosen = self.whole.spanning.next(near or away or (overfull(brokers, item) if item.qos else ()))
        if chosen is None:
            return None
        self.whole.spanning.note(chosen)
        return brokers[chosen]

    def peek(self, item: Item, ahead: Mapping[Receiver, int]) -> Grant | None:
        """What :meth:`pick` would answer once so many copies of the item are queued; the turn stays."""
        return self._choose_anywhere(item, ahead)[0] if self.brokers else self._choose(item, ahead)[0]

    def _choose_anywhere(
        self, item: Item, ahead: Mapping[Receiver, int] | None = None
    ) -> tuple[Grant | None, int | None]:
        """As :meth:`_choose`, also among other brokers: those out of reach come behind whoever can take it now."""
        span, brokers = self.whole.spanning, self.brokers or {}
        here, step = self._choose(item, ahead)
        if step is not None and not span.is_balanced:
            return here, step
        near, away = fitting(brokers, item)
        chosen = span.next(near, 0 if step is None else len(self.members))
        if chosen is not None:
            return brokers[chosen], None
        if here is not None and (step is not None or here.receiver.has_room(item)):
            return here, step
        if item.qos:
            chosen = span.next(away or overfull(brokers, item))
        return (here, step) if chosen is None else (brokers[chosen], None)

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

    def __init__(
        self, whole: Group, members: dict[Receiver, Grant], brokers: dict[Receiver, Grant] | None = None
    ) -> None:
        super().__init__(whole.share.name, whole.share.filter)
        self.whole = whole
        self.members = members
        self.brokers = brokers

    def _in_turn(self) -> list[Grant]:
        served = self.whole.served
        return sorted(self.members.values(), key=lambda grant: served.get(grant.receiver, 0))

    def _note_choice(self, receiver: Receiver, step: int) -> None:
        self.whole.choices += 1
        self.whole.served[receiver] = self.whole.choices
