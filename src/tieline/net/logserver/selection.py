"""Which records of a range are asked for: by topic and by content, with the broker's own meaning of both.

Theory of operation
-------------------
A condition is evaluated on what the message says, as its event type reads it: the types of the configuration the reader
was started with, or none.  What it said by the types that were declared when it arrived
(:mod:`tieline.net.store.declared_types`) counts first on topics for which the reader knows no type, and in Sparkplug,
where names and signs come from an earlier birth certificate and the record carries them.  Elsewhere it counts where
the reader's own type finds nothing.  Either is read when somebody asks for a value.

A selection belongs to one request.  Event types number the categories that conditions name and remember births; both
depend on what was asked and read before, which no two requests should share.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Generic, Protocol, TypeVar

from tieline.conf.schema import Settings
from tieline.log.record import Occurrence, Record
from tieline.match.events import Events, EventType, Get, Value
from tieline.match.trees import FilterTree
from tieline.match.where import Predicate, understood
from tieline.net.logserver.question import Question
from tieline.net.store.declared_types import DeclaredTypes

T = TypeVar("T")

#: Topics about which something is remembered; beyond, it is worked out again.
MOST_TOPICS: Final = 10_000


class Remembered(Generic[T]):
    """A function of topics that is asked again and again about the same ones."""

    __slots__ = ("_answers", "_find")

    def __init__(self, find: Callable[[str], T]) -> None:
        self._find = find
        self._answers: dict[str, T] = {}

    def __call__(self, topic: str) -> T:
        try:
            return self._answers[topic]
        except KeyError:
            if len(self._answers) >= MOST_TOPICS:
                self._answers.clear()
            answer = self._answers[topic] = self._find(topic)
            return answer


class Selection:
    """The topics and the condition of one request."""

    def __init__(self, question: Question, settings: Settings, types: DeclaredTypes | None = None) -> None:
        """``settings`` declare the reader's own event types; ``types`` are those under which the records arrived."""
        self._events = Events(settings)
        #: What makes records say what their messages say.
        self.types = DeclaredTypes() if types is None else types
        self._type_of = Remembered(self._events.of)
        self._where = question.where
        #: The condition as each type understands it.
        self._bound: dict[EventType, Predicate] = {}
        filters: FilterTree[bool] = FilterTree()
        for each in question.topics:
            filters.put(each, True)
        #: Whether messages of a topic are asked for, as far as topics go.
        self.has_topic = Remembered(lambda topic: not question.topics or bool(filters.match(topic)))
        #: Nothing is left out.
        self.is_everything = not question.topics and question.where is None
        #: Fields of a record that :meth:`takes` looks at.
        self.fields: set[str] = {"topic"} if question.topics else set()
        if question.where is not None:
            self.fields |= {"topic", "payload", "properties", "attributes"}
        #: The name of the event type of a topic; None where none is declared.
        self.event_of = Remembered(self._name)

    def _name(self, topic: str) -> str | None:
        event = self._events.of(topic)
        return None if event is self._events.untyped else event.name

    def takes(self, record: Record) -> bool:
        """Whether a message is asked for; its record knows its offset if there is a condition."""
        topic = record.topic
        if self._where is not None and self._events.is_birth(topic):
            self._events.learn(topic, record.payload)
        return self.has_topic(topic) and (self._where is None or self._holds(self._where, record))

    def takes_occurrence(self, occurrence: Occurrence) -> bool:
        """Whether an event of the broker is asked for: its attributes are kind, client, and what its detail holds."""
        if not self.has_topic(occurrence.topic):
            return False
        if self._where is None:
            return True
        known = {**occurrence.detail, "kind": occurrence.kind, "client": occurrence.client}

        def get(name: str) -> float | str | bool | None:
            value = known.get(name)
            return value if isinstance(value, float | int | str) else None

        return self._where.holds(get)

    def _holds(self, where: Predicate, record: Record) -> bool:
        event = self._type_of(record.topic)
        predicate = self._bound.get(event)
        if predicate is None:
            # what the type calls a time decides whether a text is one
            predicate = self._bound[event] = understood(where, event)

        def now() -> Get:
            reading = event.read(record.payload, record.properties, record.topic)
            return _nothing if reading is None else reading.get

        def then() -> Get:
            self.types.complete(record)
            return _nothing if record.attributes is None else record.attributes.get

        counts_first = event is self._events.untyped or event.reads_topic
        return predicate.holds(_Either(then, now) if counts_first else _Either(now, then))


class _Either:
    """The values of one reading, and of another where that has none; neither is made before it is needed."""

    __slots__ = ("_first", "_make_first", "_make_second", "_second")

    def __init__(self, make_first: Callable[[], Get], make_second: Callable[[], Get]) -> None:
        self._make_first = make_first
        self._make_second = make_second
        self._first: Get | None = None
        self._second: Get | None = None

    def __call__(self, name: str) -> Value | None:
        if self._first is None:
            self._first = self._make_first()
        value = self._first(name)
        if value is not None:
            return value
        if self._second is None:
            self._second = self._make_second()
        return self._second(name)


def _nothing(_name: str) -> None:
    return None


class Visibility(Protocol):
    """What the user of a reader may see: decides on topics and events."""

    @property
    def is_open(self) -> bool:
        """Whether nothing is withheld."""

    def record(self, topic: str) -> bool:
        """Whether messages of a topic may be seen."""

    def occurrence(self, occurrence: Occurrence) -> bool:
        """Whether an event of the broker may be seen."""
