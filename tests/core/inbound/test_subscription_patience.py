"""What a subscriber asks for its low classes, and what it gets of that."""

from __future__ import annotations

import pytest

from tests.kits.world import Client, World, payloads
from tieline.conf.schema import Class, Mqtt, Priority, Settings
from tieline.core.inbound.subscription_request import asked_patience
from tieline.sched.levels import Patience
from tieline.wire.packets import Subscribe, Subscription

CONFIGURED = Priority(
    period="2s", frequency=3, period_min="50ms", frequency_max=20, timeout_min="200ms", floor=0.0, policy="feedback"
)


def asked(*properties: tuple[str, str]) -> Patience | None:
    return asked_patience(CONFIGURED, properties)


def test_no_wish() -> None:
    assert asked() is None
    assert asked(("colour", "blue"), ("Timeout", "3")) is None


def test_what_is_not_asked_for_stays_as_configured() -> None:
    assert asked(("timeout", "1")) == Patience(period_s=2.0, frequency=3, timeout_s=1.0)
    assert asked(("period", "1")) == Patience(period_s=1.0, frequency=3, timeout_s=None)
    assert asked(("frequency", "7")) == Patience(period_s=2.0, frequency=7, timeout_s=None)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("3", 3.0),
        ("0.75", 0.75),
        ("500ms", 0.5),
        ("500000us", 0.5),
        ("1.5s", 1.5),
        ("2m", 120.0),
        ("1h", 3_600.0),
        ("1e3", 1_000.0),
        ("30h", 86_400.0),
        ("1e300", 86_400.0),
        ("1e300h", 86_400.0),
    ],
)
def test_durations(text: str, seconds: float) -> None:
    patience = asked(("timeout", text), ("period", text))
    assert patience is not None
    assert patience.timeout_s == pytest.approx(seconds)
    assert patience.period_s == pytest.approx(seconds)


@pytest.mark.parametrize(
    "text", ["", "s", "ms", "soon", "-1", "-1s", "nan", "inf", "1e999", "1 fortnight", "1s2", "0x10"]
)
def test_what_cannot_be_read_is_ignored(text: str) -> None:
    assert asked(("timeout", text), ("period", text), ("frequency", text)) is None
    assert asked(("timeout", text), ("frequency", "2")) == Patience(period_s=2.0, frequency=2, timeout_s=None)


def test_wishes_are_clamped() -> None:
    assert asked(("timeout", "0"), ("period", "0"), ("frequency", "1000000")) == Patience(
        period_s=0.05, frequency=20, timeout_s=0.2
    )
    assert asked(("frequency", "0")) == Patience(period_s=2.0, frequency=0)
    assert asked(("frequency", "2.9")) == Patience(period_s=2.0, frequency=2)


def test_of_two_properties_with_one_name_the_last_counts() -> None:
    patience = asked(("frequency", "2"), ("frequency", "5"))
    assert patience is not None and patience.frequency == 5


# --- in a subscriber --------------------------------------------------------------------------------------------------


def session_patience(client: Client) -> Patience | None:
    assert client.connection.session is not None
    return client.connection.session.patience


def world() -> World:
    low = Class(name="low", filter="low/#", level=0, timeout="60s")
    return World(Settings(mqtt=Mqtt(sys_interval_s=0), priority=CONFIGURED, class_=(low,)))


def test_a_wish_holds_for_the_session() -> None:
    client = world().durable("s")
    client.subscribe("a", user_property=[("timeout", "3s")])
    assert session_patience(client) == Patience(period_s=2.0, frequency=3, timeout_s=3.0)
    client.subscribe("b")
    client.subscribe("c", user_property=[("colour", "blue")])
    assert session_patience(client) == Patience(period_s=2.0, frequency=3, timeout_s=3.0)
    client.drop()
    assert session_patience(client.world.durable("s")) == Patience(period_s=2.0, frequency=3, timeout_s=3.0)


def test_a_later_wish_changes_only_what_it_names() -> None:
    client = world().client("s")
    client.subscribe("a", user_property=[("timeout", "3s")])
    client.subscribe("b", user_property=[("frequency", "9")])
    client.subscribe("c", user_property=[("period", "1s")])
    assert session_patience(client) == Patience(period_s=1.0, frequency=9, timeout_s=3.0)


def test_a_wish_of_a_congested_subscriber_takes_effect_at_once() -> None:
    """A subscriber that starves may ask for its slot at run time."""
    place = world()
    client, publisher = place.client("s"), place.client("p")
    client.subscribe("#")
    client.stall()
    for number in range(400):
        publisher.publish("high", b"high %d" % number)
        publisher.publish("low/a", b"low %d" % number)
    assert not any(payload.startswith(b"low") for payload in serve(client, 5, per_s=10)[1:])
    client.send(
        Subscribe(
            packet_id=9,
            subscriptions=(Subscription(filter="#"),),
            properties={"user_property": [("timeout", "3s"), ("period", "1s"), ("frequency", "5")]},
        )
    )
    place.broker.fill(client.connection, 1, place.now)  # the SUBACK
    assert sum(payload.startswith(b"low") for payload in serve(client, 5, per_s=10)) >= 10


def serve(client: Client, seconds: float, per_s: int) -> list[bytes]:
    """What a client gets over a link of so many small packets per second that never runs empty."""
    broker, got = client.world.broker, b""
    for _ in range(int(seconds * per_s)):
        client.world.now += 1 / per_s
        got += b"".join(broker.fill(client.connection, 1, client.world.now))
    client.inbox += client._framer.feed(got)
    return payloads(client.messages())


@pytest.mark.parametrize(
    ("wishes", "least", "most"),
    [
        ([], 0, 0),  # the class has a minute
        ([("timeout", "5s"), ("period", "1s"), ("frequency", "1")], 4, 7),  # from the fourth second on, one each
        ([("timeout", "5s"), ("period", "1s"), ("frequency", "5")], 25, 35),
        ([("timeout", "5s"), ("period", "500ms"), ("frequency", "1")], 9, 12),
    ],
)
def test_low_messages_get_their_slots(wishes: list[tuple[str, str]], least: int, most: int) -> None:
    here = world()
    subscriber, publisher = here.client("s"), here.client("p")
    subscriber.subscribe("#", user_property=wishes)
    subscriber.stall()
    for number in range(100):
        publisher.publish("low/x", b"low %d" % number)
    for _ in range(1_000):
        publisher.publish("high", b"high")
    got = serve(subscriber, 10, 50)
    assert len(got) == 500
    low = [payload for payload in got if payload != b"high"]
    assert low == [b"low %d" % number for number in range(len(low))]
    assert least <= len(low) <= most
