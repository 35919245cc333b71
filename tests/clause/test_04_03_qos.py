"""Chapters 4.1 to 4.5: session state, the QoS conversations, redelivery and ownership."""

from __future__ import annotations

import pytest

from tests.clause.marker import clause
from tests.kits.world import Client, World, payloads
from tieline.wire.packets import Puback, Pubcomp, Publish, Pubrec, Pubrel
from tieline.wire.reason import Reason

BOTH = pytest.mark.parametrize("version", [5, 4], ids=["v5", "v311"])


@pytest.fixture
def other(world: World) -> Client:
    return world.client("other")


def reconnect(client: Client, **fields: object) -> Client:
    """The network is lost, and the client comes back to its session."""
    client.drop()
    return client.world.durable(version=client.version, **fields)  # type: ignore[arg-type]


# --- 4.1 session state ----------------------------------------------------------------------------------------------


@clause("MQTT-4.1.0-1", "MQTT311-4.1.0-1", "MQTT311-4.1.0-2")
@BOTH
@pytest.mark.parametrize("clean_start", [True, False])
def test_4_1_0_1_a_session_lasts_as_long_as_its_connection(
    world: World, version: int, clean_start: bool, other: Client
) -> None:
    client = world.client(version=version, clean_start=clean_start)
    client.subscribe("a", qos=2)
    client.put("b", qos=2, packet_id=9)
    client.expect(Pubrec, packet_id=9)
    other.publish("a", b"in flight", qos=2)
    message = client.expect(Publish, payload=b"in flight")
    world.advance(10_000_000)
    other.publish("a", b"much later", qos=1)
    client.expect(Publish, payload=b"much later")
    client.acknowledge(message)
    client.send(Pubrel(packet_id=9))
    client.expect(Pubcomp, packet_id=9, reason=Reason.SUCCESS)


@clause("MQTT311-4.1.0-1")
def test_v311_4_1_0_1_a_persistent_session_waits_for_its_client(world: World, other: Client) -> None:
    client = world.durable(version=4)
    client.subscribe("a", qos=1)
    client.drop()
    other.publish("a", b"kept", qos=1)
    world.advance(10_000_000)
    world.durable(version=4).expect(Publish, payload=b"kept")


@clause("MQTT-4.1.0-1", "MQTT311-4.1.0-1")
@BOTH
@pytest.mark.parametrize(("published", "granted"), [(0, 2), (1, 0), (2, 0)])
def test_4_1_0_1_messages_of_qos_0_are_not_kept_for_a_client_that_is_away(
    world: World, version: int, other: Client, published: int, granted: int
) -> None:
    client = world.durable(version=version)
    client.subscribe("a", qos=granted)
    client.drop()
    other.publish("a", b"missed", qos=published)
    client = world.durable(version=version)
    other.publish("a", b"live", qos=published)
    assert payloads(client.messages()) == [b"live"]


# --- 4.3.1, 4.3.2: QoS 0 and QoS 1 ----------------------------------------------------------------------------------


@clause("MQTT-4.3.1-1", "MQTT311-4.3.1-1")
@BOTH
def test_4_3_1_1_qos_0_is_sent_once_with_qos_0(world: World, version: int, other: Client) -> None:
    client = world.durable(version=version)
    client.subscribe("a", qos=2)
    other.publish("a", qos=0)
    client.expect(Publish, qos=0, dup=False, packet_id=0)
    reconnect(client).expect_nothing()


@clause("MQTT-4.3.2-2", "MQTT-4.3.2-3", "MQTT311-4.3.2-1", "MQTT-4.4.0-1", "MQTT311-4.4.0-1")
@BOTH
def test_4_3_2_3_qos_1_is_unacknowledged_until_puback(world: World, version: int, other: Client) -> None:
    client = world.durable(version=version)
    client.subscribe("a", qos=1)
    other.publish("a", b"x", qos=1)
    first = client.expect(Publish, qos=1, dup=False)
    for _ in range(3):
        client = reconnect(client)
        client.expect(Publish, qos=1, dup=True, packet_id=first.packet_id, payload=b"x")
    client.send(Puback(packet_id=first.packet_id))
    client = reconnect(client)
    client.expect_nothing()


@clause("MQTT-4.3.2-5", "MQTT311-4.3.2-2")
@BOTH
@pytest.mark.parametrize("dup", [False, True])
def test_4_3_2_5_after_puback_the_identifier_means_a_new_message(
    world: World, version: int, dup: bool, other: Client
) -> None:
    other.subscribe("a")
    client = world.client(version=version)
    client.put("a", b"one", qos=1, packet_id=3)
    client.expect(Puback, packet_id=3)
    client.put("a", b"two", qos=1, packet_id=3, dup=dup)
    client.expect(Puback, packet_id=3)
    assert payloads(other.messages()) == [b"one", b"two"]


# --- 4.3.3: QoS 2, the broker as sender -----------------------------------------------------------------------------


@clause("MQTT-4.3.3-2", "MQTT-4.3.3-3", "MQTT-4.3.3-4", "MQTT-4.3.3-5", "MQTT-4.3.3-6", "MQTT311-4.3.3-1")
@clause("MQTT-4.4.0-1", "MQTT311-4.4.0-1")
@BOTH
def test_4_3_3_6_every_step_of_qos_2_survives_a_lost_connection(world: World, version: int, other: Client) -> None:
    client = world.durable(version=version)
    client.subscribe("a", qos=2)
    other.publish("a", b"x", qos=2)
    packet_id = client.expect(Publish, qos=2, dup=False).packet_id
    for _ in range(2):  # until PUBREC the message is sent again
        client = reconnect(client)
        client.expect(Publish, qos=2, dup=True, packet_id=packet_id, payload=b"x")
        client.expect_nothing()
    client.send(Pubrec(packet_id=packet_id))
    client.expect(Pubrel, packet_id=packet_id)
    for _ in range(2):  # until PUBCOMP only PUBREL is sent again
        client = reconnect(client)
        client.expect(Pubrel, packet_id=packet_id)
        client.expect_nothing()
    client.send(Pubcomp(packet_id=packet_id))
    reconnect(client).expect_nothing()


@clause("MQTT-4.3.3-4")
def test_4_3_3_4_a_failed_pubrec_is_not_answered(world: World, other: Client) -> None:
    client = world.durable(receive_maximum=1)
    client.subscribe("a", qos=2)
    other.publish("a", b"refused", qos=2)
    message = client.expect(Publish, payload=b"refused")
    client.send(Pubrec(packet_id=message.packet_id, reason=Reason.UNSPECIFIED_ERROR))
    client.expect_nothing()
    other.publish("a", b"next", qos=2)
    client.expect(Publish, payload=b"next")


@clause("MQTT-4.3.3-7")
@pytest.mark.parametrize("qos", [1, 2])
def test_4_3_3_7_a_message_that_was_sent_does_not_expire(world: World, qos: int, other: Client) -> None:
    client = world.durable()
    client.subscribe("a", qos=qos)
    other.publish("a", b"x", qos=qos, message_expiry_interval=5)
    client.expect(Publish, payload=b"x")
    client.drop()
    world.advance(60)
    client = world.durable()
    client.expect(Publish, payload=b"x", dup=True)


# --- 4.3.3: QoS 2, the broker as receiver ---------------------------------------------------------------------------


@clause("MQTT-4.3.3-8", "MQTT-4.3.3-10", "MQTT-4.3.3-11", "MQTT-4.3.3-12", "MQTT311-4.3.3-2")
@BOTH
def test_4_3_3_10_a_repeated_qos_2_publish_is_answered_and_not_delivered_again(
    world: World, version: int, other: Client
) -> None:
    other.subscribe("a", qos=0)
    client = world.durable(version=version)
    client.put("a", b"once", qos=2, packet_id=4)
    client.expect(Pubrec, packet_id=4, reason=Reason.SUCCESS)
    for dup in (True, False):
        client.put("a", b"once", qos=2, packet_id=4, dup=dup)
        client.expect(Pubrec, packet_id=4, reason=Reason.SUCCESS)
    client = reconnect(client)
    client.put("a", b"once", qos=2, packet_id=4, dup=True)
    client.expect(Pubrec, packet_id=4, reason=Reason.SUCCESS)
    client.send(Pubrel(packet_id=4))
    client.expect(Pubcomp, packet_id=4, reason=Reason.SUCCESS)
    client.put("a", b"new", qos=2, packet_id=4, dup=True)
    client.expect(Pubrec, packet_id=4)
    assert payloads(other.messages()) == [b"once", b"new"]


@clause("MQTT-4.3.3-11", "MQTT311-4.3.3-2")
@BOTH
def test_4_3_3_11_a_repeated_pubrel_is_answered(world: World, version: int) -> None:
    client = world.durable(version=version)
    client.put("a", qos=2, packet_id=4)
    client.expect(Pubrec)
    client.send(Pubrel(packet_id=4))
    client.expect(Pubcomp, packet_id=4)
    client = reconnect(client)
    client.send(Pubrel(packet_id=4))
    client.expect(Pubcomp, packet_id=4)


@clause("MQTT-4.3.3-9")
def test_4_3_3_9_after_a_refusal_the_identifier_means_a_new_message(world: World) -> None:
    reader = world.durable("reader")
    reader.subscribe("a", qos=2)
    client = world.client()
    client.put("$SYS/forbidden", b"refused", qos=2, packet_id=4)
    assert client.expect(Pubrec, packet_id=4).reason >= 0x80
    client.put("a", b"new", qos=2, packet_id=4)
    client.expect(Pubrec, packet_id=4, reason=Reason.SUCCESS)
    reader.expect(Publish, payload=b"new")


@clause("MQTT-4.3.3-13")
def test_4_3_3_13_an_expired_message_does_not_stop_the_exchange(world: World) -> None:
    reader = world.durable("reader")
    reader.subscribe("a", qos=2)
    reader.drop()
    client = world.client()
    client.put("a", qos=2, packet_id=4, message_expiry_interval=1)
    client.expect(Pubrec, packet_id=4)
    world.advance(10)
    world.durable("reader").expect_nothing()
    client.put("a", qos=2, packet_id=4, message_expiry_interval=1, dup=True)
    client.expect(Pubrec, packet_id=4)
    client.send(Pubrel(packet_id=4))
    client.expect(Pubcomp, packet_id=4, reason=Reason.SUCCESS)


@clause("MQTT-2.2.1-5", "MQTT-4.3.3-10")
@BOTH
def test_4_3_3_10_the_two_directions_have_their_own_identifiers(world: World, version: int, other: Client) -> None:
    client = world.durable(version=version)
    client.subscribe("a", qos=2)
    other.publish("a", b"to client", qos=2)
    packet_id = client.expect(Publish).packet_id
    other.subscribe("b")
    client.put("b", b"from client", qos=2, packet_id=packet_id)
    client.expect(Pubrec, packet_id=packet_id)
    client.send(Pubrec(packet_id=packet_id))
    client.expect(Pubrel, packet_id=packet_id, reason=Reason.SUCCESS)
    client.send(Pubrel(packet_id=packet_id))
    client.expect(Pubcomp, packet_id=packet_id, reason=Reason.SUCCESS)
    client.send(Pubcomp(packet_id=packet_id))
    other.expect(Publish, payload=b"from client")
    reconnect(client).expect_nothing()


# --- 4.4, 4.5 -------------------------------------------------------------------------------------------------------


@clause("MQTT-4.4.0-1")
@BOTH
def test_4_4_0_1_nothing_is_sent_again_on_the_same_connection(world: World, version: int, other: Client) -> None:
    client = world.durable(version=version)
    client.subscribe("a", qos=2)
    other.publish("a", qos=1)
    other.publish("a", qos=2)
    one, two = client.messages()
    client.send(Pubrec(packet_id=two.packet_id))
    client.expect(Pubrel)
    world.advance(1_000_000)
    client.expect_nothing()
    client.send(Puback(packet_id=one.packet_id))
    client.expect_nothing()


@clause("MQTT-4.4.0-2")
@pytest.mark.parametrize("qos", [1, 2])
@pytest.mark.parametrize("reason", [Reason.UNSPECIFIED_ERROR, Reason.QUOTA_EXCEEDED, Reason.PAYLOAD_FORMAT_INVALID])
def test_4_4_0_2_a_failure_ends_the_delivery(world: World, qos: int, reason: Reason, other: Client) -> None:
    client = world.durable()
    client.subscribe("a", qos=qos)
    other.publish("a", qos=qos)
    packet_id = client.expect(Publish).packet_id
    client.send((Puback if qos == 1 else Pubrec)(packet_id=packet_id, reason=reason))
    client = reconnect(client)
    client.expect_nothing()


@clause("MQTT-4.5.0-1", "MQTT311-4.5.0-1")
@BOTH
@pytest.mark.parametrize("qos", [1, 2])
def test_4_5_0_1_every_matching_session_gets_the_message(world: World, version: int, qos: int, other: Client) -> None:
    filters = ["a/b", "a/+", "#", "+/b", "a/#", "other", "a/b/c"]
    clients = {filter_: world.durable(f"to {filter_}", version=version) for filter_ in filters}
    for filter_, client in clients.items():
        client.subscribe(filter_, qos=qos)
    away = filters[::2]
    for filter_ in away:
        clients[filter_].drop()
    other.publish("a/b", b"x", qos=qos)
    for filter_ in away:
        clients[filter_] = world.durable(f"to {filter_}", version=version)
    counts = {filter_: len(client.messages()) for filter_, client in clients.items()}
    assert counts == {"a/b": 1, "a/+": 1, "#": 1, "+/b": 1, "a/#": 1, "other": 0, "a/b/c": 0}


@clause("MQTT-4.5.0-2", "MQTT311-4.5.0-2")
@BOTH
def test_4_5_0_2_a_client_that_never_acknowledges_keeps_its_message(world: World, version: int, other: Client) -> None:
    client = world.durable(version=version)
    client.subscribe("a", qos=1)
    other.publish("a", b"x", qos=1)
    client.expect(Publish)
    world.advance(1_000)
    reconnect(client).expect(Publish, payload=b"x", dup=True)
