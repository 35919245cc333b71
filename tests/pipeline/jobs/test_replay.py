"""Recorded messages are sent again: the same content, in order, when they are due."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import paho.mqtt.client as paho
import pyarrow as pa
import pytest
from paho.mqtt.enums import CallbackAPIVersion
from pyspark.sql import SparkSession
from pyspark.sql import functions as sql

from tests.kits.patience import PATIENCE_S, until
from tests.pipeline.jobs.scenes import START, at, frame, rows
from tieline.conf.schema import Attribute, Content, Event
from tieline.match.events.event_type import declared_type
from tieline.match.events.sparkplug import Births
from tieline.pipeline.broker import BrokerAddress, BrokerError
from tieline.pipeline.jobs.players import NoSpeed, Player, ReplayClock, play, speed_of
from tieline.pipeline.jobs.replay import COLUMNS, NoFilter, Unrepeatable, from_table, in_order, of_topics, pattern
from tieline.pytest_plugin import BrokerThread
from tieline.wire.topics import matches


def test_times_between_messages_are_divided_by_the_speed() -> None:
    now = [100.0]
    pace = ReplayClock(speed_of("10x"), lambda: now[0])
    assert pace.wait_s(at(0)) == 0.0
    assert pace.wait_s(at(5)) == pytest.approx(0.5)
    now[0] += 0.5
    assert pace.wait_s(at(5)) == 0.0
    now[0] += 2.0  # something took long: what is due went by, and the schedule stays
    assert pace.wait_s(at(6)) == 0.0
    assert pace.late == 1
    assert pace.most_late_s == pytest.approx(1.9)
    assert pace.wait_s(at(30)) == pytest.approx(0.5)
    assert pace.wait_s(at(24.5)) == 0.0  # so little is not late
    assert pace.late == 1


def test_the_greatest_speed_never_waits_and_is_never_late() -> None:
    pace = ReplayClock(speed_of("max"), lambda: 0.0)
    assert [pace.wait_s(at(seconds)) for seconds in (0, 10_000, 5)] == [0.0, 0.0, 0.0]
    assert pace.late == 0


def test_speeds() -> None:
    assert (speed_of("10x"), speed_of("0.5"), speed_of("max")) == (10.0, 0.5, math.inf)
    for text in ("", "x", "0x", "-1", "fast", "1e3"):
        with pytest.raises(NoSpeed, match="is no speed"):
            speed_of(text)


def message(number: int, publisher: str = "meter", **more: Any) -> dict[str, Any]:
    return {
        "time": START + timedelta(milliseconds=number), "publisher": publisher, "topic": f"t/{publisher}",
        "payload": b"%d" % number, "qos": number % 3, "retain": False, "level": 2, "properties": [], **more,
    }  # fmt: skip


def to(broker: BrokerThread) -> BrokerAddress:
    return BrokerAddress(
        url=f"mqtt://127.0.0.1:{broker.port}", host="127.0.0.1", port=broker.port, is_tls=False, user=None,
        password=None, ca=None,
    )  # fmt: skip


class Listener:
    """A client that notes what it is sent."""

    def __init__(self, broker: BrokerThread) -> None:
        self.heard: list[paho.MQTTMessage] = []
        self._client = paho.Client(CallbackAPIVersion.VERSION2, "listener", protocol=paho.MQTTv5)
        self._client.on_message = lambda _client, _data, heard: self.heard.append(heard)
        granted = threading.Event()
        self._client.on_subscribe = lambda *_: granted.set()
        self._client.connect("127.0.0.1", broker.port)
        self._client.loop_start()
        self._client.subscribe("t/#", 2)
        assert granted.wait(PATIENCE_S)

    def close(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()


@pytest.fixture(name="broker")
def _broker() -> Iterator[BrokerThread]:
    with BrokerThread() as broker:
        yield broker


@pytest.fixture(name="listener")
def _listener(broker: BrokerThread) -> Iterator[Listener]:
    listener = Listener(broker)
    yield listener
    listener.close()


def test_everything_arrives_in_the_order_of_its_publisher(broker: BrokerThread, listener: Listener) -> None:
    sent = [message(number, f"meter-{number % 5}") for number in range(300)]
    counted: list[int] = []
    with Player(to(broker), "a") as one, Player(to(broker), "b") as other:
        pace = ReplayClock(math.inf, lambda: 0.0)
        played = play(sent, [one, other], pace, threading.Event(), qos=1, on_sent=counted.append)
    assert (played.published, played.acknowledged, played.refused, played.late) == (300, 300, 0, 0)
    assert (counted[-1], played.is_stopped) == (300, False)
    until(lambda: len(listener.heard) == 300, "all messages")
    for publisher in range(5):
        heard = [int(each.payload) for each in listener.heard if each.topic == f"t/meter-{publisher}"]
        assert heard == list(range(publisher, 300, 5))


def test_qos_and_properties_as_recorded(broker: BrokerThread, listener: Listener) -> None:
    pairs = [("unit", "V"), ("seq", "run/7"), ("$once", "x/1"), ("priority", "0")]
    sent = [message(number, properties=pairs) for number in range(6)]
    with Player(to(broker), "a") as player:
        played = play(sent, [player], ReplayClock(math.inf, lambda: 0.0), threading.Event(), levels=True)
    assert played.acknowledged == 6
    until(lambda: len(listener.heard) == 6, "all messages")
    assert sorted((int(each.payload), each.qos) for each in listener.heard) == [(n, n % 3) for n in range(6)]
    assert getattr(listener.heard[0].properties, "UserProperty", None) == [("unit", "V"), ("priority", "2")]


def test_it_stops_when_asked_and_waits_for_what_is_under_way(broker: BrokerThread) -> None:
    stop = threading.Event()

    def endless() -> Iterator[dict[str, Any]]:
        number = 0
        while True:
            number += 1
            yield message(number)

    with Player(to(broker), "a") as player:
        played = play(
            endless(), [player], ReplayClock(math.inf, lambda: 0.0), stop, qos=1,
            on_sent=lambda count: stop.set() if count == 50 else None,
        )  # fmt: skip
    assert (played.published, played.acknowledged, played.is_stopped) == (50, 50, True)


def test_a_broker_that_is_not_there() -> None:
    nowhere = BrokerAddress(
        url="mqtt://127.0.0.1:1", host="127.0.0.1", port=1, is_tls=False, user=None, password=None, ca=None
    )
    with pytest.raises(BrokerError, match=r"127\.0\.0\.1:1 cannot be reached"), Player(nowhere, "a"):
        pass


METER = Event(
    topic="m/#",
    attributes=(
        Attribute("v"),
        Attribute("n", "integer"),
        Attribute("state", "category"),
        Attribute("ok", "boolean"),
        Attribute("at", "timestamp"),
        Attribute("w", path="deep.inner.w"),
    ),
)


def test_tables_give_messages_that_say_the_same(spark: SparkSession) -> None:
    second_day = at(86_400 + 5)
    told: dict[str, list[Any]] = {
        "v": [230.5, None, 1e-9], "n": [5, 2**53, None], "state": ['a "b"', None, ""], "ok": [True, False, None],
        "at": [at(0.25), None, second_day], "w": [None, -1.5, 2.0],
    }  # fmt: skip
    time = pa.timestamp("us", tz="UTC")
    kinds = {"v": pa.float64(), "n": pa.int64(), "state": pa.string(), "ok": pa.bool_(), "at": time, "w": pa.float64()}
    place = {
        "_offset": pa.array([7, 8, 9]),
        "_shard": pa.array(["a"] * 3),
        "_time": pa.array([second_day, at(0), at(1)], time),
        "_topic": pa.array(["m/1", "m/2", "m/1"]),
        "_publisher": pa.array(["p"] * 3),
        "_level": pa.array([3, 0, 1], pa.int32()),
        "_qos": pa.array([1, 0, 2], pa.int32()),
    }
    table = pa.table({**place, **{name: pa.array(values, kinds[name]) for name, values in told.items()}})
    sent = list(in_order(from_table(frame(spark, table), "meter", METER)))
    assert set(sent[0]) == set(COLUMNS)
    assert [(each["offset"], each["qos"], each["level"]) for each in sent] == [(8, 0, 0), (9, 2, 1), (7, 1, 3)]
    event = declared_type("meter", METER, Content(), Births())
    for each, number in zip(sent, (1, 2, 0), strict=True):
        reading = event.read(bytes(each["payload"]))
        assert reading is not None
        for name, values in told.items():
            wanted = values[number]
            assert reading.get(name) == (wanted.timestamp() if name == "at" and wanted else wanted), name


def test_what_tables_cannot_give_back(spark: SparkSession) -> None:
    nothing = spark.createDataFrame([], "_offset long")
    with pytest.raises(Unrepeatable, match="written in sparkplug"):
        from_table(nothing, "x", Event(topic="x", payload="sparkplug"))
    with pytest.raises(Unrepeatable, match=r"in an array of its payload \(values\.0\)"):
        from_table(nothing, "x", Event(topic="x", attributes=(Attribute("v", path="values.0"),)))


def test_filters_in_spark_are_those_of_mqtt(spark: SparkSession) -> None:
    levels = ["", "a", "b", "a.c", "$SYS", "a\nb"]
    topics = [*levels[1:], *(f"{one}/{other}" for one in levels for other in levels), "a/b/a", "a/b/a/b", "$SYS/a/b"]
    filters = ["a", "+", "#", "a/#", "+/b", "a/+", "a/+/#", "+/+/#", "/#", "$SYS/#", "a.c", "a.c/#", "a/b/+", "a/b/a"]
    told = spark.createDataFrame([(topic,) for topic in topics], "topic string")
    columns = [sql.col("topic").rlike(pattern(each)).alias(f"f{number}") for number, each in enumerate(filters)]
    for found in rows(told.select("topic", *columns)):
        for number, each in enumerate(filters):
            assert found[f"f{number}"] is matches(each, found["topic"]), (each, found["topic"])
    assert of_topics(told, "topic", ()).count() == len(topics)
    assert of_topics(told, "topic", ("a", "b")).count() == 2
    with pytest.raises(NoFilter, match="is no topic filter"):
        pattern("a/#/b")
