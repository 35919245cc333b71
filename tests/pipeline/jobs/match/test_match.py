"""Replayed subscriptions are sent exactly what a broker sends them."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from random import Random
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tests.core.durable.test_capture import Scene
from tests.pipeline.jobs.scenes import frame, log_table, rows, stream
from tieline.conf.schema import Attribute, Event, Settings
from tieline.log.record import Record
from tieline.match.events import Events
from tieline.match.events.sparkplug import DataType, payload_class
from tieline.pipeline.jobs.match.job import columns_for, match_events, match_messages, match_payloads
from tieline.pipeline.jobs.match.subscriptions import NoSubscription, Subscription, subscription

METER: Final = Event(
    topic="m/#",
    attributes=(
        Attribute("v", bounds=(0.0, 10.0)),
        Attribute("n", "integer"),
        Attribute("state", "category", values=("on", "off")),
        Attribute("ok", "boolean"),
        Attribute("at", "timestamp"),
        Attribute("inner.w", path="deep.w"),
    ),
)
PLAIN: Final = Event(topic="n/+", payload="number", attributes=(Attribute("value"),))
SETTINGS: Final = Settings(event={"meter": METER, "plain": PLAIN})

#: What tables can answer too, because they hold every attribute that is named.
DECLARED: Final = (
    "#",
    "m/+",
    "m/1",
    "+/1?v > 5",
    "m/#?v >= 2 and v < 8",
    "m/#?not v > 5",
    "m/#?v > 3 or n = 2",
    "m/1?state = 'on'",
    "m/+?state != 'on' and v <= 5",
    "m/#?state in ('on', 'broken', 'never')",
    "m/#?ok = true",
    "m/#?not ok = true",
    "m/#?at > '2026-03-02T00:00:30Z'",
    "m/#?at = '2026-03-02T00:00:20Z' or at < 1772409601",
    "m/#?n > 1 and n <= 3",
    "$where/v > 4/m/2",
    "$where/inner.w < 5/m/#",
    "m/#?changed(v)",
    "m/#?changed(state) and v > 2",
    "m/+?delta(v) > 1.5",
    "m/2?delta(v) >= 2 and state != 'off'",
    "m/#?not changed(n)",
    "m/#?changed(v) or changed(ok)",
    f"m/#?n != 1 and v in ({', '.join(str(value / 2) for value in range(45))})",  # more boxes than are kept
    "nobody/+",
    "m/1/x?v > 1",
)
#: What only the message itself says.
UNDECLARED: Final = (
    "m/#?extra > 2",
    "#?extra > 2 and changed(v)",
    "x/+?v > 5",
    "#?v > 5 and kind = 'b'",
    "+/+?value > 5",
    "n/+?delta(value) > 1",
    "x/#?changed(v)",
)


class Sent(NamedTuple):
    """What a broker was given, and whom it sent it."""

    records: list[Record]
    #: The text of a subscription, and the offset of a message.
    pairs: set[tuple[str, int]]


def payload(random: Random) -> bytes:
    """Something that a client may send: good, incomplete, of the wrong kind, or nonsense."""
    if random.random() < 0.1:
        return random.choice([b"", b"nonsense", b"[1, 2]", b'{"v": '])
    values: dict[str, list[Any]] = {
        "v": [random.uniform(0, 10), random.randint(0, 10), None, "5", True, 1e400, 4.0, 4.0, 6.0],
        "n": [random.randint(0, 4), random.randint(0, 4), 2.0, 2.5, 2**60],
        "state": ["on", "off", "broken", "other", 5, "on"],
        "ok": [True, False, 1],
        "at": ["2026-03-02T00:00:20Z", "2026-03-02T01:00:40+01:00", 1772409600.5, "yesterday", 1772409650],
        "extra": [1, 2, 3, 4, "3"],
        "kind": ["a", "b"],
    }
    chosen = {name: random.choice(some) for name, some in values.items() if random.random() < 0.8}
    if random.random() < 0.7:
        chosen["deep"] = {"w": random.uniform(0, 10)}
    return json.dumps(chosen).encode()


def played(texts: tuple[str, ...], count: int, seed: int) -> Sent:
    """One client for each subscription, and a publisher that sends at random."""
    random = Random(seed)
    scene = Scene(capture=("#",), types={"meter": METER, "plain": PLAIN})
    clients = {}
    for number, text in enumerate(texts):
        clients[text] = scene.world.client(f"s{number}")
        assert clients[text].subscribe(text).reasons == (0,), text
    publisher = scene.world.client("p")
    pairs = set()
    for offset in range(count):
        topic = random.choice(["m/1", "m/2", "m/1/x", "x/1", "n/1", "n/2", "m"])
        body = payload(random) if topic[0] != "n" else random.choice([b"4", b"6.5", b" 7 ", b"7.2", b"no", b"1e9"])
        properties: dict[str, Any] = {}
        if random.random() < 0.2:
            properties["user_property"] = [("extra", str(random.randint(0, 5))), ("v", "6"), ("state", "on")]
        publisher.publish(topic, body, qos=random.choice([0, 1]), **properties)
        pairs |= {(text, offset) for text, client in clients.items() if client.messages()}
    return Sent(scene.records, pairs)


@pytest.fixture(name="sent", scope="module")
def _sent() -> Sent:
    return played((*DECLARED, *UNDECLARED), 400, seed=3)


def asked(texts: tuple[str, ...]) -> list[Subscription]:
    return [subscription(text) for text in texts]


def pairs(found: Any) -> list[tuple[str, int]]:
    return sorted((row["subscription"], row["_offset"]) for row in rows(found))


def typed(records: list[Record]) -> pa.Table:
    """The readable messages of the declared type as a table of the lake."""
    events = Events(SETTINGS)
    told: list[dict[str, Any]] = []
    for offset, record in enumerate(records):
        event = events.of(record.topic)
        reading = event.read(record.payload, record.properties, record.topic)
        if event.name != "meter" or reading is None:
            continue
        row: dict[str, Any] = {each.name: reading.get(each.name) for each in METER.attributes}
        row |= {"_offset": offset, "_shard": "a", "_topic": record.topic, "_time": datetime.now(UTC)}
        if row["at"] is not None:
            row["at"] = datetime.fromtimestamp(row["at"], UTC)
        row["n"] = None if row["n"] is None else int(row["n"])
        told.append(row)
    kinds = {"number": pa.float64(), "integer": pa.int64(), "category": pa.string(), "boolean": pa.bool_()}
    time = pa.timestamp("us", tz="UTC")
    schema = pa.schema(
        [
            *((each.name, kinds.get(each.kind, time)) for each in METER.attributes),
            ("_offset", pa.int64()),
            ("_shard", pa.string()),
            ("_topic", pa.string()),
            ("_time", time),
        ]
    )
    return pa.Table.from_pylist(told, schema)


def test_the_log_answers_as_the_broker_did(spark: SparkSession, sent: Sent) -> None:
    messages = frame(spark, log_table(sent.records, SETTINGS)).repartition(3)
    found = pairs(match_messages(messages, asked((*DECLARED, *UNDECLARED)), SETTINGS))
    assert found == sorted(sent.pairs)
    met = {text for text, _offset in found}
    # each of them can go wrong; what never changes is never delivered a first time
    assert met >= {*DECLARED, *UNDECLARED} - {"nobody/+", "m/#?not changed(n)"}


def test_tables_answer_as_the_broker_did(spark: SparkSession, sent: Sent) -> None:
    table = typed(sent.records)
    readable = set(table["_offset"].to_pylist())
    found = match_events(frame(spark, table).repartition(3), asked(DECLARED), Events(SETTINGS).types["meter"])
    assert pairs(found) == sorted(
        (text, offset) for text, offset in sent.pairs if offset in readable and text in DECLARED
    )


def test_rows_need_no_order_where_nothing_is_remembered(spark: SparkSession, sent: Sent) -> None:
    table = typed(sent.records)
    texts = ("m/#?v >= 2 and v < 8", "m/1", "+/1?v > 5")
    found = match_events(frame(spark, table), asked(texts), Events(SETTINGS).types["meter"])
    readable = set(table["_offset"].to_pylist())
    assert pairs(found) == sorted(pair for pair in sent.pairs if pair[0] in texts and pair[1] in readable)


def test_many_boxes_go_through_an_index(spark: SparkSession) -> None:
    random = Random(5)

    def box() -> str:
        low, least = random.uniform(0, 9), random.randint(0, 3)
        return f"m/#?v > {low} and v < {low + 1.5} and n >= {least}"

    texts = tuple(dict.fromkeys(box() for _ in range(60)))
    sent = played(texts, 120, seed=8)
    table = typed(sent.records)
    event = Events(SETTINGS).types["meter"]
    assert pairs(match_events(frame(spark, table), asked(texts), event, keep=("_offset",))) == sorted(sent.pairs)
    counted = match_events(frame(spark, table), asked(texts), Events(SETTINGS).types["meter"], counted=True)
    counts = {row["subscription"]: row["matches"] for row in rows(counted)}
    assert counts == {text: count for text in texts if (count := sum(pair[0] == text for pair in sent.pairs))}


def test_what_a_topic_carried_at_another_broker_is_another_history(spark: SparkSession, sent: Sent) -> None:
    tables = [log_table(sent.records, SETTINGS, shard) for shard in ("a", "b")]
    found = match_messages(frame(spark, *tables), asked(("m/#?changed(v)", "m/+?delta(v) > 1.5")), SETTINGS)
    told = [(row["_shard"], row["subscription"], row["_offset"]) for row in rows(found)]
    alone = [pair for pair in sent.pairs if pair[0] in ("m/#?changed(v)", "m/+?delta(v) > 1.5")]
    assert sorted(told) == sorted((shard, *pair) for shard in ("a", "b") for pair in alone)


def test_topics_without_a_type_are_read_from_their_payloads(spark: SparkSession, sent: Sent) -> None:
    others = [(offset, each) for offset, each in enumerate(sent.records) if each.topic == "x/1" and not each.properties]
    table = pa.table(
        {
            "_offset": [offset for offset, _each in others],
            "_shard": ["a"] * len(others),
            "_topic": [each.topic for _offset, each in others],
            "_time": pa.array([datetime.now(UTC)] * len(others), pa.timestamp("us", tz="UTC")),
            "_payload": [each.payload for _offset, each in others],
        }
    )
    found = pairs(match_payloads(frame(spark, table), asked(("x/+?v > 5", "#")), SETTINGS))
    kept = {offset for offset, _each in others}
    assert found == sorted(pair for pair in sent.pairs if pair[0] in ("x/+?v > 5", "#") and pair[1] in kept)


def test_a_stream_is_matched_batch_by_batch(spark: SparkSession, sent: Sent, tmp_path: Any) -> None:
    table = typed(sent.records)
    batches = [table.slice(0, 100), table.slice(100)]
    told: list[tuple[str, int]] = []
    texts = ("m/#?v >= 2 and v < 8", "m/1")
    found = match_events(stream(spark, tmp_path, batches), asked(texts), Events(SETTINGS).types["meter"])
    query = found.writeStream.trigger(availableNow=True).foreachBatch(lambda batch, _: told.extend(pairs(batch)))
    query.start().awaitTermination()
    readable = set(table["_offset"].to_pylist())
    assert sorted(told) == sorted(pair for pair in sent.pairs if pair[0] in texts and pair[1] in readable)
    with pytest.raises(NoSubscription, match="not in the order of offsets"):
        match_events(stream(spark, tmp_path, batches), asked(("m/1?changed(v)",)), Events(SETTINGS).types["meter"])


def test_tables_refuse_what_they_do_not_hold(spark: SparkSession, sent: Sent) -> None:
    with pytest.raises(NoSubscription, match="asks for extra, which the event type meter does not declare"):
        match_events(frame(spark, typed(sent.records)), asked(("m/#?extra > 2",)), Events(SETTINGS).types["meter"])


def test_a_log_server_is_not_asked_what_messages_say_where_they_tell_it_themselves(
    spark: SparkSession, sent: Sent
) -> None:
    assert "attributes" not in columns_for(SETTINGS)
    messages = frame(spark, log_table(sent.records, SETTINGS)).select(*columns_for(SETTINGS))
    texts = ("m/#?v >= 2 and v < 8", "+/+?value > 5")
    found = pairs(match_messages(messages, asked(texts), SETTINGS))
    assert found == sorted(pair for pair in sent.pairs if pair[0] in texts)


def test_aliases_are_those_that_the_broker_knew(spark: SparkSession) -> None:
    plant = Event(topic="spBv1.0/#", payload="sparkplug", attributes=(Attribute("power"),))
    scene = Scene(capture=("spBv1.0/+/NDATA/#",), types={"plant": plant})
    make, _problems = payload_class()
    born, said = make(), make()
    born.metrics.add(name="power", alias=7, datatype=DataType.INT32)
    said.metrics.add(alias=7, int_value=2**32 - 5)
    text = "spBv1.0/#?power < 0"
    scene.world.client("s").subscribe(text)
    publisher = scene.world.client("p")
    publisher.put("spBv1.0/g/NDATA/edge", said.SerializeToString())
    publisher.put("spBv1.0/g/NBIRTH/edge", born.SerializeToString())
    publisher.put("spBv1.0/g/NDATA/edge", said.SerializeToString())
    settings = Settings(event={"plant": plant})
    messages = frame(spark, log_table(scene.records, settings)).select(*columns_for(settings))
    assert pairs(match_messages(messages, asked((text,)), settings)) == [(text, 1)]
