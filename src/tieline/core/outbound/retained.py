"""Retained messages: the last one of each topic, within a budget of count and bytes."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from typing import Protocol

from tieline.core.account import Account, Drop
from tieline.core.durable.journal import Journal
from tieline.core.holdings import Holdings, Kind, Owner
from tieline.core.message import Message
from tieline.match.trees import NameTree, tree_bytes

#: Expired messages forgotten in one go.
PORTION = 1_000


class RetentionObserver(Protocol):
    """Who wants to know what is retained; nobody, as long as no other broker is joined."""

    def kept(self, message: Message, now: float, *, is_held: bool) -> None:
        """A message was to be retained, or has cleared what was; there was room for it, or it is not held."""

    def expired(self, topic: bytes, now: float) -> None:
        """A retained message is over."""


class Retained:
    """The retained message of each topic that has one."""

    __slots__ = (
        "_account",
        "_expiries",
        "_holdings",
        "_journal",
        "_max_bytes",
        "_max_messages",
        "_tree",
        "bytes",
        "watcher",
    )

    def __init__(
        self, max_messages: int, max_bytes: int, holdings: Holdings, journal: Journal, account: Account
    ) -> None:
        self._holdings = holdings
        self._journal = journal
        self._account = account
        self._tree: NameTree[Message] = NameTree()
        self._max_messages = max_messages
        self._max_bytes = max_bytes
        #: The sum of the costs of all retained messages.
        self.bytes = 0
        #: When messages expire, by topic; entries of messages that were replaced stay until they are due.
        self._expiries: list[tuple[float, str]] = []
        self.watcher: RetentionObserver | None = None

    def __len__(self) -> int:
        return len(self._tree)

    def keep(self, message: Message, now: float) -> bool:
        """Replace the topic's retained message, or clear it with an empty payload; the store and the drops know.

        False if there is no room for it.
        """
        topic = message.topic.decode()
        is_held = True
        if not message.payload:
            # [MQTT-3.3.1-6], [MQTT-3.3.1-7]
            self.remove(topic)
            self._note_cleared(message.topic)
        elif not self.put(topic, message, now):
            # [MQTT-3.3.1-5] replaced, or, without room, the old one goes: it is no longer the last value
            is_held = False
            self.remove(topic)
            self._account.drop(now, Drop.RETAINED_FULL, message.origin.client, message.topic, level=message.level)
            self._note_cleared(message.topic)
        elif not self._journal.is_volatile:
            self._journal.retained(message)
        if self.watcher is not None:
            self.watcher.kept(message, now, is_held=is_held)
        return is_held

    def _note_cleared(self, topic: bytes) -> None:
        if not self._journal.is_volatile:
            self._journal.cleared(topic)

    def put(self, topic: str, message: Message, now: float) -> bool:
        """Keep a message as the topic's retained one; False, and nothing changed, when there is no room."""
        self.expire(now)
        old = self._tree.get(topic)
        if self._lacks_room(topic, message, old):
            return False
        if old is not None:
            self._count(topic, old, -1)
        self._tree.put(topic, message)
        self._count(topic, message, 1)
        if message.expires is not None:
            heappush(self._expiries, (message.expires, topic))
            if len(self._expiries) > 2 * len(self._tree) + 1_000:
                self._forget_replaced()
        return True

    def has_room(self, topic: str, message: Message) -> bool:
        """Whether a message could be kept now."""
        return not self._lacks_room(topic, message, self._tree.get(topic))

    def _lacks_room(self, topic: str, message: Message, old: Message | None) -> bool:
        """Whether a message cannot take the place of the one before it: for the broker, or for its publisher's user."""
        more = _cost(topic, message) - (_cost(topic, old) if old else 0)
        if self.bytes + more > self._max_bytes or (old is None and len(self._tree) >= self._max_messages):
            return True
        owner = self._owner(message)
        messages, kept = 1, _cost(topic, message)
        if old is not None and self._owner(old) is owner:
            messages, kept = 0, more
        return (
            owner.retained + messages > owner.bounds.retained_messages
            or owner.kept.get(Kind.RETAINED, 0) + kept > owner.bounds.retained_bytes
            or (kept > 0 and owner.refusal(kept) is not None)
        )

    def _owner(self, message: Message) -> Owner:
        # asked by name: the owner that a publisher had when it sent the message may have been forgotten since
        owner = message.origin.owner
        return self._holdings.broker if owner is None else self._holdings.owner(owner.user)

    def _count(self, topic: str, message: Message, messages: int) -> None:
        """A message is kept, or no longer."""
        cost, owner = messages * _cost(topic, message), self._owner(message)
        self.bytes += cost
        owner.retained += messages
        owner.take(Kind.RETAINED, cost)
        if messages < 0:
            self._holdings.forget_idle(owner.user)

    def get(self, topic: str) -> Message | None:
        """The retained message of one topic."""
        return self._tree.get(topic)

    def remove(self, topic: str) -> None:
        """Forget the retained message of a topic, if there is one."""
        old = self._tree.remove(topic)
        if old is not None:
            self._count(topic, old, -1)

    def match(self, filter_: str) -> Iterator[Message | None]:
        """The retained messages that a filter matches; lazy, each read when it is yielded, with pauses."""
        return self._tree.match(filter_)

    def expire(self, now: float) -> None:
        """Forget messages whose expiry interval is over: a portion; nobody is sent one that has not had its turn."""
        expiries = self._expiries
        for _ in range(PORTION):
            if not expiries or expiries[0][0] > now:
                break
            when, topic = heappop(expiries)
            message = self._tree.get(topic)
            if message is not None and message.expires == when:
                self.remove(topic)
                self._note_cleared(message.topic)
                if self.watcher is not None:
                    self.watcher.expired(message.topic, now)

    def _forget_replaced(self) -> None:
        """Drop the entries of messages that are no longer retained."""
        current = {topic: when for when, topic in self._expiries}
        for when, topic in self._expiries:
            message = self._tree.get(topic)
            if message is None or message.expires is None:
                current.pop(topic, None)
            elif message.expires == when:
                current[topic] = when
        self._expiries = [(when, topic) for topic, when in current.items()]
        heapify(self._expiries)


def _cost(topic: str, message: Message) -> int:
    return message.size + tree_bytes(topic)
