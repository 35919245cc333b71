from __future__ import annotations

import pytest

from tests.kits.world import GENESIS, Client, World
from tieline.core.account import Drop
from tieline.version import __version__
from tieline.wire.packets import Puback, Publish, Subscription
from tieline.wire.reason import Reason

#: The topics that mosquitto(8) documents and that mean something here; heap sizes and bridges do not.
MOSQUITTO = {
    "bytes/received",
    "bytes/sent",
    "clients/connected",
    "clients/disconnected",
    "clients/expired",
    "clients/maximum",
    "clients/total",
    *(
        f"load/{what}/{span}"
        for span in ("1min", "5min", "15min")
        for what in (
            "bytes/received",
            "bytes/sent",
            "connections",
            "messages/received",
            "messages/sent",
            "publish/dropped",
            "publish/received",
            "publish/sent",
            "sockets",
        )
    ),
    "messages/received",
    "messages/sent",
    "messages/stored",
    "publish/messages/dropped",
    "publish/messages/received",
    "publish/messages/sent",
    "retained messages/count",
    "store/messages/bytes",
    "store/messages/count",
    "subscriptions/count",
    "uptime",
    "version",
}


def report(world: World, client: Client) -> dict[str, str]:
    """The next report, by topic."""
    world.advance(10)
    return {message.topic: message.payload.decode() for message in client.messages()}


@pytest.fixture
def world() -> World:
    return World(sys_interval_s=10.0)


def test_the_names_are_mosquitto_s(world: World) -> None:
    world.advance(25)
    client = world.client("c")
    client.subscribe("$SYS/#")
    found = {message.topic for message in client.messages()}
    assert {f"$SYS/broker/{name}" for name in MOSQUITTO} <= found
    assert all(topic.startswith("$SYS/broker/") for topic in found)


def test_values_are_retained_and_true(world: World) -> None:
    world.durable("away").drop()
    client = world.client("c")
    client.subscribe("t", "u")
    world.client("p").publish("t", b"x", retain=True)
    client.messages()
    client.subscribe("$SYS/broker/+/+")
    world.advance(10)
    values = {message.topic.removeprefix("$SYS/broker/"): message.payload.decode() for message in client.messages()}
    assert values["clients/connected"] == "2"
    assert values["clients/disconnected"] == "1"
    assert values["clients/total"] == "3"
    assert values["subscriptions/count"] == "3"
    assert values["messages/stored"] == values["retained messages/count"]
    late = world.client("late")
    late.subscribe("$SYS/broker/version", "$SYS/broker/uptime")
    messages = late.messages()
    assert [message.retain for message in messages] == [True, True]
    assert messages[0].payload.decode() == f"tieline version {__version__}"
    assert messages[1].payload.decode().endswith(" seconds")


def test_only_what_has_changed_is_published_again(world: World) -> None:
    client = world.client("c")
    client.subscribe("$SYS/#")
    client.messages()
    report(world, client)
    values = report(world, client)
    assert "$SYS/broker/uptime" in values
    assert "$SYS/broker/version" not in values
    assert "$SYS/broker/clients/total" not in values


def test_drops_closes_and_holds_have_topics_of_their_own(world: World) -> None:
    publisher, away = world.client("p"), world.durable("away")
    away.subscribe("t")
    away.drop()
    for _ in range(3):
        publisher.publish("t")
    client = world.client("c")
    client.subscribe("$SYS/broker/tieline/#")
    client.take()
    values = report(world, client)
    assert values["$SYS/broker/tieline/dropped/offline"] == "3"
    assert values["$SYS/broker/tieline/closed/connection_lost"] == "1"


@pytest.mark.parametrize("version", [4, 5])
def test_nobody_else_publishes_there(world: World, version: int) -> None:
    client = world.client("c", version=version)
    client.subscribe("$SYS/fake")
    client.put("$SYS/fake", b"x", qos=1, packet_id=1)
    client.expect(Puback, reason=Reason.NOT_AUTHORIZED if version == 5 else Reason.SUCCESS)
    client.put("$SYS/fake", b"x", qos=0)
    client.expect_nothing()
    assert world.broker.account.drops == {Drop.DENIED: 2}


def test_a_wildcard_does_not_show_it(world: World) -> None:
    client = world.client("c")
    client.subscribe("#", "+/broker/uptime")
    world.advance(30)
    client.expect_nothing()


def test_zero_means_no_reports() -> None:
    world = World(sys_interval_s=0)
    assert world.broker.timer() is None
    client = world.client("c")
    client.subscribe("$SYS/#")
    world.advance(100)
    client.expect_nothing()


def test_loads_are_averages_per_minute(world: World) -> None:
    publisher = world.client("p")
    client = world.client("c")
    client.subscribe("$SYS/broker/load/publish/received/1min")
    loads = []
    for _ in range(60):
        publisher.send(*(Publish(topic="t", payload=b"x") for _ in range(20)))
        world.advance(10)
        loads += [float(message.payload) for message in client.messages()]
    assert loads[-1] == pytest.approx(120, rel=0.01), "20 messages in 10 s"
    assert loads == sorted(loads), "an average approaches from below"


def test_reports_come_at_their_interval(world: World) -> None:
    client = world.client("c")
    client.subscribe(Subscription(filter="$SYS/broker/uptime", retain_handling=2))
    times = []
    for _ in range(35):
        world.advance(1)
        times += [world.now - GENESIS for _ in client.messages()]
    assert len(times) == 3
