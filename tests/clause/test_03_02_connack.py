"""Chapter 3.2: CONNACK, and the limits that it announces."""

from __future__ import annotations

import pytest

from tests.clause import raw
from tests.clause.conftest import NewWorld
from tests.clause.marker import clause
from tests.kits.world import World
from tieline.core.ports import Allowed, Login, Pending, Refused, Verdict
from tieline.wire.packet_type import PacketType
from tieline.wire.packets import Connack, Pingreq, Pingresp, Publish, Pubrec, Will
from tieline.wire.reason import ALLOWED, Reason

BOTH = pytest.mark.parametrize("version", [5, 4], ids=["v5", "v311"])


class Closed:
    """Refuses every client, for a reason of the test's choice."""

    is_open = False

    def __init__(self, reason: Reason) -> None:
        self.reason = reason

    def connect(self, login: Login) -> Verdict:
        return Refused("closed", self.reason)

    def publish(self, login: Login, topic: str) -> Verdict:
        return Allowed()

    def subscribe(self, login: Login, filter_: str) -> Verdict:
        return Allowed()


@clause("MQTT-3.2.0-1", "MQTT311-3.2.0-1")
@BOTH
def test_3_2_0_1_connack_comes_first(world: World, version: int) -> None:
    client = world.durable(version=version)
    client.subscribe("a", qos=1)
    client.drop()
    world.client("other").publish("a", qos=1)
    client = world.open(version)
    clean = 0x00
    expiry = b"\x11" + (60).to_bytes(4, "big")
    client.send(raw.connect(version, raw.text("a"), flags=clean, props=expiry), raw.packet(raw.PINGREQ))
    client.expect(Connack, reason=Reason.SUCCESS, session_present=True)
    assert {type(packet) for packet in client.take()} == {Publish, Pingresp}


class Slow:
    """Decides about every client later."""

    is_open = False

    def connect(self, login: Login) -> Verdict:
        return Pending(1)

    def publish(self, login: Login, topic: str) -> Verdict:
        return Allowed()

    def subscribe(self, login: Login, filter_: str) -> Verdict:
        return Allowed()


@clause("MQTT-3.2.0-1", "MQTT-3.1.4-6", "MQTT311-3.2.0-1", "MQTT311-3.1.4-5")
@BOTH
@pytest.mark.parametrize("verdict", [Allowed(), Refused("no")], ids=["allowed", "refused"])
def test_3_2_0_1_nothing_is_handled_before_the_client_is_accepted(
    new_world: NewWorld, version: int, verdict: Allowed | Refused
) -> None:
    world = new_world(access=Slow())
    client = world.open(version)
    client.send(raw.connect(version, raw.text("a")), raw.packet(raw.PINGREQ))
    client.expect_nothing()
    world.broker.decided(1, verdict, world.now)
    world.settle()
    if isinstance(verdict, Allowed):
        client.expect(Connack, reason=Reason.SUCCESS)
        client.expect(Pingresp)
    else:
        client.expect(Connack, reason=Reason.NOT_AUTHORIZED)
        assert client.take() == [] and client.closed


@clause("MQTT-3.14.0-1")
@BOTH
def test_3_14_0_1_a_server_that_stops_before_it_decided_sends_no_disconnect(new_world: NewWorld, version: int) -> None:
    world = new_world(access=Slow())
    client = world.open(version)
    client.send(raw.connect(version, raw.text("a")))
    world.stop()
    assert client.closed and client.raw == b""


@clause("MQTT-3.2.0-2")
@BOTH
def test_3_2_0_2_there_is_one_connack(world: World, version: int) -> None:
    client = world.client(version=version)
    client.send(Pingreq(), raw.connect(version, raw.text("a")))
    assert not any(isinstance(packet, Connack) for packet in client.take())


@clause("MQTT-3.2.2-1")
@BOTH
@pytest.mark.parametrize("case", ["new", "resumed", "refused"])
def test_3_2_2_1_the_other_acknowledge_flags_are_zero(new_world: NewWorld, version: int, case: str) -> None:
    world = new_world(access=Closed(Reason.BANNED) if case == "refused" else None)
    client = world.durable(version=version)
    if case == "resumed":
        client.drop()
        client = world.durable(version=version)
    assert client.raw[2] == (1 if case == "resumed" else 0)


@clause("MQTT-3.2.2-2", "MQTT311-3.2.2-1")
@BOTH
def test_3_2_2_2_a_clean_start_has_no_session_present(world: World, version: int) -> None:
    world.durable(version=version).drop()
    client = world.client(version=version, clean_start=True)
    assert client.connack.reason is Reason.SUCCESS and not client.connack.session_present


@clause("MQTT-3.2.2-6", "MQTT-3.2.2-7", "MQTT311-3.2.2-4", "MQTT311-3.2.2-5")
@BOTH
@pytest.mark.parametrize("reason", [Reason.BAD_USER_NAME_OR_PASSWORD, Reason.NOT_AUTHORIZED, Reason.SERVER_UNAVAILABLE])
def test_3_2_2_6_a_refusal_has_no_session_present(new_world: NewWorld, version: int, reason: Reason) -> None:
    world = new_world()
    world.durable(version=version).drop()
    world.broker.questions.access = Closed(reason)
    client = world.durable(version=version)
    refusal = client.expect_refusal(reason)
    assert not refusal.session_present


@clause("MQTT-3.2.2-8", "MQTT-3.1.4-2")
@pytest.mark.parametrize("reason", [Reason(code) for code in ALLOWED[PacketType.CONNACK] if code >= 0x80], ids=hex)
def test_3_2_2_8_only_defined_reason_codes_are_used(new_world: NewWorld, reason: Reason) -> None:
    client = new_world(access=Closed(reason)).client()
    assert client.raw[3] in ALLOWED[PacketType.CONNACK]
    client.expect_refusal(reason)


@clause("MQTT311-3.2.2-6")
@pytest.mark.parametrize("reason", [Reason.SERVER_BUSY, Reason.BANNED, Reason.QUOTA_EXCEEDED])
def test_v311_3_2_2_6_only_defined_return_codes_are_used(new_world: NewWorld, reason: Reason) -> None:
    client = new_world(access=Closed(reason)).client(version=4)
    assert client.closed
    assert client.raw == b"" or (client.raw[:3] == b"\x20\x02\x00" and 1 <= client.raw[3] <= 5)


@clause("MQTT-3.2.2-9")
@pytest.mark.parametrize("maximum", [0, 1, 2])
def test_3_2_2_9_a_lower_maximum_qos_is_announced(new_world: NewWorld, maximum: int) -> None:
    connack = new_world(maximum_qos=maximum).client().connack
    assert connack.properties.get("maximum_qos") == (None if maximum == 2 else maximum)


@clause("MQTT-3.2.2-10")
@pytest.mark.parametrize("maximum", [0, 1])
@BOTH
def test_3_2_2_10_subscriptions_of_every_qos_are_accepted(new_world: NewWorld, version: int, maximum: int) -> None:
    client = new_world(maximum_qos=maximum).client(version=version)
    for qos in (0, 1, 2):
        assert client.subscribe(f"a/{qos}", qos=qos).reasons == (min(qos, maximum),)


@clause("MQTT-3.2.2-11")
@pytest.mark.parametrize(("maximum", "qos"), [(0, 1), (0, 2), (1, 2)])
def test_3_2_2_11_a_publish_above_the_maximum_qos_ends_the_connection(
    new_world: NewWorld, maximum: int, qos: int
) -> None:
    world = new_world(maximum_qos=maximum)
    watcher = world.client("watcher")
    watcher.subscribe("a")
    client = world.client()
    client.put("a", qos=qos)
    client.expect_end(Reason.QOS_NOT_SUPPORTED)
    watcher.expect_nothing()


@clause("MQTT-3.2.2-12")
@pytest.mark.parametrize(("maximum", "qos"), [(0, 1), (0, 2), (1, 2)])
@BOTH
def test_3_2_2_12_a_will_above_the_maximum_qos_is_refused(
    new_world: NewWorld, version: int, maximum: int, qos: int
) -> None:
    client = new_world(maximum_qos=maximum).client(version=version, will=Will(topic="w", payload=b"", qos=qos))
    assert client.closed
    if version == 5:
        client.expect_refusal(Reason.QOS_NOT_SUPPORTED)


@clause("MQTT-3.2.2-13")
@BOTH
def test_3_2_2_13_a_retained_will_without_retain_support_is_refused(new_world: NewWorld, version: int) -> None:
    client = new_world(retain_available=False).client(version=version, will=Will(topic="w", payload=b"", retain=True))
    assert client.closed
    if version == 5:
        client.expect_refusal(Reason.RETAIN_NOT_SUPPORTED)


@clause("MQTT-3.2.2-14")
def test_3_2_2_14_a_retained_publish_without_retain_support_ends_the_connection(new_world: NewWorld) -> None:
    client = new_world(retain_available=False).client()
    assert client.connack.properties["retain_available"] == 0
    client.put("a", retain=True)
    client.expect_end(Reason.RETAIN_NOT_SUPPORTED)


@clause("MQTT-3.2.2-15")
@BOTH
def test_3_2_2_15_a_packet_above_the_maximum_size_ends_the_connection(new_world: NewWorld, version: int) -> None:
    world = new_world(packet_bytes=1_000)
    client = world.client(version=version)
    if version == 5:
        assert client.connack.properties["maximum_packet_size"] == 1_000
    overhead = len(raw.publish(version, "a", bytes(200))) - 200
    client.subscribe("a")
    client.put("a", bytes(1_000 - overhead))
    assert len(client.expect(Publish).payload) == 1_000 - overhead
    client.put("a", bytes(1_001 - overhead))
    client.expect_end(Reason.PACKET_TOO_LARGE)


@clause("MQTT-3.2.2-17", "MQTT-3.3.2-9")
def test_3_2_2_17_an_alias_above_the_maximum_ends_the_connection(new_world: NewWorld) -> None:
    client = new_world(topic_alias_maximum=5).client()
    assert client.connack.properties["topic_alias_maximum"] == 5
    client.put("a", topic_alias=6)
    client.expect_end(Reason.TOPIC_ALIAS_INVALID)


@clause("MQTT-3.2.2-18")
def test_3_2_2_18_without_a_maximum_every_alias_ends_the_connection(new_world: NewWorld) -> None:
    client = new_world(topic_alias_maximum=0).client()
    assert not client.connack.properties.get("topic_alias_maximum")
    client.put("a", topic_alias=1)
    client.expect_end(Reason.TOPIC_ALIAS_INVALID)


@clause("MQTT-3.2.2-19", "MQTT-3.2.2-20", "MQTT-3.1.2-24")
@pytest.mark.parametrize("size", [5, 8, 12])
def test_3_2_2_19_a_refusal_fits_the_maximum_packet_size(new_world: NewWorld, size: int) -> None:
    client = new_world(access=Closed(Reason.BANNED)).client(maximum_packet_size=size)
    assert len(client.raw) <= size
    refusal = client.expect_refusal(Reason.BANNED)
    assert "reason_string" not in refusal.properties and "user_property" not in refusal.properties


@clause("MQTT-3.1.2-24")
@pytest.mark.parametrize("size", [1, 4, 5, 8, 12, 24, 50])
def test_3_1_2_24_a_client_too_small_for_connack_is_not_accepted(world: World, size: int) -> None:
    client = world.open()
    client.connect(maximum_packet_size=size)
    assert len(client.raw) <= size
    assert client.closed or client.connack.reason is Reason.SUCCESS


@clause("MQTT-3.1.2-21", "MQTT-3.2.2-21", "MQTT-3.2.2-22")
@pytest.mark.parametrize(("asked", "given"), [(10, None), (20, None), (30, 20), (0, 20)])
def test_3_2_2_22_the_announced_keep_alive_counts(new_world: NewWorld, asked: int, given: int | None) -> None:
    world = new_world(keep_alive_max_s=20)
    client = world.client(keep_alive=asked)
    assert client.connack.properties.get("server_keep_alive") == given
    world.advance((given or asked) * 1.5 - 0.1)
    client.expect_nothing()
    world.advance(0.2)
    client.expect_end(Reason.KEEP_ALIVE_TIMEOUT)


@clause("MQTT-3.3.4-7", "MQTT-4.9.0-1")
def test_3_3_4_7_the_receive_maximum_is_announced_and_enforced(new_world: NewWorld) -> None:
    client = new_world(receive_maximum=3).client()
    assert client.connack.properties["receive_maximum"] == 3
    for packet_id in (1, 2, 3):
        client.put("a", qos=2, packet_id=packet_id)
        client.expect(Pubrec, packet_id=packet_id, reason=Reason.NO_MATCHING_SUBSCRIBERS)
    client.put("a", qos=2, packet_id=4)
    client.expect_end(Reason.RECEIVE_MAXIMUM_EXCEEDED)


@clause("MQTT-3.1.2-23")
def test_3_1_2_23_a_shortened_session_expiry_is_announced(new_world: NewWorld) -> None:
    world = new_world(session_expiry_max_s=10)
    assert world.durable(expiry_s=11).connack.properties["session_expiry_interval"] == 10
    assert "session_expiry_interval" not in world.durable("b", expiry_s=10).connack.properties
    world.advance(0)
    world.clients[0].drop()
    world.advance(10.1)
    assert not world.durable().connack.session_present
