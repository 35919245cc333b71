"""Which records of a range are asked for: by topic and by content, with the broker's own meaning of both.

Theory of operation
-------------------
A condition is evaluated on what the message says, as its event type reads it: the types of the configuration the reader
was started with, or none.  What the broker read when the message arrived stands in the record as well.  It counts where
the payload alone does not say everything: in Sparkplug, where names and signs come from an earlier birth certificate,
and on topics for which the reader knows no type.

A selection belongs to one request.  Event types number the categories that conditions name and remember births; both
depend on what was asked and read before, which no two requests should share.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Generic, TypeVar

from tieline.conf.schema import Settings
from tieline.log.record import Occurrence, Record
from tieline.match.events import CodesExhausted, Events, EventType
from tieline.match.filters import FilterTree
from tieline.match.where import Predicate, bind
from tieline.net.logserver.question import Question

T = TypeVar("T")
Get = Callable[[str], float | str | bool | None]

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

    def __init__(self, question: Question, settings: Settings) -> None:
        self._events = Events(settings)
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
        """Whether a message is asked for."""
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
        reading = event.read(record.payload, record.properties, record.topic)
        kept = record.attributes
        predicate = self._bound.get(event) or self._bind(where, event)
        if not kept:
            return reading is not None and predicate.holds(reading.get)
        found: Get = _nothing if reading is None else reading.get
        if event is self._events.untyped or event.reads_topic:
            return predicate.holds(_first(kept.get, found))
        return predicate.holds(_first(found, kept.get))

    def _bind(self, where: Predicate, event: EventType) -> Predicate:
        """Times that a condition writes as texts are numbers in a message: what the type calls a time decides."""
        try:
            bound = bind(where, event).predicate
        except CodesExhausted:
            bound = where
        self._bound[event] = bound
        return bound


def _first(one: Get, other: Get) -> Get:
    def get(name: str) -> float | str | bool | None:
        value = one(name)
        return other(name) if value is None else value

    return get


def _nothing(_name: str) -> None:
    return None
