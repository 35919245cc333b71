"""Retained messages: the last one of each topic, within a budget of count and bytes."""

from __future__ import annotations

from collections.abc import Iterator

from tieline.core.message import Message
from tieline.match.names import NameTree


class Retained:
    """The retained message of each topic that has one."""

    __slots__ = ("_max_bytes", "_max_messages", "_tree", "bytes")

    def __init__(self, max_messages: int, max_bytes: int) -> None:
        self._tree: NameTree[Message] = NameTree()
        self._max_messages = max_messages
        self._max_bytes = max_bytes
        #: The sum of the sizes of all retained messages.
        self.bytes = 0

    def __len__(self) -> int:
        return len(self._tree)

    def put(self, topic: str, message: Message) -> bool:
        """Keep a message as the topic's retained one; False, and nothing changed, when there is no room."""
        old = self._tree.get(topic)
        size = self.bytes + message.size - (old.size if old else 0)
        if size > self._max_bytes or (old is None and len(self._tree) >= self._max_messages):
            return False
        self._tree.put(topic, message)
        self.bytes = size
        return True

    def get(self, topic: str) -> Message | None:
        """The retained message of one topic, expired or not."""
        return self._tree.get(topic)

    def remove(self, topic: str) -> None:
        """Forget the retained message of a topic, if there is one."""
        old = self._tree.remove(topic)
        if old is not None:
            self.bytes -= old.size

    def match(self, filter_: str) -> Iterator[Message]:
        """The retained messages that a filter matches; lazy, each read when it is yielded."""
        return self._tree.match(filter_)
