"""Messages of captured topics, written down for those who read the log later.

A message is captured as it arrived, in the order of arrival, when the broker accepts it; a QoS 1 or 2 message is
acknowledged once its record is permanent.  A QoS 2 message that its publisher sends again is the same message and has
one record; a QoS 1 message sent again after its PUBACK got lost has two, with the same digest.

Payloads are not looked into: who reads the log reads what they say, with the event types of that time.  Only what
depends on earlier messages is read here, because nobody else knows those: Sparkplug's births.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tieline.core.durable.journal import Journal
from tieline.core.message import Burst, Message
from tieline.core.routing.priorities import Priorities
from tieline.log.record import digest_of
from tieline.match.events import Events, EventType
from tieline.match.trees import FilterTree

#: Topics about which it is remembered whether they are captured, and how long all of them may be together.
MOST_KNOWN: Final = 65_536
MOST_BYTES: Final = 8_388_608


class Capture:
    """Which topics are captured, and how their messages become records."""

    __slots__ = ("_bytes", "_events", "_filters", "_journal", "_known", "_priorities")

    def __init__(self, filters: Sequence[str], journal: Journal, events: Events, priorities: Priorities) -> None:
        self._journal = journal
        self._events = events
        self._priorities = priorities
        self._filters: FilterTree[bool] = FilterTree()
        for filter_ in filters:
            self._filters.put(filter_, True)
        self._bytes = 0
        #: By topic: its text, and its event type if messages are read here; None if it is not captured.
        self._known: dict[bytes, tuple[str, EventType | None] | None] = {}

    def message(self, message: Message, packet_id: int = 0, *, dup: bool = False) -> None:
        """Write a message down if its topic is captured."""
        found = self._look_up(message.topic)
        if found is None:
            return
        topic, event = found
        self._journal.logged(
            (
                self._nanoseconds(message.at),
                message.origin.client,
                message.origin.epoch,
                packet_id,
                dup,
                message.qos,
                bool(message.retain),
                message.level,
                self._priorities.classes.names[message.level],
                topic,
                message.payload,
                message.properties,
                digest_of(message.topic, message.payload),
                None if event is None else event.said(message.payload, message.properties, topic),
            )
        )

    def burst(self, burst: Burst) -> None:
        """The same for QoS 0 messages as they came."""
        found = self._look_up(burst.topic)
        if found is None:
            return
        topic, event = found
        head = (self._nanoseconds(burst.at), burst.origin.client, burst.origin.epoch, 0, False, 0, False)
        kind = (burst.level, self._priorities.classes.names[burst.level], topic)
        for payload in burst.payloads():
            digest = digest_of(burst.topic, payload)
            said = None if event is None else event.said(payload, b"", topic)
            self._journal.logged((*head, *kind, payload, b"", digest, said))

    def _nanoseconds(self, at: float) -> int:
        return int((at + self._journal.epoch_s) * 1e9)

    def _look_up(self, key: bytes) -> tuple[str, EventType | None] | None:
        try:
            return self._known[key]
        except KeyError:
            pass
        topic = key.decode()
        found: tuple[str, EventType | None] | None = None
        if self._filters.match(topic):
            event = self._events.of(topic)
            found = (topic, event if event.reads_topic else None)
        if len(self._known) >= MOST_KNOWN or self._bytes > MOST_BYTES:
            self._known.clear()
            self._bytes = 0
        self._known[key] = found
        self._bytes += len(key)
        return found
