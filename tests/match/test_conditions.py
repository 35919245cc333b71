"""Boxes and evaluation together find exactly the messages for which the condition holds when it is evaluated alone."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from tests.kits.examples import examples
from tests.match.where.expressions import Tree, readings, spelled, trees
from tieline.match import conditions
from tieline.match.change import ChangeMemory, LastValues
from tieline.match.conditions import (
    ASKING,
    BOXES_PER_EFFORT,
    COMPARING,
    FEW,
    MOST_FEW,
    ConditionTable,
    Narrowed,
    narrow,
)
from tieline.match.events import UNTYPED, Attribute, AttributeKind, EventType
from tieline.match.where import Predicate, parse, understood
from tieline.match.where.terms import Value

KINDS: dict[str, AttributeKind] = {"v": "number", "n": "integer", "s": "category", "b": "boolean", "t": "timestamp"}
Said = dict[str, Value | None]


def five(most_codes: int | None = None) -> EventType:
    """One attribute of each kind; all other names stay undeclared."""
    event = EventType("five", "#", [Attribute(name, kind) for name, kind in KINDS.items()])
    if most_codes is not None:
        event._codes[event.position["s"]]._most = most_codes
    return event


def finds(narrowed: Narrowed, row: list[float], *, holds: bool) -> bool:
    """Whether somebody who follows the instructions takes a message for which the condition holds, or does not."""
    if narrowed.boxes is None:
        return holds
    return any(box.contains(row) for box in narrowed.boxes) and (narrowed.is_exact or holds)


@examples(250)
@given(
    trees, st.lists(st.tuples(readings, st.none() | readings), min_size=1, max_size=5), st.sampled_from((None, 0, 1)),
    st.booleans(), st.data(),
)  # fmt: skip
def test_what_is_found_is_what_evaluating_every_message_finds(
    tree: Tree, messages: list[tuple[Said, Said | None]], most_codes: int | None, is_typed: bool, data: st.DataObject
) -> None:
    event = five(most_codes) if is_typed else UNTYPED
    predicate = parse(data.draw(spelled(tree)))
    narrowed = narrow(predicate, event)
    for sent, before in messages:
        said = {name: value for name, value in sent.items() if not isinstance(value, float) or math.isfinite(value)}
        reading = event.read(json.dumps(said).encode())
        assert reading is not None
        expected = understood(predicate, event).holds(reading.get, before)
        assert narrowed.condition.holds(reading.get, before) is expected
        assert finds(narrowed, reading.row, holds=expected) is expected


@pytest.mark.parametrize(
    ("text", "boxes", "is_exact"),
    [
        ("v < 5", 1, True),
        ("v < 5 or n = 2", 2, True),
        ("v > 5 and v < 4", 0, True),
        ("changed(v)", 1, False),
        ("x > 1 and v < 5", 1, False),
        ("x > 1", None, False),
        ("x > 1 or v < 5", None, False),
    ],
)
def test_how_a_condition_is_found(text: str, boxes: int | None, is_exact: bool) -> None:
    narrowed = narrow(parse(text), five())
    assert (None if narrowed.boxes is None else len(narrowed.boxes)) == boxes
    assert narrowed.is_exact is is_exact


def test_a_category_without_a_number_left_is_evaluated_and_times_are_still_times() -> None:
    event = five(most_codes=1)
    assert narrow(parse("s = 'on'"), event).boxes is not None
    text = "s = 'off' and t >= '1970-01-01T00:00:10Z'"
    narrowed = narrow(parse(text), event)
    assert narrowed.boxes is None
    reading = event.read(b'{"s": "off", "t": 11}')
    assert reading is not None and narrowed.condition.holds(reading.get)


def test_a_type_without_attributes_has_no_boxes() -> None:
    assert narrow(parse("v < 5"), UNTYPED).boxes is None
    assert narrow(parse("v > 5 and v < 4"), UNTYPED).boxes is None


DECLARED = (
    Attribute("v", bounds=(0.0, 500.0)),
    Attribute("n", "integer"),
    Attribute("s", "category", values=("on", "off")),
    Attribute("up", "boolean"),
    Attribute("at", "timestamp"),
)
#: What is a box, what is one only partly, and what is none.
CONDITIONS = (
    "v < 207",
    "195.5 <= v <= 207",
    "v != 207",
    "n in (1, 3)",
    "s = 'on' and not up = true",
    "s = 'lost'",
    "at >= '1970-01-01T00:00:10Z'",
    "v > 5 and v < 4",
    "changed(v)",
    "changed(v) and at >= '1970-01-01T00:00:10Z'",
    "delta(v) > 10 or s = 'off'",
    "not changed(n)",
    "x.y > 1",
    "x.y > 1 and v < 207",
    "at < '1970-01-01T00:00:10Z' or x.y > 1",
    "not (v < 207 or up = false)",
)
_payloads = st.fixed_dictionaries(
    {},
    optional={
        "v": st.sampled_from([0, 195.5, 206.999, 207, 600, None, "x", True]),
        "n": st.sampled_from([1, 2, 3, 2.5]),
        "s": st.sampled_from(["on", "off", "lost", "other"]),
        "up": st.booleans(),
        "at": st.sampled_from([9, 10, "1970-01-01T00:00:10Z"]),
        "x": st.sampled_from([{"y": 2}, {"y": 0}, {}, 2]),
    },
)
_topics = st.sampled_from([b"t/1", b"t/2"])


class Watcher:
    def __init__(self, text: str, memory: ChangeMemory) -> None:
        self.predicate: Predicate = parse(text)
        watched = self.predicate.watched
        self.last = LastValues(watched, memory) if watched else None

    def __repr__(self) -> str:
        return self.predicate.text


class Table(RuleBasedStateMachine):
    """Askers come and go; after each step they are compared with a list that is gone through one by one."""

    @initialize(is_typed=st.sampled_from((True, True, True, False)), most_few=st.sampled_from((0, 2, MOST_FEW)))
    def begin(self, is_typed: bool, most_few: int) -> None:
        conditions.MOST_FEW = most_few  # with and without an index, and from one to the other
        self.event = EventType("e", "t/+", DECLARED) if is_typed else UNTYPED
        self.table: ConditionTable[Watcher] = ConditionTable(self.event)
        self.memory = ChangeMemory(10, 1_000)
        self.askers: list[Watcher] = []

    @rule(text=st.sampled_from(CONDITIONS))
    def add(self, text: str) -> None:
        asker = Watcher(text, self.memory)
        self.askers.append(asker)
        self.table.add(asker)
        assert len(self.table) == len(self.askers)

    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        if self.askers:
            asker = self.askers.pop(data.draw(st.integers(0, len(self.askers) - 1)))
            self.table.remove(asker)
            assert len(self.table) == len(self.askers)

    @rule(said=_payloads, topic=_topics)
    def match(self, said: dict[str, Any], topic: bytes) -> None:
        reading = self.event.read(json.dumps(said).encode())
        assert reading is not None
        expected = []
        for asker in self.askers:
            before = None if asker.last is None else asker.last.before(topic)
            if understood(asker.predicate, self.event).holds(reading.get, before):
                expected.append(asker)
        found = self.table.match(reading, topic)
        assert len(found) == len(set(found))
        assert set(found) == set(expected)
        for asker in found:
            if asker.last is not None:
                asker.last.note(topic, {name: reading.get(name) for name in asker.last.names})

    @rule(many=st.lists(_payloads, max_size=2 * FEW))
    def match_many(self, many: list[dict[str, Any]]) -> None:
        if self.table.is_exact and self.event is not UNTYPED:
            readings = [self.event.read(json.dumps(said).encode()) for said in many]
            found = self.table.match_rows([reading.row for reading in readings if reading is not None])
            assert [set(some) for some in found] == [
                {asker for asker in self.askers if understood(asker.predicate, self.event).holds(reading.get)}
                for reading in readings
                if reading is not None
            ]

    def teardown(self) -> None:
        conditions.MOST_FEW = MOST_FEW


TestTable = Table.TestCase
TestTable.settings = examples(60, stateful_step_count=25)


def _table(event: EventType, *texts: str) -> tuple[ConditionTable[Watcher], list[Watcher]]:
    table: ConditionTable[Watcher] = ConditionTable(event)
    askers = [Watcher(text, ChangeMemory(10, 10)) for text in texts]
    for asker in askers:
        table.add(asker)
    return table, askers


@pytest.mark.parametrize(
    ("text", "is_exact"),
    [("v < 207", True), ("v > 5 and v < 4", True), ("changed(v)", False), ("x > 1", False), ("x > 1 and v < 2", False)],
)
def test_the_index_alone_answers_only_where_boxes_say_everything(text: str, is_exact: bool) -> None:
    table, (asker,) = _table(EventType("e", "t", DECLARED), text)
    assert table.is_exact == is_exact
    table.remove(asker)
    assert table.is_exact
    assert len(table) == 0


def test_conditions_that_no_box_narrows_cost_an_evaluation_each() -> None:
    assert _table(EventType("e", "t", DECLARED), "v < 207", "changed(v) and v < 2")[0].effort == ASKING
    assert _table(EventType("e", "t", DECLARED), "x > 1", "y > 1", "v < 3")[0].effort == ASKING + 2 * COMPARING
    table, (one, _) = _table(UNTYPED, "v < 207 or w = 1", "v < 208")
    assert table.effort == ASKING + 3 * COMPARING
    table.remove(one)
    assert table.effort == ASKING + COMPARING


def test_what_boxes_only_narrow_may_have_to_be_evaluated_for_every_message() -> None:
    table, (one, _) = _table(EventType("e", "t", DECLARED), "changed(v) and v < 2", "v < 3")
    assert table.most_effort == ASKING + 2 * COMPARING
    table.remove(one)
    assert table.most_effort == table.effort == ASKING


def test_in_stretches_the_answer_is_the_same_and_nobody_is_in_it_who_has_left() -> None:
    event = EventType("e", "t", DECLARED)
    texts = [*(f"x > {number} or v < {number}" for number in range(100)), "v < 60", "changed(v) and v < 70"]
    table, askers = _table(event, *texts)
    reading = event.read(b'{"v": 50.5}', b"", "t")
    assert reading is not None
    whole = table.match(reading, b"t")
    assert len(whole) == 51
    counted: list[int] = []

    def is_enough(units: int) -> bool:
        counted.append(units)
        return True

    for leaves in (False, True):
        search = table.match_in_stretches(reading, b"t", is_enough)
        pauses = 0
        found: list[Watcher] = []
        try:
            while True:
                next(search)
                pauses += 1
                if leaves and pauses == 1:
                    table.remove(askers[99])
        except StopIteration as end:
            found = end.value
        assert pauses == 4
        assert set(found) == set(whole) - ({askers[99]} if leaves else set())
    assert sum(counted[:4]) == table.most_effort - ASKING + 2 * COMPARING


def test_many_boxes_cost_something_too() -> None:
    event = EventType("e", "t", DECLARED)
    table: ConditionTable[Watcher] = ConditionTable(event)
    memory = ChangeMemory(1, 1)
    # impossible conditions are counted, and are quickly added
    for _ in range(BOXES_PER_EFFORT):
        table.add(Watcher("v > 5 and v < 4", memory))
    assert table.effort == ASKING + 1


def test_a_category_with_too_many_values_is_evaluated_instead(monkeypatch: pytest.MonkeyPatch) -> None:
    event = EventType("e", "t", DECLARED)
    monkeypatch.setattr(event._codes[2], "_most", 3)
    texts = ["s = 'one'", "s = 'two' and at >= '1970-01-01T00:00:10Z'", "s = 'three' and v < 5"]
    table, askers = _table(event, *texts)
    assert len(event._codes[2]) == 3, "on, off and one"
    assert not table.is_exact
    reading = event.read(b'{"s": "two", "at": 10}')
    assert reading is not None
    assert table.match(reading, b"t") == [askers[1]]
    for asker in askers:
        table.remove(asker)
    assert table.is_exact
