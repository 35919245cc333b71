"""All conditions on the messages of one event type that arrive by one filter: who of the askers wants which message.

Conditions that are boxes go into an index.  What a box can only narrow down (``changed``, attributes that no type
declares) is evaluated for the messages that the box lets through, and what no box narrows at all for every message.

Which of these ways a condition takes, :func:`narrow` decides, for the broker and for the jobs that replay subscriptions
over tables.  The condition is the meaning; boxes only say where to look.
"""

from __future__ import annotations

from collections.abc import Sequence
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
    try:
        bound = bind(predicate, event)
    except CodesExhausted:  # more categories are named than have numbers
        return Narrowed(understood(predicate, event), None, is_exact=False)
    dimensions = len(event.attributes)
    is_open = not bound.is_exact and bound.boxes == (everything(dimensions),)
    if not dimensions or is_open:
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
#: Boxes among which to search takes about as long as to evaluate one condition.
BOXES_PER_EFFORT = 10_000


class Conditions(Generic[A]):
    """The conditions of many askers on one event type."""

    __slots__ = ("_askers", "_few", "_free", "_index", "_numbers", "_scanned", "_unsure", "event")

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
        """What asking about one message costs, about: counted in conditions that are evaluated."""
        return 1 + len(self._scanned) + len(self._numbers) // BOXES_PER_EFFORT

    def add(self, asker: A) -> None:
        """Take in whoever asks, with its condition."""
        condition, boxes, is_exact = narrow(asker.predicate, self.event)
        if boxes is None:
            self._scanned[asker] = condition
            return
        if not boxes:
            self._numbers[asker] = None
            return
        number = self._free.pop() if self._free else len(self._askers)
        if number == len(self._askers):
            self._askers.append(asker)
        else:
            self._askers[number] = asker
        self._numbers[asker] = number
        if not is_exact:
            self._unsure[number] = condition
        if self._index is not None:
            for box in boxes:
                self._index.add(number, box)
            return
        self._few[number] = boxes
        if len(self._few) > MOST_FEW:
            self._index = AdaptiveIndex(len(self.event.attributes))
            for number, boxes in self._few.items():
                for box in boxes:
                    self._index.add(number, box)
            self._few.clear()

    def remove(self, asker: A) -> None:
        """Forget whoever asked, with its condition."""
        if asker in self._scanned:
            del self._scanned[asker]
            return
        number = self._numbers.pop(asker)
        if number is not None:
            if self._index is not None:
                self._index.remove(number)
            else:
                del self._few[number]
            self._askers[number] = None
            self._unsure.pop(number, None)
            self._free.append(number)

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
