"""One look at all sessions: what waits in each class, who waits for what, and who is behind most.

Theory of operation
-------------------
There may be a hundred thousand sessions, and whoever looks at all of them in one go keeps everybody waiting.  So a
survey is a generator that pauses after a few hundred of them, and what it found is complete only when it has ended;
whoever drives it does so between turns.  Sessions for which nothing waits cost one comparison.

What waits for a congested session is counted by its policy, level by level.  Other queues are first in, first out and
nobody counts their levels, so their entries are looked at, a bounded number of each; what is behind those is taken to
be as they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import nlargest
from itertools import islice
from typing import TYPE_CHECKING, Final

from msgspec import Struct, field

from tieline.core.answers.why import Standing, standing
from tieline.core.client import CLOSING, Hold
from tieline.sched.levels import LEVELS

if TYPE_CHECKING:
    from tieline.core.broker import Broker
    from tieline.core.client import Session

#: How many sessions, and how many entries of queues, are looked at between two pauses.
PAUSE: Final = 256
PAUSE_ENTRIES: Final = 2_048
#: Entries of one queue that are looked at.
MOST_ENTRIES: Final = 1_024
#: How many of those that are behind are described.
SLOWEST: Final = 10
#: What keeps a client waiting for its own doing, or for that of others: not for a moment of the broker's own work.
HELD: Final = frozenset({Hold.QUEUE_FULL, Hold.RATE, Hold.NOT_READING, Hold.STORE, Hold.PEERS, Hold.HOME})


class Survey(Struct):
    """What one look has found; complete when the generator that makes it has ended."""

    sessions: int = 0
    connected: int = 0
    #: Sessions for which something waits; those whose clients are not read; of those away, the ones that collect.
    waiting: int = 0
    held: int = 0
    away: int = 0
    congested_sessions: int = 0
    #: By level: messages that wait, sessions for which the class is congested, how long the oldest has waited.
    waiting_by_level: list[int] = field(default_factory=lambda: [0] * LEVELS)
    congested: list[int] = field(default_factory=lambda: [0] * LEVELS)
    oldest_s: list[float] = field(default_factory=lambda: [0.0] * LEVELS)
    #: Those that are behind most, by bytes.
    slowest: list[Standing] = field(default_factory=list)
    #: Some of those whose clients are held.
    holding: list[Standing] = field(default_factory=list)


def survey(broker: Broker, now: float, found: Survey) -> Iterator[None]:
    """Look at all sessions and write down what there is; pauses wherever others may have their turn."""
    work = 0
    behind: list[tuple[int, int, Session]] = []
    everybody = [*broker.sessions.values()]
    found.sessions = len(everybody)
    for number, session in enumerate(everybody, 1):
        if number % PAUSE == 0 or work > PAUSE_ENTRIES:
            behind = nlargest(SLOWEST, behind)
            work = 0
            yield
        conn = session.connection
        if conn is None:
            found.away += 1
        elif conn.state is not CLOSING:
            found.connected += 1
            if conn.hold in HELD:
                found.held += 1
                if len(found.holding) < SLOWEST:
                    found.holding.append(standing(broker, session, now))
        spilled = 0 if session.spill is None else session.spill.bytes
        if not session.queue.messages and not spilled and not session.dropped:
            continue
        if session.queue.messages or spilled:
            found.waiting += conn is not None
            work += _count(session, found, now)
        # the number makes entries of equal weight comparable
        behind.append((session.queue.bytes + spilled, -number, session))
    found.slowest = [standing(broker, session, now) for _, _, session in nlargest(SLOWEST, behind)]


def _count(session: Session, found: Survey, now: float) -> int:
    """Add what waits for one session to its levels; how many entries were looked at."""
    backlog = session.backlog
    if backlog is not None:
        found.congested_sessions += any(backlog.congestion.states)
        for level in range(LEVELS):
            found.congested[level] += backlog.congestion.states[level]
            found.waiting_by_level[level] += backlog.policy.count(level)
            oldest = backlog.policy.oldest(level)
            if oldest is not None:
                found.oldest_s[level] = max(found.oldest_s[level], now - oldest.since)
        return LEVELS
    queue = session.queue
    looked_at = [0] * LEVELS
    entries = 0
    for waiting in (queue.blocked, queue.entries):
        for item, grant in islice(waiting, MOST_ENTRIES - entries):
            entries += 1
            looked_at[item.level] += item.messages
            if not grant.set_retain and session.connection is not None:
                found.oldest_s[item.level] = max(found.oldest_s[item.level], now - item.at)
    seen = sum(looked_at)
    for level, messages in enumerate(looked_at):
        found.waiting_by_level[level] += (
            messages if seen == queue.messages or not seen else round(messages * queue.messages / seen)
        )
    return entries
