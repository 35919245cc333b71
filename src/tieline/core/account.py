"""What happened: counters, named drops and the broker's own story.

Every discarded message has a :class:`Drop` name, is counted under it, and leaves one record in a bounded ring; every
connection that is refused or closed has a name and is counted too.  The log, ``$SYS`` and ``tieline top`` all read
from here.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from enum import StrEnum
from typing import Final, NamedTuple

from tieline.sched.levels import LEVELS

#: The last bucket of waiting times holds everything above half an hour.
WAIT_BUCKETS = 22
#: The level of messages that were refused before they had one.
NO_LEVEL: Final = -1


class Drop(StrEnum):
    """Why a message was discarded."""

    QUEUE_FULL = "queue_full"  # the session's queue was over its bounds
    MEMORY_FULL = "memory_full"  # all sessions together held more than the broker may
    EXPIRED = "expired"  # its message expiry interval ran out while it waited
    TOO_LARGE = "too_large"  # the client's maximum packet size is smaller
    OFFLINE = "offline"  # QoS 0 for a session whose client is away
    SESSION_ENDED = "session_ended"  # it still waited when the session ended
    DENIED = "denied"  # the publisher may not publish to the topic
    REFUSED = "refused"  # a QoS 1 or 2 queue was full, and the publisher was told so
    RETAINED_FULL = "retained_full"  # delivered, but not kept: no room for retained messages
    NO_MEMBER = "no_member"  # a shared subscription had no member that could take it
    CLASS_TOO_LARGE = "class_too_large"  # larger than its class allows: one huge packet blocks a thin link
    REJECTED = "rejected"  # the client answered with an error code
    UNCONFIRMED = "unconfirmed"  # sent, but not acknowledged when the session ended
    UNKNOWN_LEVEL = "unknown_level"  # its priority is no level, and such messages are refused
    REPEATED = "repeated"  # its producer had published it before; acknowledged, because it has arrived
    MALFORMED_ONCE = "malformed_once"  # its $once is no PRODUCER/NUMBER
    LINK_FULL = "link_full"  # QoS 0 for another broker, and too much waited for the link to it already
    FORGOTTEN = "forgotten"  # it was owed to a broker of which an operator has said that it is gone for good
    OUT_OF_TURN = "out_of_turn"  # an earlier number of its producer was refused and comes first


#: Drops that happen to a message as it arrives; all others happen to what one receiver should have got.
ON_ARRIVAL: Final = frozenset(
    {
        Drop.DENIED,
        Drop.REFUSED,
        Drop.CLASS_TOO_LARGE,
        Drop.UNKNOWN_LEVEL,
        Drop.RETAINED_FULL,
        Drop.REPEATED,
        Drop.MALFORMED_ONCE,
        Drop.OUT_OF_TURN,
    }
)


#: Of a name or a text, which may have 64 KiB, as much as this is recorded: a thousand records are kept in memory.
MOST_SHOWN: Final = 1_024


class Dropped(NamedTuple):
    """One record of discarded messages."""

    when: float
    why: Drop
    #: The receiver; the publisher where the message was discarded on arrival, for no receiver in particular.
    client: str
    topic: str
    messages: int
    #: Messages in the queue of the receiver, once these had left it.
    queued: int
    #: ``NO_LEVEL`` when it was refused before it had one.
    level: int
    #: Seconds since the broker received it.
    age_s: float


class Event(NamedTuple):
    """One line of the broker's story, for the log."""

    kind: str
    client: str
    peer: str
    text: str = ""
    is_trouble: bool = False
    #: The name under which it is counted, if it is.
    why: str = ""


class Account:
    """All counters of one broker; a plain object, because the hot path adds to it once per chunk."""

    __slots__ = (
        "bytes_in",
        "bytes_out",
        "closed",
        "congestions",
        "connections",
        "drops",
        "drops_by_level",
        "events",
        "examinations",
        "holds",
        "last_drops",
        "lost_events",
        "on_drop",
        "packets_in",
        "packets_out",
        "publishes_in",
        "publishes_out",
        "received_by_level",
        "refusals",
        "sessions_ended",
        "sessions_expired",
        "sessions_most",
        "unknown_levels",
        "unreadable",
        "waits",
    )

    #: How many records of each kind are kept.
    RING = 1_000

    def __init__(self) -> None:
        self.bytes_in = 0
        self.bytes_out = 0
        #: Control packets received, sent without PUBLISH, and PUBLISH packets in both directions.
        self.packets_in = 0
        self.packets_out = 0
        self.publishes_in = 0
        self.publishes_out = 0
        #: Connections accepted since the start.
        self.connections = 0
        self.sessions_expired = 0
        #: Sessions that the broker has ended, by name.
        self.sessions_ended: Counter[str] = Counter()
        self.sessions_most = 0
        #: PUBLISH packets received, by level.
        self.received_by_level = [0] * LEVELS
        #: Messages that waited in a congested queue, by level and by time: bucket ``n`` holds waits below 2^n ms.
        self.waits = [[0] * WAIT_BUCKETS for _ in range(LEVELS)]
        #: How often a session's queue was handed to the policy.
        self.congestions = 0
        #: Priority properties that were no level.
        self.unknown_levels = 0
        #: Messages whose content was looked at, and those of them whose payload could not be read.
        self.examinations = 0
        self.unreadable = 0
        #: Messages discarded, by name.
        self.drops: Counter[Drop] = Counter()
        #: The same for each level; the last is for those without one.
        self.drops_by_level: list[Counter[Drop]] = [Counter() for _ in range(LEVELS + 1)]
        self.last_drops: deque[Dropped] = deque(maxlen=self.RING)
        #: Told of each record as well.
        self.on_drop: Callable[[Dropped], None] | None = None
        #: Connections ended, by name.
        self.closed: Counter[str] = Counter()
        #: What was refused without ending the connection, by reason: subscriptions, packet ids used again.
        self.refusals: Counter[str] = Counter()
        #: How often a connection was not read for a while, by name.
        self.holds: Counter[str] = Counter()
        #: Not yet taken by the shell; a shell that never takes them loses the oldest, counted.
        self.events: deque[Event] = deque(maxlen=self.RING)
        self.lost_events = 0

    def arrived(self, messages: int, level: int = NO_LEVEL) -> None:
        """PUBLISH packets came in, each counted once; without a level if they were refused before they had one."""
        self.packets_in += messages
        self.publishes_in += messages
        if level != NO_LEVEL:
            self.received_by_level[level] += messages

    def examined(self, messages: int, unreadable: int) -> None:
        """The content of messages was looked at, and of some of them it could not be read."""
        self.examinations += messages
        self.unreadable += unreadable

    def drop(  # one argument per field of the record
        self,
        now: float,
        why: Drop,
        client: str,
        topic: bytes,
        messages: int = 1,
        queued: int = 0,
        *,
        level: int = NO_LEVEL,
        since: float | None = None,
    ) -> None:
        """Name what was discarded; ``since`` is when the broker received it, if that was not just now."""
        self.drops[why] += messages
        self.drops_by_level[level][why] += messages
        age_s = 0.0 if since is None else now - since
        name = topic[:MOST_SHOWN].decode("utf-8", "ignore")
        dropped = Dropped(now, why, client[:MOST_SHOWN], name, messages, queued, level, age_s)
        self.last_drops.append(dropped)
        if self.on_drop is not None:
            self.on_drop(dropped)

    def waited(self, level: int, seconds: float, messages: int) -> None:
        """Messages left a congested queue after so long."""
        bucket = max(0, int(seconds * 1e3)).bit_length()
        self.waits[level][min(bucket, WAIT_BUCKETS - 1)] += messages

    def wait_quantile(self, level: int, part: float) -> float:
        """About how long this part of the messages of a level waited at most, in seconds."""
        buckets = self.waits[level]
        wanted = part * sum(buckets)
        passed = 0
        for bucket, messages in enumerate(buckets):
            passed += messages
            if messages and passed >= wanted:
                return float((1 << bucket) * 1e-3)
        return 0.0

    def tell(self, event: Event) -> None:
        """Add a line to the story."""
        if len(self.events) == self.RING:
            self.lost_events += 1
        if len(event.client) > MOST_SHOWN or len(event.text) > MOST_SHOWN:
            event = event._replace(client=event.client[:MOST_SHOWN], text=event.text[:MOST_SHOWN])
        self.events.append(event)
