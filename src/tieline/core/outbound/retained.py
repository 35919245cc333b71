"""Retained messages: the last one of each topic, within a budget of count and bytes."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heapify, heappop, heappush

from tieline.core.account import Account, Drop
from tieline.core.durable.journal import Journal
from tieline.core.message import Message
from tieline.match.trees import NameTree, tree_bytes

#: Expired messages forgotten in one go.
PORTION = 1_000


class Retained:
    """The retained message of each topic that has one."""

    __slots__ = ("_account", "_expiries", "_journal", "_max_bytes", "_max_messages", "_tree", "bytes")

    def __init__(self, max_messages: int, max_bytes: int, journal: Journal, account: Account) -> None:
        self._journal = journal
        self._account = account
        self._tree: NameTree[Message] = NameTree()
        self._max_messages = max_messages
        self._max_bytes = max_bytes
        #: The sum of the costs of all retained messages.
        self.bytes = 0
        #: When messages expire, by topic; entries of messages that were replaced stay until they are due.
        self._expiries: list[tuple[float, str]] = []

    def __len__(self) -> int:
        return len(self._tree)

    def keep(self, message: Message, now: float) -> None:
        """Replace the topic's retained message, or clear it with an empty payload; the store and the drops know."""
        topic = message.topic.decode()
        if not message.payload:
            # [MQTT-3.3.1-6], [MQTT-3.3.1-7]
            self.remove(topic)
            self._note_cleared(message.topic)
        elif not self.put(topic, message, now):
            # [MQTT-3.3.1-5] replaced, or, without room, the old one goes: it is no longer the last value
            self.remove(topic)
            self._account.drop(now, Drop.RETAINED_FULL, message.origin.client, message.topic, level=message.level)
            self._note_cleared(message.topic)
        elif not self._journal.is_volatile:
            self._journal.retained(message)

    def _note_cleared(self, topic: bytes) -> None:
        if not self._journal.is_volatile:
            self._journal.cleared(topic)

    def put(self, topic: str, message: Message, now: float) -> bool:
        """Keep a message as the topic's retained one; False, and nothing changed, when there is no room."""
        self.expire(now)
        size = self._size_with(topic, message)
        if size is None:
            return False
        self._tree.put(topic, message)
        self.bytes = size
        if message.expires is not None:
            heappush(self._expiries, (message.expires, topic))
            if len(self._expiries) > 2 * len(self._tree) + 1_000:
                self._forget_replaced()
        return True

    def has_room(self, topic: str, message: Message) -> bool:
        """Whether a message could be kept now."""
        return self._size_with(topic, message) is not None

    def _size_with(self, topic: str, message: Message) -> int | None:
        """The sum of all costs with one more message; None when there is no room for it."""
        old = self._tree.get(topic)
        size = self.bytes + _cost(topic, message) - (_cost(topic, old) if old else 0)
        if size > self._max_bytes or (old is None and len(self._tree) >= self._max_messages):
            return None
        return size

    def get(self, topic: str) -> Message | None:
        """The retained message of one topic."""
        return self._tree.get(topic)

    def remove(self, topic: str) -> None:
        """Forget the retained message of a topic, if there is one."""
        old = self._tree.remove(topic)
        if old is not None:
            self.bytes -= _cost(topic, old)

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
                self._note_cleared(topic.encode())

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
