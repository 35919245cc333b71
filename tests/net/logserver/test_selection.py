"""A selection takes what the broker would have delivered: the same topics, the same conditions, the same values."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.kits.examples import examples
from tests.kits.world import World, configured
from tests.net.logserver.writing import record
from tieline.conf.schema import Attribute, Event, Settings
from tieline.log.record import Occurrence
from tieline.match.events.sparkplug import payload_class
from tieline.match.where import Asked, spell
from tieline.net.logserver import question, selection
from tieline.net.logserver.question import Question
from tieline.net.logserver.selection import Selection
from tieline.net.store.declarations import Declaration
from tieline.net.store.declared_types import DeclaredTypes, declared_in
from tieline.wire.packets import Publish
from tieline.wire.properties import encode_properties

TYPES = Settings(
    event={
        "pcc": Event(
            topic="grid/+/pcc",
            attributes=(
                Attribute(name="voltage", bounds=(0.0, 500.0), path="v.rms"),
                Attribute(name="phase", kind="category"),
                Attribute(name="islanded", kind="boolean"),
                Attribute(name="at", kind="timestamp"),
            ),
        )
    }
)

numbers = st.sampled_from([0, 1, 229.5, 230, 240])
texts = st.sampled_from(["a", "b", "L1"])
times = st.sampled_from(["2026-01-01T00:00:00Z", "2026-06-01T00:00:00+02:00"])
values = st.one_of(numbers, texts, st.booleans(), times, st.none())
names = st.sampled_from(["voltage", "phase", "islanded", "at", "other", "v.rms"])
payloads = st.one_of(
    st.dictionaries(st.sampled_from(["phase", "islanded", "at", "other", "voltage"]), values, max_size=4)
    .flatmap(lambda body: st.one_of(st.just(body), values.map(lambda rms: {**body, "v": {"rms": rms}})))
    .map(lambda body: json.dumps(body).encode()),
    st.sampled_from([b"", b"not json", b"\xff\xfe", b"17"]),
)


@st.composite
def comparisons(draw: st.DrawFn) -> str:
    name = draw(names)
    if draw(st.booleans()):
        return f"{name} {draw(st.sampled_from(['<', '<=', '>', '>=']))} {draw(numbers)}"
    value = draw(st.one_of(numbers.map(str), texts.map(lambda text: f'"{text}"'), st.sampled_from(["true", "false"])))
    return f"{name} {draw(st.sampled_from(['=', '!=']))} {value}"


def combined(leaf: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.recursive(
        leaf,
        lambda inner: st.one_of(
            st.tuples(inner, st.sampled_from(["and", "or"]), inner).map(lambda parts: f"({' '.join(parts)})"),
            inner.map(lambda text: f"not ({text})"),
        ),
        max_leaves=4,
    )


on_times = st.tuples(st.sampled_from(["<", ">="]), times).map(lambda parts: f'at {parts[0]} "{parts[1]}"')
expressions = st.one_of(combined(comparisons()), combined(on_times))
topics = st.sampled_from(["grid/1/pcc", "grid/2/pcc", "grid/1/feeder", "other", "$grid/1/pcc"])
filters = st.sampled_from(["grid/+/pcc", "grid/#", "#", "+/1/pcc", "other"])
properties = st.lists(st.tuples(names, st.one_of(numbers.map(str), texts, times)), max_size=2)


@given(st.lists(st.tuples(topics, payloads, properties), min_size=1, max_size=12), expressions, filters, st.booleans())
@example([("grid/1/pcc", b'{"at": 1800000000}', [])], 'at >= "2026-01-01T00:00:00Z"', "#", True)
@examples(80)
def test_it_takes_what_a_subscriber_with_the_same_condition_is_sent(
    messages: list[tuple[str, bytes, list[tuple[str, str]]]], expression: str, filter_: str, is_typed: bool
) -> None:
    types = TYPES if is_typed else Settings()
    world = World(configured(types, sys_interval_s=0))
    subscriber, publisher = world.client("subscriber"), world.client("publisher")
    subscriber.subscribe(spell(Asked(None, filter_, expression)))
    taken = Selection(Question(topics=(filter_,), where=question.where(expression)), types)
    expected: list[int] = []
    sent: list[int] = []
    for number, (topic, payload, pairs) in enumerate(messages):
        publisher.publish(topic, payload, user_property=pairs)
        sent += [number for packet in subscriber.inbox if isinstance(packet, Publish)]
        subscriber.inbox.clear()
        block = encode_properties({"user_property": pairs}) if pairs else b""
        if taken.takes(record(number, topic=topic, payload=payload, properties=_without_length(block))):
            expected.append(number)
    assert sent == expected


def _without_length(block: bytes) -> bytes:
    """These blocks are shorter than 128 bytes or two bytes of length tell so."""
    if not block:
        return block
    return block[1:] if block[0] < 128 else block[2:]


def test_only_the_topics_that_were_asked_for() -> None:
    taken = Selection(Question(topics=("grid/+/pcc", "a/#")), Settings())
    assert [taken.takes(record(topic=each)) for each in ("grid/1/pcc", "grid/1/x", "a", "a/b/c", "$a/b")] == [
        True,
        False,
        True,
        True,
        False,
    ]
    assert not taken.is_everything and Selection(Question(), Settings()).is_everything


def test_what_is_remembered_about_topics_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selection, "MOST_TOPICS", 3)
    asked: list[str] = []

    def find(topic: str) -> str:
        asked.append(topic)
        return topic

    remembered = selection.Remembered(find)
    for topic in "abcabcdd":
        assert remembered(topic) == topic
        assert len(remembered._answers) <= 3
    assert asked == list("abcd")


def test_the_name_of_the_event_type() -> None:
    named = Selection(Question(), TYPES).event_of
    assert (named("grid/1/pcc"), named("grid/1/x")) == ("pcc", None)


def test_what_the_broker_read_stands_in_where_no_type_is_known() -> None:
    kept = record(topic="grid/1/pcc", payload=b"\x00\x01", attributes={"voltage": 231.0})
    asked = Question(where=question.where("voltage > 230"))
    assert Selection(asked, Settings()).takes(kept)
    assert not Selection(asked, Settings()).takes(record(topic="grid/1/pcc", payload=b"\x00\x01"))


def test_what_was_declared_when_it_arrived_stands_in_where_no_type_is_known() -> None:
    then = DeclaredTypes([Declaration(5, declared_in(TYPES))])
    asked = Question(where=question.where("voltage > 230 and phase = 'L1' and other = 1"))
    said = record(topic="grid/1/pcc", payload=b'{"voltage": 1, "v": {"rms": 231}, "phase": "L1", "other": 1}', offset=5)
    assert Selection(asked, Settings(), then).takes(said)
    said = record(topic="grid/1/pcc", payload=said.payload, offset=4)
    assert not Selection(asked, Settings(), then).takes(said)


def test_a_type_of_the_reader_counts_before_what_was_declared_then() -> None:
    was = Settings(event={"old": Event(topic="#", attributes=(Attribute("voltage"), Attribute("old", path="v.old")))})
    then = DeclaredTypes([Declaration(0, declared_in(was))])
    said = record(topic="grid/1/pcc", payload=b'{"voltage": 10, "v": {"rms": 250, "old": 1}}', offset=0)
    assert Selection(Question(where=question.where("voltage > 230 and old = 1")), TYPES, then).takes(said)


def test_a_message_is_read_once_where_the_first_reading_says_it_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DeclaredTypes, "complete", lambda *_: pytest.fail("nobody needs it"))
    taken = Selection(Question(where=question.where("voltage > 230")), TYPES, DeclaredTypes([Declaration(0, "")]))
    assert taken.takes(record(topic="grid/1/pcc", payload=b'{"v": {"rms": 231}}', offset=0))


def test_where_no_type_is_known_the_brokers_word_counts_more_than_a_name_in_the_payload() -> None:
    kept = record(topic="grid/1/pcc", payload=b'{"voltage": 1, "v": {"rms": 231}}', attributes={"voltage": 231.0})
    assert Selection(Question(where=question.where("voltage > 230")), Settings()).takes(kept)


def test_the_sign_that_a_birth_certificate_gave_is_not_lost_where_the_range_begins_behind_it() -> None:
    make, _problems = payload_class()
    message = make()
    message.metrics.add(name="power", int_value=2**32 - 5)
    event = Event(topic="spBv1.0/#", payload="sparkplug", attributes=(Attribute(name="power"),))
    taken = Selection(Question(where=question.where("power = -5")), Settings(event={"plant": event}))
    topic = "spBv1.0/g/DDATA/n/d"
    assert taken.takes(record(topic=topic, payload=message.SerializeToString(), attributes={"power": -5.0}))
    assert not taken.takes(record(topic=topic, payload=message.SerializeToString()))


def test_a_type_that_was_declared_since_reads_the_payload_anew() -> None:
    kept = record(topic="grid/1/pcc", payload=b'{"v": {"rms": 250}}', attributes={"voltage": 10.0, "old": 1.0})
    assert Selection(Question(where=question.where("voltage > 230")), TYPES).takes(kept)
    assert Selection(Question(where=question.where("old = 1")), TYPES).takes(kept)


def test_a_time_is_a_time_beside_an_attribute_that_is_not_declared() -> None:
    asked = Question(where=question.where('at >= "2026-01-01T00:00:00Z" and other = 1'))
    taken = Selection(asked, TYPES)
    assert taken.takes(record(topic="grid/1/pcc", payload=b'{"at": 1800000000, "other": 1}'))
    assert not taken.takes(record(topic="grid/1/pcc", payload=b'{"at": 1700000000, "other": 1}'))
    assert not taken.takes(record(topic="grid/1/pcc", payload=b'{"at": 1800000000}'))


def test_events_have_a_kind_a_client_and_a_detail() -> None:
    drop = Occurrence(1, "drop", "sleepy", "grid/1/pcc", {"count": 12, "nested": {"a": 1}, "kind": "never"})
    for text, holds in (
        ("kind = 'drop'", True),
        ("client = 'sleepy' and count >= 12", True),
        ("kind = 'never'", False),
        ("nested = 1", False),
        ("absent = 1", False),
    ):
        assert Selection(Question(where=question.where(text)), Settings()).takes_occurrence(drop) is holds
    assert not Selection(Question(topics=("other",)), Settings()).takes_occurrence(drop)
    assert Selection(Question(topics=("grid/#",)), Settings()).takes_occurrence(drop)
