"""Who reads the log sees what the broker would have read when the message arrived, whatever is declared since."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import cbor2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.durable.test_capture import Scene
from tests.kits.examples import examples
from tests.net.store.stage import Stage
from tieline.conf.schema import Attribute, Content, Event, Settings
from tieline.log.record import Record, Value, digest_of
from tieline.match.events import Events
from tieline.match.events import cbor as cbor_payload
from tieline.match.events.sparkplug import DataType, payload_class
from tieline.net.store import declared_types
from tieline.net.store.declarations import Declaration, declarations, keep
from tieline.net.store.declared_types import DeclaredTypes, declared_in
from tieline.net.store.reading import Log
from tieline.net.store.schema import STEPS, Damaged, path_of, prepare

ATTRIBUTES = (
    Attribute("v", bounds=(0.0, 500.0), path="pcc.v"),
    Attribute("n", "integer"),
    Attribute("s", "category"),
    Attribute("up", "boolean"),
    Attribute("at", "timestamp"),
)
SETTINGS = Settings(
    event={
        "json": Event(topic="json/+", attributes=ATTRIBUTES),
        "cbor": Event(topic="cbor/+", payload="cbor", attributes=ATTRIBUTES),
        "number": Event(topic="number/+", payload="number", attributes=(Attribute("v", path="value"), ATTRIBUTES[2])),
        "plant": Event(topic="spBv1.0/#", payload="sparkplug", attributes=(Attribute("v"), Attribute("n", "integer"))),
        "rest": Event(topic="+/1", attributes=(Attribute("n"),)),
    }
)


def before(settings: Settings, record: Record) -> dict[str, Value] | None:
    """What a broker that reads every captured message writes down: a second copy of the rule, kept here to compare."""
    events = Events(settings)
    event = events.of(record.topic)
    if event is events.untyped:
        return None
    reading = event.read(record.payload, record.properties, record.topic)
    found = {} if reading is None else {each.name: reading.get(each.name) for each in event.attributes}
    return {name: value for name, value in found.items() if value is not None}


bodies = st.fixed_dictionaries(
    {},
    optional={
        "pcc": st.fixed_dictionaries({"v": st.sampled_from([0, 231.5, None, "x", True])}),
        "n": st.sampled_from([1, 2.0, 2.5, 2**60]),
        "s": st.sampled_from(["on", "", 5]),
        "up": st.sampled_from([True, False, 1]),
        "at": st.sampled_from([9, "1970-01-01T00:00:10Z", "noon"]),
    },
)
payloads = (
    bodies.map(lambda body: json.dumps(body).encode())
    | bodies.map(cbor2.dumps)
    | st.sampled_from([b"", b"17", b" 2.5 ", b"nonsense", b"[1, 2]", b"\xff\x00", b"1e400"])
)
topics = st.sampled_from(["json/1", "cbor/2", "number/1", "other/1", "untyped"])
properties = st.dictionaries(st.sampled_from(["v", "n", "s", "pcc.v", "x"]), st.sampled_from(["1", "on", "true"]))


@examples(120)
@given(st.lists(st.tuples(topics, payloads, properties, st.sampled_from([0, 1])), min_size=1, max_size=8))
def test_a_reader_sees_what_the_broker_used_to_write(sent: list[tuple[str, bytes, dict[str, str], int]]) -> None:
    scene = Scene(capture=("#",), types=dict(SETTINGS.event))
    client = scene.world.client("c")
    for topic, payload, pairs, qos in sent:
        other: dict[str, Any] = {"user_property": list(pairs.items())} if pairs else {}
        client.put(topic, payload, qos=qos, **other)
    types = DeclaredTypes([Declaration(0, declared_in(SETTINGS))])
    assert len(scene.records) == len(sent)
    for offset, record in enumerate(scene.records):
        record.offset = offset
        assert record.attributes is None
        types.complete(record)
        assert record.attributes == before(SETTINGS, record)


def test_what_a_record_carries_is_not_read_anew() -> None:
    types = DeclaredTypes([Declaration(0, declared_in(SETTINGS))])
    for carried in ({"old": 1.0}, {}):
        record = made("json/1", b'{"n": 1}', attributes=carried)
        types.complete(record)
        assert record.attributes == carried


def test_aliases_are_those_that_the_broker_knew() -> None:
    scene = Scene(capture=("#",), types=dict(SETTINGS.event))
    make, _problems = payload_class()
    born, said = make(), make()
    born.metrics.add(name="v", alias=1, datatype=DataType.DOUBLE, double_value=1.5)
    born.metrics.add(name="n", alias=2, datatype=DataType.INT16, int_value=3)
    said.metrics.add(alias=1, double_value=2.5)
    said.metrics.add(alias=2, int_value=2**16 - 4)
    client = scene.world.client("c")
    client.put("spBv1.0/g/NBIRTH/edge", born.SerializeToString(), qos=1)
    client.put("spBv1.0/g/NDATA/edge", said.SerializeToString())
    types = DeclaredTypes([Declaration(0, declared_in(SETTINGS))])
    last = scene.records[-1]
    last.offset = 1
    types.complete(last)
    assert last.attributes == {"v": 2.5, "n": -4.0}
    # without that it would be a guess, and is not made
    assert types.read(1, last.topic, last.payload, b"") is None


def made(topic: str, payload: bytes, offset: int = 0, **other: Any) -> Record:
    digest = digest_of(topic.encode(), payload)
    found = Record(0, "p", 1, 0, False, 0, False, 1, "normal", topic, payload, b"", digest, **other)
    found.offset = offset
    return found


def one(name: str, **other: Any) -> Settings:
    return Settings(event={"e": Event(topic="t", attributes=(Attribute(name),))}, **other)


def test_each_record_is_read_by_the_declarations_of_its_time() -> None:
    texts = [(10, declared_in(one("a"))), (20, ""), (30, declared_in(one("b")))]
    types = DeclaredTypes([Declaration(*each) for each in texts])
    found = [types.read(offset, "t", b'{"a": 1, "b": 2}', b"") for offset in (9, 10, 19, 20, 29, 30, 1_000)]
    assert found == [None, {"a": 1.0}, {"a": 1.0}, None, None, {"b": 2.0}, {"b": 2.0}]
    assert types and not DeclaredTypes()


def test_limits_are_those_of_the_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    """An array is opened as a whole, and CBOR too: not beyond what the broker would have opened."""
    array = Settings(
        event={"e": Event(topic="t", attributes=(Attribute("a", path="0"),))}, content=Content(untyped_bytes=10)
    )
    types = DeclaredTypes([Declaration(0, declared_in(array))])
    assert types.read(0, "t", b"[1, 2, 3]", b"") == {"a": 1.0}
    assert types.read(0, "t", b"[1, 2, 3, 4]", b"") == {}
    monkeypatch.setattr(cbor_payload, "_LARGEST", 10)
    cbor = Settings(event={"e": Event(topic="t", payload="cbor", attributes=(Attribute("a"),))})
    types = DeclaredTypes([Declaration(0, declared_in(cbor))])
    assert types.read(0, "t", cbor2.dumps({"a": 1}), b"") == {"a": 1.0}
    assert types.read(0, "t", cbor2.dumps({"a": 1, "b": "x" * 10}), b"") == {}


def test_what_cannot_be_understood_is_said_when_it_is_needed_and_not_before() -> None:
    types = DeclaredTypes([Declaration(0, '{"event": {"e": {"topic": "t", "later": 1}}, "untyped_bytes": 1}')])
    types.complete(made("t", b"{}", attributes={}))
    with pytest.raises(Damaged, match="from offset 0 on say cannot be read"):
        types.complete(made("t", b"{}"))


def test_what_is_remembered_of_topics_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(declared_types, "_MOST_TOPICS", 3)
    types = DeclaredTypes([Declaration(0, declared_in(SETTINGS))])
    for number in range(9):
        assert types.read(0, f"json/{number}", b'{"n": 1}', b"") == {"n": 1.0}
    assert types._types[0].cache_info().currsize == 3  # type: ignore[union-attr]


# --- in the store -----------------------------------------------------------------------------------------------------


def store(declared: str = "", at: int = 0) -> sqlite3.Connection:
    db = sqlite3.connect(":memory:", isolation_level=None)
    prepare(db, 1.0)
    keep(db, declared, at)
    return db


def logged(db: sqlite3.Connection, first: int, count: int) -> None:
    db.execute("INSERT INTO log VALUES (?, ?, 0, 0, 0, x'')", (first, count))


def test_declarations_are_written_down_when_they_change() -> None:
    db = store()
    assert declarations(db) == []
    for text, at in (("a", 0), ("a", 5), ("b", 5), ("c", 5), ("c", 9), ("", 12)):
        keep(db, text, at)
        logged(db, at, 100)
        db.execute("DELETE FROM log WHERE first_offset > 0")
    assert declarations(db) == [(0, "a"), (5, "c"), (12, "")]
    db.close()


def test_what_no_record_needs_is_forgotten() -> None:
    db = store("a", 0)
    logged(db, 4, 10)
    keep(db, "b", 14)
    keep(db, "c", 20)
    assert [text for _at, text in declarations(db)] == ["a", "b", "c"], "the record at 4 needs the first"
    db.execute("DELETE FROM log")
    logged(db, 14, 6)
    keep(db, "c", 20)
    assert [text for _at, text in declarations(db)] == ["b", "c"]
    db.execute("DELETE FROM log")
    keep(db, "c", 20)
    assert [text for _at, text in declarations(db)] == ["c"]
    db.close()


def test_a_changed_declaration_is_noticed() -> None:
    db = store("a", 7)
    db.execute("UPDATE declared SET blob = x'62'")
    with pytest.raises(Damaged, match="event types from offset 7 on"):
        declarations(db)
    db.close()


def fields(topic: str, payload: bytes, attributes: object = None) -> tuple[object, ...]:
    return (0, "p", 1, 0, False, 0, False, 1, "normal", topic, payload, b"", b"12345678", attributes)


def test_the_log_says_what_its_messages_say_across_restarts(tmp_path: Path) -> None:
    with Stage(tmp_path / "data") as stage:
        for name in ("a", "a", "b", ""):
            stage.declared = declared_in(one(name)) if name else ""
            store = stage.open()
            store.submit([], [fields("t", b'{"a": 1, "b": 2}'), fields("u", b"{}"), fields("t", b"", {"c": 3})])
            stage.finish(store)
            stage.close()
        with Log(stage.data) as log:
            found = [record.attributes for record in log.read(0)]
    assert found == [
        {"a": 1.0}, None, {"c": 3}, {"a": 1.0}, None, {"c": 3}, {"b": 2.0}, None, {"c": 3}, None, None, {"c": 3},
    ]  # fmt: skip


def test_more_event_types_than_a_command_line_takes(tmp_path: Path) -> None:
    many = Settings(event={f"e{n}": Event(topic=f"t/{n}", attributes=ATTRIBUTES) for n in range(2_000)})
    with Stage(tmp_path / "data") as stage:
        stage.declared = declared_in(many)
        assert len(stage.declared) > 500_000
        store = stage.open()
        store.submit([], [fields("t/1999", b'{"n": 4}')])
        stage.finish(store)
        with Log(stage.data) as log:
            assert [record.attributes for record in log.read(0)] == [{"n": 4.0}]


def test_a_store_of_before_is_read_as_it_is_and_brought_forward(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    old = sqlite3.connect(path_of(data), isolation_level=None)
    prepare(old, 1.0, STEPS[:2])
    old.close()
    with Log(data) as log:
        assert not log.types()
    old = sqlite3.connect(path_of(data), isolation_level=None)
    old.execute("UPDATE stream SET next = 5 WHERE name = 'log'")
    old.close()
    with Stage(data) as stage:
        stage.declared = declared_in(one("a"))
        store = stage.open()
        store.submit([], [fields("t", b'{"a": 1}')])
        stage.finish(store)
        with Log(data) as log:
            types = log.types()
            assert [record.attributes for record in log.read(5)] == [{"a": 1.0}]
        assert types.read(4, "t", b'{"a": 1}', b"") is None, "that broker had read what it was told to read"
