"""One session's waiting line: bounded by count and by bytes, and it never forgets silently.

Theory of operation
-------------------
Entries leave in the order in which they came ([MQTT-4.6.0-5], [MQTT-4.6.0-6], [MQTT311-4.6.0-5], [MQTT311-4.6.0-6]).
An entry is a pair (item, grant): a shared immutable message and the
subscription under which this session gets it.  What must be bound late (packet id, alias, identifiers, remaining
expiry) is not in here.

A QoS 1 or 2 entry that meets a full in-flight window steps aside into ``blocked`` so that QoS 0 entries behind it are
not held up; it goes first once the window opens.  Order per QoS is kept: while anything is blocked, every later QoS 1
or 2 entry steps aside as well.
"""

from __future__ import annotations

from collections import deque
from typing import Generic, TypeVar

E = TypeVar("E")


class Queue(Generic[E]):
    """Entries waiting for one session, with their total size."""

    __slots__ = (
        "blocked",
        "bytes",
        "entries",
        "max_bytes",
        "max_messages",
        "messages",
        "promised",
        "promised_bytes",
        "sent_bytes",
    )

    def __init__(self, max_messages: int, max_bytes: int) -> None:
        self.entries: deque[E] = deque()
        #: QoS 1 and 2 entries that met a full in-flight window; older than everything of theirs in ``entries``.
        self.blocked: deque[E] = deque()
        #: The sum of what was given to ``push`` for all entries still in ``entries`` or ``blocked``.
        self.messages = 0
        self.bytes = 0
        #: The bytes of messages that were sent and are kept because they may have to be sent again.
        self.sent_bytes = 0
        #: Room that is kept for messages on their way here, and how many; the bounds are without it.
        self.promised = 0
        self.promised_bytes = 0
        self.max_messages = max_messages
        self.max_bytes = max_bytes

    def __len__(self) -> int:
        return self.messages

    def push(self, entry: E, messages: int, size: int) -> bool:
        """Append an entry; False when the queue is now over its bounds and the caller must choose a victim."""
        self.entries.append(entry)
        self.messages = count = self.messages + messages
        self.bytes = total = self.bytes + size
        return total <= self.max_bytes and count <= self.max_messages

    def has_room(self, size: int) -> bool:
        """Whether one more message of this size stays within the bounds."""
        return self.messages < self.max_messages and self.bytes + self.sent_bytes + size <= self.max_bytes

    @property
    def bounds(self) -> tuple[int, int]:
        """Messages and bytes that it may hold, with the room that is promised."""
        return self.max_messages + self.promised, self.max_bytes + self.promised_bytes

    @property
    def is_over(self) -> bool:
        """Whether the queue holds more than it may."""
        return self.messages > self.max_messages or self.bytes > self.max_bytes

    @property
    def is_half_empty(self) -> bool:
        """Whether there is room worth telling those who wait for it."""
        held = self.bytes + self.sent_bytes
        return self.messages * 2 <= self.max_messages and held * 2 <= self.max_bytes

    def promise(self, size: int) -> None:
        """Keep room for a message that will come: nothing else may take it."""
        self.promised += 1
        self.promised_bytes += size
        self.max_messages -= 1
        self.max_bytes -= size

    def redeem(self, size: int) -> None:
        """The message comes now: there is room for it."""
        self.promised -= 1
        self.promised_bytes -= size
        self.max_messages += 1
        self.max_bytes += size

    def limit(self, *, max_messages: int | None = None, max_bytes: int | None = None) -> None:
        """Other bounds from now on; what was promised is taken off them."""
        if max_messages is not None:
            self.max_messages = max_messages - self.promised
        if max_bytes is not None:
            self.max_bytes = max_bytes - self.promised_bytes

    def taken(self, messages: int, size: int) -> None:
        """Account for an entry that left."""
        self.messages -= messages
        self.bytes -= size

    def clear(self) -> None:
        """Forget every entry; the caller has accounted for each."""
        self.entries.clear()
        self.blocked.clear()
        self.messages = self.bytes = 0
