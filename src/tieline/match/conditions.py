"""All conditions on the messages of one event type that arrive by one filter: who of the askers wants which message.

Conditions that are boxes go into an index.  What a box can only narrow down (``changed``, attributes that no type
declares) is evaluated for the messages that the box lets through, and what no box narrows at all for every message.

Which of these ways a condition takes, :func:`narrow` decides, for the broker and for the jobs that replay subscriptions
over tables.  The condition is the meaning; boxes only say where to look.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Generic, NamedTuple, Protocol, TypeVar

from tieline.match.box import Box, everything
from tieline.match.change import LastValues, holds
from tieline.match.events import CodesExhausted, EventType, Reading
from tieline.match.index import AdaptiveIndex
from tieline.match.where import Predicate, bind, understood


class Narrowed(NamedTuple):
    """A condition on the messages of one event type."""

    #: In the words of the event type: its timestamps, for one, are numbers.
    condition: Predicate
    #: Whatever is asked for lies in one of them; none at all if nothing can be.  None if no box would keep anything
    #: out, so that the condition is evaluated for every message.
    boxes: tuple[Box, ...] | None
    #: Whether everything in the boxes is asked for; otherwise the condition is evaluated for what lies in them.
    is_exact: bool


def narrow(predicate: Predicate, event: EventType) -> Narrowed:
    """What is known about a condition before any message comes."""
    if not event.attributes:
        return Narrowed(understood(predicate, event), None, is_exact=False)
    try:
        bound = bind(predicate, event)
    except CodesExhausted:  # more categories are named than have numbers
        return Narrowed(understood(predicate, event), None, is_exact=False)
    dimensions = len(event.attributes)
    is_open = not bound.is_exact and bound.boxes == (everything(dimensions),)
    if is_open:
        return Narrowed(bound.predicate, None, is_exact=False)
    return Narrowed(bound.predicate, bound.boxes, bound.is_exact)


class Asker(Protocol):
    """Whoever is found when a message meets its condition."""

    @property
    def predicate(self) -> Predicate:
        """The condition that a message has to meet."""

    @property
    def last(self) -> LastValues | None:
        """What it was sent last, if its condition compares with that."""


A = TypeVar("A", bound=Asker)
#: Below this many messages at once, an index is asked one by one.
FEW = 4
#: Conditions that are looked at one by one instead of in an index.
MOST_FEW = 8
#: What things take, in units of about a hundred nanoseconds: to make ready one comparison of a condition that is
#: evaluated, and of one that becomes boxes; to ask about a message at all; to evaluate one comparison for it.
MAKING_READY = 25
MAKING_BOXES = 140
ASKING = 10
COMPARING = 3
#: Boxes among which to search takes about as long as one comparison.
BOXES_PER_EFFORT = 10_000
#: Conditions that are evaluated before somebody is asked whether it has been enough.
STRETCH = 32


class ConditionTable(Generic[A]):
    """The conditions of many askers on one event type."""

    __slots__ = (
        "_askers",
        "_comparisons",
        "_few",
        "_free",
        "_index",
        "_numbers",
        "_scanned",
        "_unsure",
        "_unsure_comparisons",
        "event",
    )

    def __init__(self, event: EventType) -> None:
        self.event = event
        #: The boxes by number, as long as there are few; most filters have a single subscriber, and no index for it.
        self._few: dict[int, tuple[Box, ...]] = {}
        self._index: AdaptiveIndex | None = None
        #: By the number under which their boxes are known; None where a number is free.
        self._askers: list[A | None] = []
        self._free: list[int] = []
        #: The numbers of those that are in the index; None for those that no message can satisfy.
        self._numbers: dict[A, int | None] = {}
        #: Numbers whose boxes are not the whole condition, and the condition.
        self._unsure: dict[int, Predicate] = {}
        #: Those that are asked about every message, and what for.
        self._scanned: dict[A, Predicate] = {}
        #: How many comparisons those are that are evaluated for every message, and those that may have to be.
        self._comparisons = self._unsure_comparisons = 0

    def __len__(self) -> int:
        return len(self._numbers) + len(self._scanned)

    @property
    def index(self) -> AdaptiveIndex | None:
        """Where the boxes are; None while there are few."""
        return self._index

    @property
    def is_exact(self) -> bool:
        """Whether the index alone knows the answer, so that nothing but the numbers of a message is needed."""
        return not self._scanned and not self._unsure

    @property
    def effort(self) -> int:
        """What asking about one message costs at least, in units of work."""
        return ASKING + COMPARING * self._comparisons + len(self._numbers) // BOXES_PER_EFFORT

    @property
    def asked_always(self) -> int:
        """How many are asked about every message."""
        return len(self._scanned)

    @property
    def most_effort(self) -> int:
        """What it costs if every box contains the message."""
        return self.effort + COMPARING * self._unsure_comparisons

    def add(self, asker: A) -> int:
        """Take in whoever asks, with its condition; what that cost, in units of work."""
        condition, boxes, is_exact = narrow(asker.predicate, self.event)
        comparisons = condition.comparisons
        effort = comparisons * (MAKING_BOXES if self.event.attributes else MAKING_READY)
        if not is_exact:
            # the first message must not wait for it
            condition.prepare()
        if boxes is None:
            self._scanned[asker] = condition
            self._comparisons += comparisons
            return effort
        if not boxes:
            self._numbers[asker] = None
            return effort
        number = self._free.pop() if self._free else len(self._askers)
        if number == len(self._askers):
            self._askers.append(asker)
        else:
            self._askers[number] = asker
        self._numbers[asker] = number
        if not is_exact:
            self._unsure[number] = condition
            self._unsure_comparisons += comparisons
        if self._index is not None:
            for box in boxes:
                self._index.add(number, box)
            return effort
        self._few[number] = boxes
        if len(self._few) > MOST_FEW:
            self._index = AdaptiveIndex(len(self.event.attributes))
            for number, boxes in self._few.items():
                for box in boxes:
                    self._index.add(number, box)
            self._few.clear()
        return effort

    def remove(self, asker: A) -> None:
        """Forget whoever asked, with its condition."""
        scanned = self._scanned.pop(asker, None)
        if scanned is not None:
            self._comparisons -= scanned.comparisons
            return
        number = self._numbers.pop(asker)
        if number is not None:
            if self._index is not None:
                self._index.remove(number)
            else:
                del self._few[number]
            self._askers[number] = None
            unsure = self._unsure.pop(number, None)
            if unsure is not None:
                self._unsure_comparisons -= unsure.comparisons
            self._free.append(number)

    def asks_always(self, asker: A) -> bool:
        """Whether the condition of somebody who asks here is evaluated for every message: no box narrows it."""
        return asker in self._scanned

    def match(self, reading: Reading, topic: bytes) -> list[A]:
        """Who wants a message."""
        found: list[A] = []
        if self._numbers:
            for number in self._meeting(reading.row):
                asker = self._askers[number]
                assert asker is not None
                condition = self._unsure.get(number)
                if condition is None or holds(condition, reading.get, asker.last, topic):
                    found.append(asker)
        found += [
            asker for asker, condition in self._scanned.items() if holds(condition, reading.get, asker.last, topic)
        ]
        return found

    def match_in_stretches(
        self, reading: Reading, topic: bytes, is_enough: Callable[[int], bool]
    ) -> Generator[None, float, list[A]]:
        """As :meth:`match`; it pauses whenever ``is_enough``, told what was done, says so.

        Conditions that come while it pauses are not asked, and those that go are left out.
        """
        found: list[A] = []
        asked: list[tuple[A, Predicate]] = []
        for number in self._meeting(reading.row) if self._numbers else ():
            asker = self._askers[number]
            assert asker is not None
            condition = self._unsure.get(number)
            if condition is None:
                found.append(asker)
            else:
                asked.append((asker, condition))
        asked += self._scanned.items()
        for start in range(0, len(asked), STRETCH):
            stretch = asked[start : start + STRETCH]
            found += [asker for asker, condition in stretch if holds(condition, reading.get, asker.last, topic)]
            if is_enough(COMPARING * sum([condition.comparisons for _, condition in stretch])):
                yield
        return [asker for asker in found if asker in self._scanned or asker in self._numbers]

    def match_rows(self, rows: Sequence[Sequence[float]]) -> list[Sequence[A]]:
        """Who wants each of many messages, by their numbers alone; only while the conditions are exact."""
        index, askers = self._index, self._askers
        if not self._numbers:
            return [()] * len(rows)
        if index is None or len(rows) < FEW:
            return [self.match_row(row) for row in rows]
        found: list[Sequence[A]] = [()] * len(rows)
        offsets, numbers = index.match_batch(rows)
        start = 0
        for place, end in enumerate(offsets[1:]):
            if end != start:  # most messages are wanted by nobody here
                found[place] = [askers[number] for number in numbers[start:end]]  # type: ignore[misc]  # not free
                start = end
        return found

    def match_row(self, row: Sequence[float]) -> Sequence[A]:
        """The same for one message."""
        askers = self._askers
        return [askers[number] for number in self._meeting(row)]  # type: ignore[misc]  # not free

    def _meeting(self, row: Sequence[float]) -> Sequence[int]:
        """The numbers of those with a box around a point."""
        if self._index is not None:
            return self._index.match(row)
        found = []
        for number, boxes in self._few.items():
            for box in boxes:
                if _contains(box, row):
                    found.append(number)
                    break
        return found


def _contains(box: Box, row: Sequence[float]) -> bool:
    """As the method of a box, without a generator: this is what a message to one subscriber with a condition costs."""
    for lo, value, hi in zip(box.lo, row, box.hi, strict=True):  # noqa: SIM110 - a generator costs more than the rest
        if not lo <= value <= hi:
            return False
    return True
