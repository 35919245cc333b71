"""What a subscription was last sent, topic by topic: the reference of ``changed()`` and ``delta()``.

A reference is the value of the last message that was delivered, not of the last one that came by, so that a value that
creeps is noticed once it has crept far enough.  Each subscription remembers a bounded number of topics, and all of them
together a bounded number; the topic that was delivered longest ago is forgotten, counted, and its next message counts
as changed.  So does the next one of a topic whose last message was dropped after all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tieline.match.events import Get, Value
from tieline.match.where import Predicate

#: What one reference takes beside its topic, about; and what all of them may take.
REFERENCE_BYTES = 360
MOST_BYTES = 67_108_864

References = Mapping[str, Value | None]


class ChangeMemory:
    """The bounds of all subscriptions together, and how often they were met."""

    __slots__ = ("bytes", "forgotten_alone", "forgotten_together", "kept", "most", "most_bytes", "most_each")

    def __init__(self, most_each: int, most: int, most_bytes: int = MOST_BYTES) -> None:
        self.most_each = most_each
        self.most = most
        self.most_bytes = most_bytes
        #: References kept by all subscriptions, and what they take.
        self.kept = 0
        self.bytes = 0
        #: References forgotten because one subscription had too many, and because all of them had.
        self.forgotten_alone = 0
        self.forgotten_together = 0


class LastValues:
    """The references of one subscription."""

    __slots__ = ("_by_topic", "_memory", "names")

    def __init__(self, names: Sequence[str], memory: ChangeMemory) -> None:
        #: The attributes that are compared.
        self.names = tuple(names)
        self._memory = memory
        #: In the order of delivery.
        self._by_topic: dict[bytes, References] = {}

    def __len__(self) -> int:
        return len(self._by_topic)

    def before(self, topic: bytes) -> References | None:
        """What was delivered last of a topic; None if nothing was, or if it is forgotten."""
        return self._by_topic.get(topic)

    def compared(self, get: Get) -> References:
        """What a message says about the attributes that are compared: the reference that it is once delivered."""
        return {name: get(name) for name in self.names}

    def note(self, topic: bytes, values: References) -> None:
        """A message was delivered."""
        memory = self._memory
        if self._by_topic.pop(topic, None) is None:
            if len(self._by_topic) >= memory.most_each:
                memory.forgotten_alone += 1
                if not self._forget_oldest():
                    return
            if memory.kept >= memory.most or memory.bytes + len(topic) > memory.most_bytes:
                memory.forgotten_together += 1
                if not self._forget_oldest():
                    return
            memory.kept += 1
            memory.bytes += len(topic) + REFERENCE_BYTES
        self._by_topic[topic] = values

    def forget(self, topic: bytes, values: References) -> None:
        """A message was dropped before it was sent: it is no reference, unless a later one has taken its place."""
        if self._by_topic.get(topic) is values:
            self._let_go(topic)

    def clear(self) -> None:
        """Forget every topic, because the subscription ends."""
        self._memory.kept -= len(self._by_topic)
        self._memory.bytes -= sum(len(topic) + REFERENCE_BYTES for topic in self._by_topic)
        self._by_topic.clear()

    def _let_go(self, topic: bytes) -> None:
        del self._by_topic[topic]
        self._memory.kept -= 1
        self._memory.bytes -= len(topic) + REFERENCE_BYTES

    def _forget_oldest(self) -> bool:
        """Make room; False if there is nothing to forget."""
        if not self._by_topic:
            return False
        self._let_go(next(iter(self._by_topic)))
        return True


def holds(condition: Predicate, get: Get, last: LastValues | None, topic: bytes) -> bool:
    """Whether a message of a topic satisfies a condition; ``last`` if that compares with what was delivered before."""
    return condition.holds(get, None if last is None else last.before(topic))
