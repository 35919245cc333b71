"""The world over real MQTT: numbered, acknowledged, at the speed that was asked for, with a clean end."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kits.patience import until
from tests.sim.microgrid.conftest import START_S, quiet
from tieline.conf.load import loads
from tieline.net.store.reading import Log
from tieline.pytest_plugin import BrokerThread
from tieline.sim.microgrid import Islanding, Message, World
from tieline.sim.microgrid.config import text
from tieline.sim.microgrid.extra import Unbuildable
from tieline.sim.microgrid.publish import Publisher, Target, Unpublished, target_of
from tieline.sim.microgrid.rows import messages
from tieline.wire.properties import user_properties


@pytest.fixture(name="world", scope="module")
def _world() -> World:
    return quiet(script=[Islanding(at_s=START_S + 10)])


@pytest.fixture(name="broker")
def _broker(world: World, tmp_path: Path) -> Iterator[BrokerThread]:
    settings = loads(text(world, data=tmp_path / "data", listen=["tcp://127.0.0.1:0"]))
    with BrokerThread(settings) as broker:
        yield broker


class _Witness:
    def __init__(self) -> None:
        self.sent_: list[tuple[str, str, bytes]] = []
        self.acknowledged_: set[tuple[str, str]] = set()
        self._lock = threading.Lock()

    def sent(self, message: Message, client_id: str, seq: str | None) -> None:
        self.sent_.append((client_id, message.topic, message.payload))

    def acknowledged(self, message: Message, client_id: str, seq: str | None) -> None:
        assert seq is not None
        with self._lock:
            self.acknowledged_.add((client_id, seq))


@pytest.mark.parametrize("qos", [0, 1])
def test_everything_arrives_in_its_class_and_with_its_number(
    world: World, broker: BrokerThread, tmp_path: Path, qos: int
) -> None:
    witness = _Witness()
    publisher = Publisher(
        world, f"mqtt://127.0.0.1:{broker.port}", speed=1_000, readings_qos=1 if qos else 0, run="r", witness=witness
    )
    tally = publisher.publish(60)
    expected = [each for batch in messages(world, 60) for each in batch]
    assert tally.published.total() == len(expected) and not tally.refused
    numbered = len(expected) if qos else sum(each.kind != "reading" for each in expected)
    assert tally.acknowledged.total() == numbered == len(witness.acknowledged_)
    with Log(tmp_path / "data") as log:
        # QoS 0 is captured too, and acknowledged by nobody
        until(lambda: log.latest() >= len(expected), "everything is in the log")
        records = list(log.read(0))
    assert sorted((each.topic, each.payload) for each in records) == sorted((e.topic, e.payload) for e in expected)
    assert {(each.publisher, each.topic, each.payload) for each in records} == set(witness.sent_)
    seqs = {(each.publisher, value) for each in records for key, value in user_properties(each.properties)}
    assert seqs == witness.acknowledged_
    assert all(each.class_ == each.topic.rpartition("/")[2] or each.class_ == "protection" for each in records)


def test_each_meter_may_be_a_client_of_its_own(world: World, broker: BrokerThread) -> None:
    witness = _Witness()
    address = f"mqtt://127.0.0.1:{broker.port}"
    publisher = Publisher(world, "mqtt://127.0.0.1:1", speed=1_000, is_apart=True, run="r", witness=witness,
                          elsewhere=dict.fromkeys((*world.meters, "protection", "control"), address))  # fmt: skip
    publisher.publish(60)
    of_meters = {(client, topic) for client, topic, _ in witness.sent_ if topic.endswith("/reading")}
    assert {client for client, _topic in of_meters} == {f"{world.grid}-{node}" for node in world.nodes}
    assert all(topic.split("/")[2] == client.removeprefix(f"{world.grid}-") for client, topic in of_meters)
    assert {client for client, topic, _ in witness.sent_ if topic.endswith("/command")} == {f"{world.grid}-control"}


def test_it_stops_when_told_to(world: World, broker: BrokerThread) -> None:
    publisher = Publisher(world, f"mqtt://127.0.0.1:{broker.port}", speed=1)
    thread = threading.Timer(0.2, publisher.stop)
    thread.start()
    tally = publisher.publish()
    thread.join()
    assert tally.published.total() < 100
    assert tally.acknowledged.total() == sum(count for kind, count in tally.published.items() if kind != "reading")


def test_a_broker_that_is_not_there_or_goes_away_is_a_sentence(world: World, broker: BrokerThread) -> None:
    with pytest.raises(Unpublished, match=r"127\.0\.0\.1:1 cannot be reached: "):
        Publisher(world, "mqtt://127.0.0.1:1").publish(1)
    publisher = Publisher(world, f"mqtt://127.0.0.1:{broker.port}", speed=1)
    closing = threading.Timer(0.3, broker.__exit__, (None, None, None))
    closing.start()
    # what it says depends on which of its clients notices first: one that is connected, or one that would be
    with pytest.raises(Unpublished, match=r"disconnected|cannot publish|cannot be reached"):
        publisher.publish(600)
    closing.join()


@pytest.mark.parametrize(
    ("url", "target"),
    [
        ("mqtt://broker", Target("broker", 1883)),
        ("mqtt://a%40b:p%3Aq@[::1]:7", Target("::1", 7, "a@b", "p:q")),
        ("http://broker", None),
        ("mqtt://broker:x", None),
        ("mqtt://broker/topic", None),
        ("broker", None),
    ],
)
def test_addresses(url: str, target: Target | None) -> None:
    if target is None:
        with pytest.raises(Unbuildable, match="is refused"):
            target_of(url)
    else:
        assert target_of(url) == target


def test_a_speed_of_nothing_is_refused(world: World) -> None:
    with pytest.raises(Unbuildable, match="speed of 0"):
        Publisher(world, "mqtt://broker", speed=0)
