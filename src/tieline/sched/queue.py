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

The queues of all sessions together fill one :class:`Pool`.  A queue changes it with every change of its own, so it is
the sum of what they hold, and nobody else touches it.  There, a message counts with what the record of it takes.

A queue that holds more than a client would that keeps up *borrows* the rest from a :class:`Lender`, in large pieces,
and gives everything back when it has run empty.  So what one user's queues hold together is bounded, and a message that
does not wait costs nothing for it: the line at which :meth:`Queue.push` stops is the end of what was borrowed.
"""

from __future__ import annotations

from collections import deque
from typing import Final, Generic, Protocol, TypeVar

E = TypeVar("E")

#: A queue that holds no more than this keeps up, and is served even when the pool is over its bound.
KEEPS_UP: Final = 65_536
FEW: Final = 256
#: What the record of a message takes beside its size, about; and what is borrowed for later, in bytes and messages.
RECORD: Final = 280
PIECE: Final = 262_144
SOME: Final = 1_024


class Lender(Protocol):
    """On whose account a queue grows."""

    def lend(self, size: int) -> bool:
        """Let a queue grow by so many bytes; False if there is no room for that."""

    def has_room(self, size: int) -> bool:
        """Whether a queue could borrow so much."""

    def owe(self, size: int) -> None:
        """A queue has grown by so much, which it may; or has shrunk, if it is negative."""


class Generous:
    """Lends everything to everybody, for queues that are nobody's in particular."""

    def lend(self, size: int) -> bool:
        """Lend whatever is asked for, to whomever."""
        return True

    def has_room(self, size: int) -> bool:
        """Say yes, because nothing here is ever full."""
        return True

    def owe(self, size: int) -> None:
        """Forget it at once, because nobody counts it here."""


class Pool:
    """The bytes that wait in all queues together, and how many may."""

    __slots__ = ("bytes", "most")

    def __init__(self, most: int) -> None:
        self.bytes = 0
        self.most = most

    @property
    def is_over(self) -> bool:
        """Whether the queues hold more than they may; nothing more is taken by those that do not keep up."""
        return self.bytes > self.most


class Queue(Generic[E]):
    """Entries waiting for one session, with their total size."""

    __slots__ = (
        "_lender",
        "blocked",
        "borrowed",
        "bytes",
        "entries",
        "is_mixed",
        "line_bytes",
        "line_messages",
        "max_bytes",
        "max_messages",
        "messages",
        "pool",
        "promised",
        "promised_bytes",
        "sent_bytes",
    )

    def __init__(
        self, max_messages: int, max_bytes: int, pool: Pool | None = None, lender: Lender | None = None
    ) -> None:
        self.pool = Pool(1 << 62) if pool is None else pool
        self._lender: Lender = Generous() if lender is None else lender
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
        #: How far it may grow before it has to borrow more; never beyond its bounds.
        self.line_messages = min(FEW, max_messages)
        self.line_bytes = min(KEEPS_UP, max_bytes)
        #: What it owes for what it holds beyond that of a client that keeps up.
        self.borrowed = 0
        #: Since it was last empty, something has been queued that is more or less urgent than usual: order matters.
        self.is_mixed = False

    def __len__(self) -> int:
        return self.messages

    def push(self, entry: E, messages: int, size: int) -> bool:
        """Append an entry; False when the caller must see whether the queue :meth:`may_hold` so much."""
        self.entries.append(entry)
        self.messages = count = self.messages + messages
        self.bytes = total = self.bytes + size
        self.pool.bytes += size + RECORD * messages
        return total <= self.line_bytes and count <= self.line_messages

    def may_hold(self) -> bool:
        """Whether what it holds is within its bounds, and within those of its lender; it borrows what it needs."""
        if self.would_be_over(0, 0):
            return False
        if self.bytes <= self.line_bytes and self.messages <= self.line_messages:
            return True
        needed, more = self._debt(self.messages, self.bytes), self._debt(self.messages + SOME, self.bytes + PIECE)
        if self._lender.lend(more - self.borrowed):
            self.borrowed = more
            self.line_messages = min(self.messages + SOME, self.max_messages)
            self.line_bytes = min(self.bytes + PIECE, self.max_bytes)
        elif needed <= self.borrowed or self._lender.lend(needed - self.borrowed):
            self.borrowed = max(needed, self.borrowed)
            self.line_messages, self.line_bytes = self.messages, self.bytes
        else:
            return False
        return True

    def _debt(self, messages: int, size: int) -> int:
        """What it owes while it holds so much, with what was sent and is kept."""
        return max(0, size + self.sent_bytes - KEEPS_UP) + RECORD * max(0, messages - FEW)

    def has_room(self, size: int) -> bool:
        """Whether one more message of this size stays within the bounds."""
        return self.messages < self.max_messages and self.bytes + self.sent_bytes + size <= self.max_bytes

    @property
    def bounds(self) -> tuple[int, int]:
        """Messages and bytes that it may hold, with the room that is promised."""
        return self.max_messages + self.promised, self.max_bytes + self.promised_bytes

    @property
    def is_over(self) -> bool:
        """Whether the queue holds more than it may, or more than it could borrow."""
        return not self.may_hold()

    def would_be_over(self, messages: int, size: int) -> bool:
        """Whether the queue would hold more than it may with so much more in it."""
        return self.messages + messages > self.max_messages or self.bytes + size > self.max_bytes

    def is_squeezed(self, more: int = 0) -> bool:
        """Whether it takes nothing more, once so many bytes more wait in it.

        So it is when all queues together hold too much, or those of its owner, and it does not keep up.
        """
        held = self.bytes + more
        if self.pool.bytes > self.pool.most and held > KEEPS_UP:
            return True
        return held > self.line_bytes and not self._lender.has_room(self._debt(self.messages, held) - self.borrowed)

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
        self._stay_below()

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
        self._stay_below()

    def _stay_below(self) -> None:
        """The line at which it borrows is not beyond its bounds."""
        self.line_messages = min(self.line_messages, self.max_messages)
        self.line_bytes = min(self.line_bytes, self.max_bytes)

    def taken(self, messages: int, size: int) -> None:
        """Account for entries that left."""
        self.messages -= messages
        self.bytes -= size
        self.pool.bytes -= size + RECORD * messages
        if not self.messages:
            self.is_mixed = False
            if self.borrowed:
                self._pay_back()

    def _pay_back(self) -> None:
        """Nothing waits any more: what was sent and is kept is all that it owes."""
        debt = self._debt(0, 0)
        self._lender.owe(debt - self.borrowed)
        self.borrowed = debt
        self.line_messages, self.line_bytes = min(FEW, self.max_messages), min(KEEPS_UP, self.max_bytes)

    def keep_sent(self, size: int) -> None:
        """A message was sent, and is kept because it may have to be sent again."""
        self.sent_bytes = sent = self.sent_bytes + size
        self.pool.bytes += size + RECORD
        if sent > KEEPS_UP + self.borrowed:
            self._lender.owe(PIECE)
            self.borrowed += PIECE

    def forget_sent(self, size: int) -> None:
        """It is kept no longer."""
        self.sent_bytes -= size
        self.pool.bytes -= size + RECORD
        if self.borrowed and not self.sent_bytes and not self.messages:
            self._pay_back()

    def clear(self) -> None:
        """Forget every entry, and give their room back to the pool."""
        self.taken(self.messages, self.bytes)
        self.entries.clear()
        self.blocked.clear()
