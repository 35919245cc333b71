"""What the log and the events are told."""

from __future__ import annotations

from typing import Any

import pytest

from tests.kits.check_store import PromptStore
from tests.kits.world import World, configured
from tieline.conf.schema import Attribute, Event, Log, Mqtt, Settings
from tieline.core.durable.chronicle import OTHERS
from tieline.log.record import Occurrence, Record, digest_of
from tieline.match.events import EventType
from tieline.match.events.sparkplug import DataType, payload_class
from tieline.wire.packets import Publish, Pubrel, Will
from tieline.wire.reason import Reason


class Scene:
    """A world whose log is written down."""

    def __init__(self, *, types: dict[str, Event] | None = None, split: bool = False, **log: Any) -> None:
        settings = Settings(mqtt=Mqtt(sys_interval_s=0), log=Log(**log), event=types or {}, data="somewhere")
        self.store = PromptStore()
        self.world = World(configured(settings), store=self.store, split=split)
        self.world.broker.journal.epoch_s = 1_000_000.0

    @property
    def records(self) -> list[Record]:
        return [Record(*fields) for fields in self.store.log]  # type: ignore[arg-type]  # as the reader does

    @property
    def occurrences(self) -> list[Occurrence]:
        return [Occurrence(*fields) for fields in self.store.events]  # type: ignore[arg-type]  # as above

    def told(self, kind: str) -> list[Occurrence]:
        return [one for one in self.occurrences if one.kind == kind]


def test_a_record_says_everything_about_a_message() -> None:
    scene = Scene(capture=("a/#",))
    client = scene.world.client("c")
    client.publish("a/b", b"x", qos=1, packet_id=9, dup=True, retain=True, user_property=[("k", "v")])
    session = client.connection.session
    assert session is not None
    (record,) = scene.records
    assert record == Record(
        received=int((scene.world.now + 1_000_000.0) * 1e9),
        publisher="c",
        epoch=session.number,
        packet_id=9,
        dup=True,
        qos=1,
        retain=True,
        level=1,
        class_="normal",
        topic="a/b",
        payload=b"x",
        properties=b"\x26\0\1k\0\1v",
        digest=digest_of(b"a/b", b"x"),
        attributes=None,
    )


def test_every_way_into_the_broker_is_captured_once_and_in_order() -> None:
    for split in (False, True):
        scene = Scene(capture=("#",), split=split)
        scene.world.client("s").subscribe("t", qos=2)
        for version in (4, 5):
            client = scene.world.client(f"p{version}", version=version)
            client.put("t", b"0", retain=True)
            client.send(*(Publish(topic="t", payload=b"%d" % number) for number in range(1, 5)))
            client.put("t", b"5", qos=1)
            client.put("nobody", b"6")
            client.put("nobody", b"7", qos=1)
            client.put("t", b"8", qos=2, packet_id=77)
            client.put("t", b"8", qos=2, packet_id=77, dup=True)
            client.send(Pubrel(packet_id=77))
        assert [record.payload for record in scene.records] == [b"%d" % number for number in range(9)] * 2


def test_only_captured_topics_are_captured() -> None:
    scene = Scene(capture=("a/+", "b"))
    client = scene.world.client("c")
    for topic in ("a/x", "a/x/y", "b", "c", "a/y"):
        client.put(topic)
        client.put(topic, qos=1)
    assert [record.topic for record in scene.records] == ["a/x", "a/x", "b", "b", "a/y", "a/y"]
    nothing = Scene()
    nothing.world.client("c").put("a", qos=1)
    assert not nothing.store.log


def test_what_the_broker_did_not_accept_is_not_captured() -> None:
    scene = Scene(capture=("#",))
    client = scene.world.client("c")
    assert client.publish("$SYS/x", qos=1) is Reason.NOT_AUTHORIZED
    assert not scene.records


def test_a_will_is_captured() -> None:
    scene = Scene(capture=("#",))
    scene.world.client("c", will=Will(topic="w", payload=b"gone", qos=1)).drop()
    assert [(record.topic, record.publisher) for record in scene.records] == [("w", "c")]


def test_capturing_does_not_look_into_payloads(monkeypatch: pytest.MonkeyPatch) -> None:
    def looked(*_args: object) -> None:
        raise AssertionError("nobody has asked what the message says")

    v = (Attribute(name="v"),)
    kinds: tuple[Any, ...] = ("json", "cbor", "number")
    scene = Scene(capture=("#",), types={kind: Event(topic=f"{kind}/+", payload=kind, attributes=v) for kind in kinds})
    for reader in ("read", "values", "rows"):
        monkeypatch.setattr(EventType, reader, looked)
    client = scene.world.client("c")
    for kind in kinds:
        client.put(f"{kind}/1", b"2.5")
        client.put(f"{kind}/1", b"2.5", qos=1, user_property=[("v", "3")])
        client.put(f"{kind}/1", b"2.5", qos=2)
    assert [record.attributes for record in scene.records] == [None] * 9


def test_what_depends_on_a_birth_is_read_when_it_arrives() -> None:
    """Nobody could later: the birth may never have been captured, and may have been forgotten by then."""
    plant = Event(
        topic="spBv1.0/#", payload="sparkplug", attributes=(Attribute("power"), Attribute("mode", "category"))
    )
    scene = Scene(capture=("spBv1.0/+/DDATA/#",), types={"plant": plant})
    make, _problems = payload_class()
    born, said = make(), make()
    born.metrics.add(name="power", alias=7, datatype=DataType.INT32)
    born.metrics.add(name="mode", alias=8, datatype=DataType.STRING, string_value="island")
    said.metrics.add(alias=7, int_value=2**32 - 5)
    client = scene.world.client("c")
    scene.world.client("s").subscribe("spBv1.0/#?power < 0")
    client.put("spBv1.0/g/DDATA/n/d", said.SerializeToString())
    client.put("spBv1.0/g/DBIRTH/n/d", born.SerializeToString())
    client.put("spBv1.0/g/DDATA/n/d", said.SerializeToString())
    client.put("spBv1.0/g/DDATA/n/other", said.SerializeToString(), qos=1)
    client.put("spBv1.0/g/DDATA/n/d", b"nonsense")
    assert [record.attributes for record in scene.records] == [{}, {"power": -5.0}, {}, {}]


def test_connections_and_subscriptions_are_told() -> None:
    scene = Scene(events="on")
    client = scene.world.client("c", version=4)
    client.subscribe("t", qos=1)
    client.unsubscribe("t")
    client.drop()
    kinds = [(one.kind, one.client, one.topic) for one in scene.occurrences]
    assert kinds == [("connect", "c", ""), ("subscribe", "c", "t"), ("unsubscribe", "c", "t"), ("disconnect", "c", "")]
    connect, subscribe, _, disconnect = scene.occurrences
    assert connect.detail["version"] == 4
    assert subscribe.detail == {"reason": 1}
    assert disconnect.detail["why"] == "connection_lost"


def test_traffic_is_summed_over_a_period() -> None:
    scene = Scene(events="on", period="10s")
    subscriber, old = scene.world.client("s"), scene.world.client("old", version=4)
    subscriber.subscribe("t", qos=2)
    old.subscribe("t")
    publisher = scene.world.client("p")
    publisher.send(*(Publish(topic="t", payload=b"x") for _ in range(5)))
    publisher.publish("t", b"x", qos=1)
    publisher.publish("t", b"x", qos=2)
    assert not scene.told("traffic")
    scene.world.advance(10)
    sums = {one.client: one for one in scene.told("traffic")}
    assert sums.keys() == {"s", "old"}
    assert sums["s"].topic == "t"
    assert sums["s"].detail["publisher"] == "p"
    assert sums["s"].detail["count"] == 7 == sums["old"].detail["count"]
    assert sums["s"].detail["bytes"] == 5 * 7 + 2 * 9
    assert sums["s"].detail["waits_ms"] == {1: 7}
    scene.world.advance(10)
    assert len(scene.told("traffic")) == 2, "nothing happened since"


def test_waiting_times_are_sorted_into_buckets() -> None:
    scene = Scene(events="on", period="10s")
    subscriber = scene.world.client("s")
    subscriber.subscribe("t")
    subscriber.stall()
    scene.world.client("p").put("t")
    scene.world.advance(0.1)
    subscriber.resume()
    scene.world.advance(10)
    assert scene.told("traffic")[0].detail["waits_ms"] == {128: 1}


def test_a_period_has_room_for_so_many_sums() -> None:
    scene = Scene(events="on", period="10s", period_keys=3)
    scene.world.client("s").subscribe("#")
    publisher = scene.world.client("p")
    for number in range(10):
        publisher.put(f"t/{number}")
    scene.world.advance(10)
    sums = scene.told("traffic")
    assert [one.topic for one in sums] == ["t/0", "t/1", "t/2", OTHERS]
    assert sums[-1].detail["count"] == 7


def test_drops_are_summed_by_name() -> None:
    scene = Scene(events="on", period="10s")
    scene.world.durable("s").subscribe("t", qos=1)
    scene.world.clients[0].drop()
    publisher = scene.world.client("p")
    for _ in range(3):
        publisher.put("t")
    scene.world.advance(10)
    (drop,) = scene.told("drop")
    assert (drop.client, drop.topic, drop.detail["why"], drop.detail["count"]) == ("s", "t", "offline", 3)


def test_the_last_period_is_told_when_the_broker_stops() -> None:
    scene = Scene(events="on")
    scene.world.client("s").subscribe("t")
    scene.world.client("p").put("t")
    scene.world.stop()
    scene.world.broker.seal()
    assert len(scene.told("traffic")) == 1
