"""What waits for a session in the store alone, because its memory was full while its client was away.

Theory of operation
-------------------
A session that *spills* has its oldest messages in memory, as always, and everything that came after in the store
alone.  From the first message that is spilled until all of them have been read back, every further QoS 1 or 2 message
of the session is spilled, whether its client is connected or not: so none arrives before an earlier one.  While the
client is connected and little waits in memory, the next portion is asked for; it joins the queue as if it had just
come.  The store keeps an entry until it is sent or dropped, so a crash at any moment brings back what was read and not
sent; it then waits in the store alone again.

What is urgent does not wait behind what is not.  It has a lane of its own in the store, which is read first, and while
that lane was not used since the session began to spill, an urgent message for a connected client is not spilled at all.
An urgent message stays behind those of its publisher and topic that were spilled before it: of these a bit is kept for
each hash.  A broker that was started anew does not know them, and lets nothing overtake until all was read.

Entries are counted by the broker alone: a store is never asked how many there are, except when a broker begins.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final
from zlib import crc32

from tieline.conf.quantities import bound
from tieline.conf.schema import Limits
from tieline.core.client import Session
from tieline.core.durable.journal import Journal
from tieline.core.message import Item, Message
from tieline.core.ports import Portion
from tieline.core.receiver import Grant
from tieline.core.spill import AHEAD, PLAIN, PacketIds, Spill
from tieline.core.work import Work
from tieline.sched.levels import URGENT
from tieline.sched.queue import FEW, KEEPS_UP

#: Read back at once, at most; and while memory is short.
MESSAGES: Final = 500
BYTES: Final = 262_144
FEW_BYTES: Final = 32_768
#: What one message that is read back costs, in units of :mod:`tieline.core.work`.
EFFORT: Final = 40


class Spills:
    """Every session that spills, and what all of them have in the store together."""

    __slots__ = ("_journal", "_limits", "_work", "bytes", "messages", "sessions", "spilled")

    def __init__(self, limits: Limits, journal: Journal, work: Work) -> None:
        self._limits = limits
        self._journal = journal
        self._work = work
        #: By their numbers, also those that have ended and left something in the store.
        self.sessions: dict[int, Session] = {}
        #: What waits in the store alone now, and how many messages ever did.
        self.messages = self.bytes = self.spilled = 0

    def renew(self, limits: Limits) -> None:
        """Other limits hold from now on; what was spilled stays."""
        self._limits = limits

    @property
    def is_possible(self) -> bool:
        """Whether the store can keep messages that the broker does not have."""
        return self._journal.can_read

    def has_room(self, session: Session, item: Item, copies: int = 0) -> bool:
        """Whether a message may be spilled for a session, once so many copies of it were."""
        limits, spill = self._limits, session.spill
        count, held = (0, 0) if spill is None else (spill.count, spill.bytes)
        more = (copies + 1) * item.size
        return (
            # it has to come back into memory
            self.can_take(session, item)
            and count + copies < bound(limits.spill_messages)
            and held + more <= bound(limits.spill_bytes)
            and self.bytes + more <= bound(limits.spill_bytes_total)
            and session.owner.spilled + more <= bound(limits.user_spill_bytes)
        )

    def can_take(self, session: Session, item: Item) -> bool:
        """Whether a message can be spilled at all, whatever the bounds: it was acknowledged before anybody knew."""
        return self.is_possible and session.is_kept and item.size <= session.queue.max_bytes

    def is_half_empty(self, session: Session) -> bool:
        """Whether there is room worth telling those who wait for it."""
        spill = session.spill
        return spill is None or (
            spill.count * 2 <= bound(self._limits.spill_messages) and spill.bytes * 2 <= bound(self._limits.spill_bytes)
        )

    def lets_pass(self, session: Session, item: Item, grant: Grant) -> bool:
        """Whether a message for a session that spills need not be spilled itself."""
        spill = session.spill
        assert spill is not None
        return (
            item.level == URGENT
            and session.connection is not None
            and not spill.was_ahead
            and not _is_behind(spill, item, grant)
            and session.queue.has_room(item.size)
            and not session.queue.is_squeezed()
        )

    def put(self, session: Session, message: Message, grant: Grant) -> None:
        """Let a message wait in the store alone, behind those that do so already."""
        spill = session.spill
        if spill is None:
            spill = session.spill = Spill(PacketIds())
            self.sessions[session.number] = session
        if message.level == URGENT and not _is_behind(spill, message, grant):
            lane = AHEAD
            spill.was_ahead = True
        else:
            lane = PLAIN
            if spill.flows is not None:
                spill.flows.add(_flow(message, grant))
        self._journal.spilled(session, message, grant, lane)
        self.spilled += 1
        self._count(session, spill, lane, 1, message.size)
        spill.largest = max(spill.largest, message.size)

    def restore(self, session: Session, rows: Iterable[tuple[int, int, int, int]]) -> None:
        """A session had this in the store alone when the broker ended: lane, messages, bytes, the largest of them."""
        spill = session.spill = Spill(None)
        self.sessions[session.number] = session
        for lane, messages, size, largest in rows:
            self._count(session, spill, lane, messages, size)
            spill.largest = max(spill.largest, largest)
            spill.was_ahead = spill.was_ahead or lane == AHEAD

    def _count(self, session: Session, spill: Spill, lane: int, messages: int, size: int) -> None:
        spill.messages[lane] += messages
        spill.bytes += size
        self.messages += messages
        self.bytes += size
        session.owner.spilled += size

    # -- and back

    def look(self, session: Session) -> None:
        """Ask for more if the client is there and what waits in memory will not last."""
        spill, queue = session.spill, session.queue
        if spill is None or spill.is_asked or session.connection is None:
            return
        lane = spill.lane
        is_low = queue.messages < FEW and queue.bytes < KEEPS_UP
        room, places = queue.max_bytes - queue.bytes, queue.max_messages - queue.messages
        if not (is_low or lane == AHEAD) or room < spill.largest or places <= 0:
            return
        is_short = queue.is_squeezed(BYTES) or not is_low
        self._ask(session, spill, min(places, FEW if is_short else MESSAGES), FEW_BYTES if is_short else BYTES)

    def look_behind(self, session: Session) -> bool:
        """Ask for more of what a session has left; False if that was all."""
        spill = session.spill
        if spill is None:
            return False
        if not spill.is_asked:
            self._ask(session, spill, MESSAGES, BYTES)
        return True

    def _ask(self, session: Session, spill: Spill, messages: int, size: int) -> None:
        spill.is_asked = True
        room = max(0, session.queue.max_bytes - session.queue.bytes)
        self._journal.read(session.number, spill.lane, spill.after[spill.lane], messages, min(size, room))

    def took(self, session: Session, portion: Portion, sizes: Iterable[int]) -> None:
        """A portion has come and is in memory, or was otherwise seen to; perhaps it was the last one."""
        spill = session.spill
        assert spill is not None
        spill.is_asked = False
        spill.after[portion.lane] = portion.last
        for size in sizes:
            self._count(session, spill, portion.lane, -1, -size)
            self._work.did(EFFORT)
        if not spill.count:
            session.spill = None
            del self.sessions[session.number]
            if session.is_kept:
                self._journal.gathered(session)

    def __iter__(self) -> Iterator[Session]:
        return iter(self.sessions.values())


def _flow(item: Item, grant: Grant) -> int:
    """A hash of what MQTT keeps in order, of 16 bits."""
    return crc32(item.topic, crc32(item.origin.client.encode(), min(item.qos, grant.qos))) & 0xFFFF


def _is_behind(spill: Spill, item: Item, grant: Grant) -> bool:
    """Whether an earlier message of the same publisher and topic may be in the lane in which nothing overtakes.

    Or was in it, and has been read: after a crash it would be there again.
    """
    return spill.flows is None or _flow(item, grant) in spill.flows
