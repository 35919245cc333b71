"""What happens in a broker, written down for those who read the events later.

Connections and subscriptions are told one by one.  Deliveries and drops are too many for that: they are summed over a
period, deliveries by publisher, the broker that accepted its messages, topic, subscriber and class, drops by reason,
client and topic.  A period has room for
so many sums; what does not fit is summed under the name ``(others)``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final  # Any: whatever an event has to tell

from tieline.conf.quantities import seconds
from tieline.conf.schema import Log
from tieline.core.account import WAIT_BUCKETS, Dropped
from tieline.core.durable.journal import Journal
from tieline.core.message import Item
from tieline.core.routing.priorities import Priorities
from tieline.core.timers import Timers

#: The name under which everything is summed that has no room of its own.
OTHERS: Final = "(others)"


class Chronicle:
    """The events of one broker, and the sums of the current period."""

    __slots__ = ("_drops", "_journal", "_most", "_period_s", "_priorities", "_since", "_timers", "_traffic", "beside")

    def __init__(self, settings: Log, journal: Journal, timers: Timers, priorities: Priorities, now: float) -> None:
        self._journal = journal
        self._timers = timers
        self._priorities = priorities
        self._period_s = seconds(settings.period)
        self._most = settings.period_keys
        self._since = now
        #: Messages, bytes, and how many waited below 2^n ms; by publisher, the broker that accepted them (empty for
        #: this one), topic, subscriber and level.
        self._traffic: dict[tuple[str, str, bytes, str, int], list[int]] = {}
        #: Messages by reason, client and topic.
        self._drops: dict[tuple[str, str, str], int] = {}
        #: What others have summed over the period: the kind of event and its detail.
        self.beside: Callable[[], Iterable[tuple[str, dict[str, Any]]]] = list
        timers.at(now + self._period_s, self._report)

    def happened(self, now: float, kind: str, client: str, topic: str = "", **detail: Any) -> None:
        """Write down one event at once; it becomes permanent with the facts of its turn."""
        self._journal.happened((self._nanoseconds(now), kind, client, topic, detail))

    def delivered(self, item: Item, subscriber: str, messages: int, size: int, now: float) -> None:
        """Messages were written to a subscriber: they are added to the sums of the period."""
        origin = item.origin
        key = (origin.client, origin.broker, item.topic, subscriber, item.level)
        sums = self._traffic.get(key)
        if sums is None:
            if len(self._traffic) >= self._most:
                key = (OTHERS, "", OTHERS.encode(), OTHERS, item.level)
                sums = self._traffic.get(key)
            if sums is None:
                sums = self._traffic[key] = [0] * (2 + WAIT_BUCKETS)
        sums[0] += messages
        sums[1] += size
        bucket = max(0, int((now - item.at) * 1e3)).bit_length()
        sums[2 + min(bucket, WAIT_BUCKETS - 1)] += messages

    def dropped(self, drop: Dropped) -> None:
        """Messages were discarded: they are added to the sums of the period."""
        key = (str(drop.why), drop.client, drop.topic)
        if key not in self._drops and len(self._drops) >= self._most:
            key = (str(drop.why), OTHERS, OTHERS)
        self._drops[key] = self._drops.get(key, 0) + drop.messages

    def close(self, now: float) -> None:
        """Tell the sums of the period so far."""
        since, end = self._nanoseconds(self._since), self._nanoseconds(now)
        journal, names = self._journal, self._priorities.classes.names
        for (publisher, broker, topic, subscriber, level), (messages, size, *waits) in self._traffic.items():
            detail: dict[str, object] = {
                "since": since,
                "publisher": publisher,
                "class": names[level],
                "level": level,
                "count": messages,
                "bytes": size,
                "waits_ms": _buckets(waits),
            }
            if broker:
                detail["broker"] = broker
            journal.happened((end, "traffic", subscriber, topic.decode(), detail))
        for (why, client, dropped), messages in self._drops.items():
            journal.happened((end, "drop", client, dropped, {"since": since, "why": why, "count": messages}))
        for kind, told in self.beside():
            journal.happened((end, kind, "", "", {"since": since, **told}))
        self._traffic.clear()
        self._drops.clear()
        self._since = now

    def _report(self, now: float) -> None:
        self.close(now)
        self._timers.at(now + self._period_s, self._report)

    def _nanoseconds(self, at: float) -> int:
        return int((at + self._journal.epoch_s) * 1e9)


def _buckets(waits: list[int]) -> dict[int, int]:
    """How many messages waited less than so many milliseconds, without the empty buckets."""
    return {1 << bucket: messages for bucket, messages in enumerate(waits) if messages}
