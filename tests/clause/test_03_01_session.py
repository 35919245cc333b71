"""Chapter 3.1: client identifiers, clean start, session expiry and take-over."""

from __future__ import annotations

import string
from typing import Any

import pytest

from tests.clause.conftest import NewWorld
from tests.clause.marker import clause
from tests.kits.world import World, payloads
from tieline.core.ports import Allowed, Login, Refused, Verdict
from tieline.wire.packets import Disconnect, Publish, Pubrel
from tieline.wire.reason import Reason

BOTH = pytest.mark.parametrize("version", [5, 4], ids=["v5", "v311"])


@clause("MQTT-3.1.2-4", "MQTT-3.1.4-4", "MQTT311-3.1.2-6", "MQTT311-3.1.4-3")
@BOTH
def test_3_1_2_4_a_clean_start_forgets_subscriptions_and_messages(world: World, version: int) -> None:
    client = world.durable(version=version)
    client.subscribe("a", qos=1)
    client.drop()
    other = world.client("other")
    other.publish("a", b"missed", qos=1)
    client = world.client(version=version, clean_start=True)
    assert not client.connack.session_present
    other.publish("a", b"now", qos=1)
    client.expect_nothing()


@clause("MQTT-3.1.2-4", "MQTT311-3.1.2-6")
@BOTH
def test_3_1_2_4_a_clean_start_forgets_what_was_in_flight(world: World, version: int) -> None:
    client = world.durable(version=version)
    client.subscribe("a", qos=1)
    world.client("other").publish("a", b"in flight", qos=1)
    client.expect(Publish, payload=b"in flight")
    client.put("b", qos=2, packet_id=9)
    client.drop()
    watcher = world.client("watcher")
    watcher.subscribe("b")
    client = world.client(version=version)
    client.expect_nothing()
    client.put("b", b"new", qos=2, packet_id=9)
    watcher.expect(Publish, payload=b"new")


@clause("MQTT311-3.1.2-6")
def test_v311_3_1_2_6_a_clean_session_ends_with_its_connection(world: World) -> None:
    client = world.client(version=4, clean_start=True)
    client.subscribe("a", qos=1)
    client.drop()
    world.client("other").publish("a", qos=1)
    client = world.client(version=4, clean_start=False)
    assert not client.connack.session_present
    client.expect_nothing()


@clause("MQTT-3.1.2-5", "MQTT-3.2.2-3", "MQTT311-3.1.2-4", "MQTT311-3.1.2-5", "MQTT311-3.2.2-2")
@BOTH
@pytest.mark.parametrize("qos", [1, 2])
def test_3_1_2_5_without_clean_start_the_session_continues(world: World, version: int, qos: int) -> None:
    client = world.durable(version=version)
    client.subscribe("a/+", qos=qos)
    client.drop()
    other = world.client("other")
    other.publish("a/b", b"missed", qos=qos)
    client = world.durable(version=version)
    assert client.connack.session_present
    client.expect(Publish, topic="a/b", payload=b"missed", qos=qos, dup=False)
    other.publish("a/c", b"live", qos=qos)
    client.expect(Publish, topic="a/c", payload=b"live", qos=qos)


@clause("MQTT-3.1.2-6", "MQTT-3.2.2-3", "MQTT311-3.1.2-4", "MQTT311-3.2.2-3")
@BOTH
def test_3_1_2_6_without_clean_start_and_session_a_new_one_begins(world: World, version: int) -> None:
    client = world.durable(version=version)
    assert not client.connack.session_present
    client.drop()
    assert world.durable(version=version).connack.session_present


@clause("MQTT311-3.1.2-7")
@BOTH
def test_v311_3_1_2_7_retained_messages_outlive_the_session(world: World, version: int) -> None:
    client = world.client(version=version)
    client.publish("a", b"kept", qos=1, retain=True)
    client.disconnect()
    later = world.client("later", version=version)
    later.subscribe("a")
    later.expect(Publish, payload=b"kept", retain=True)


@clause("MQTT-3.1.2-23", "MQTT-4.1.0-1", "MQTT-4.1.0-2")
@pytest.mark.parametrize(("away", "is_kept"), [(9.9, True), (10.1, False)])
def test_3_1_2_23_a_session_lasts_as_long_as_its_expiry(world: World, away: float, is_kept: bool) -> None:
    client = world.durable(expiry_s=10)
    client.subscribe("a", qos=1)
    world.advance(1_000)
    client.drop()
    world.advance(away)
    client = world.durable()
    assert client.connack.session_present is is_kept
    world.client("other").publish("a", qos=1)
    assert len(client.messages()) == int(is_kept)


@clause("MQTT-3.1.2-23", "MQTT-4.1.0-2")
@pytest.mark.parametrize("expiry", [{}, {"session_expiry_interval": 0}], ids=["absent", "0"])
def test_4_1_0_2_without_an_expiry_the_session_ends_with_the_connection(world: World, expiry: dict[str, Any]) -> None:
    client = world.client(clean_start=False, **expiry)
    client.subscribe("a", qos=1)
    client.drop()
    assert not world.durable().connack.session_present


@clause("MQTT-3.1.2-23")
def test_3_1_2_23_the_highest_expiry_means_for_ever(world: World) -> None:
    world.durable(expiry_s=0xFFFF_FFFF).drop()
    world.advance(0xFFFF_FFFF + 1.0)
    assert world.durable().connack.session_present


@clause("MQTT-3.1.2-23")
def test_3_1_2_23_the_expiry_of_the_last_connection_counts(world: World) -> None:
    world.durable(expiry_s=10).drop()
    world.advance(5)
    world.durable(expiry_s=100).drop()
    world.advance(99)
    assert world.durable().connack.session_present


@clause("MQTT-3.1.2-23", "MQTT-4.1.0-2")
@pytest.mark.parametrize(("changed", "is_kept"), [(0, False), (20, True)])
def test_4_1_0_2_disconnect_may_change_the_expiry(world: World, changed: int, is_kept: bool) -> None:
    client = world.durable(expiry_s=10)
    client.disconnect(session_expiry_interval=changed)
    world.advance(15)
    assert world.durable().connack.session_present is is_kept


@clause("MQTT-3.1.2-23", "MQTT-4.13.1-1")
def test_3_1_2_23_disconnect_cannot_give_an_expiry_to_a_session_that_had_none(world: World) -> None:
    client = world.client(clean_start=True)
    client.send(Disconnect(properties={"session_expiry_interval": 10}))
    client.expect_end(Reason.PROTOCOL_ERROR)
    assert not world.durable().connack.session_present


@clause("MQTT-3.1.3-2", "MQTT311-3.1.3-2")
@BOTH
def test_3_1_3_2_sessions_belong_to_their_client_identifier(world: World, version: int) -> None:
    for client_id in ("one", "two", "One", "one "):
        client = world.durable(client_id, version=version)
        client.subscribe(f"to/{client_id}", qos=1)
        client.drop()
    other = world.client("other")
    other.publish("to/one", b"for one", qos=1)
    other.publish("to/One", b"for One", qos=1)
    assert payloads(world.durable("One", version=version).messages()) == [b"for One"]
    assert payloads(world.durable("one", version=version).messages()) == [b"for one"]
    assert payloads(world.durable("two", version=version).messages()) == []


@clause("MQTT-3.1.3-5", "MQTT311-3.1.3-5")
@BOTH
@pytest.mark.parametrize(
    "client_id",
    ["a", "0", string.ascii_lowercase[:23], string.ascii_uppercase[:23], string.digits * 2 + "abc", "WXYZwxyz"],
)
def test_3_1_3_5_short_plain_identifiers_are_accepted(world: World, version: int, client_id: str) -> None:
    assert world.client(client_id, version=version).connack.reason is Reason.SUCCESS


@clause("MQTT-3.1.3-6", "MQTT-3.2.2-16", "MQTT-3.1.3-7")
@pytest.mark.parametrize("clean_start", [True, False])
def test_3_1_3_6_an_empty_identifier_is_replaced_by_a_unique_one(world: World, clean_start: bool) -> None:
    clients = [world.client("", clean_start=clean_start) for _ in range(20)]
    given = {client.connack.properties["assigned_client_identifier"] for client in clients}
    assert len(given) == 20 and all(given)
    assert not any(client.closed for client in clients)


@clause("MQTT-3.1.3-7")
def test_3_1_3_7_the_given_identifier_names_the_session(world: World) -> None:
    client = world.durable("")
    given = client.connack.properties["assigned_client_identifier"]
    client.subscribe("a", qos=1)
    client.drop()
    again = world.durable(given)
    assert again.connack.session_present
    assert "assigned_client_identifier" not in again.connack.properties


@clause("MQTT-3.2.2-16", "MQTT311-3.1.3-6")
def test_3_2_2_16_a_given_identifier_takes_nobodys_session(new_world: NewWorld) -> None:
    first = new_world().client("").connack.properties["assigned_client_identifier"]
    world = new_world()
    owner = world.client(first)
    assert world.client("").connack.properties["assigned_client_identifier"] != first
    owner.expect_nothing()


@clause("MQTT311-3.1.3-6")
def test_v311_3_1_3_6_clients_without_identifier_do_not_meet(world: World) -> None:
    clients = [world.client("", version=4) for _ in range(3)]
    for index, client in enumerate(clients):
        assert client.connack.reason is Reason.SUCCESS
        client.subscribe(f"to/{index}")
    clients[0].put("to/2")
    clients[1].expect_nothing()
    clients[2].expect(Publish, topic="to/2")


@clause("MQTT311-3.1.3-7", "MQTT311-3.1.3-8", "MQTT311-3.1.3-9", "MQTT311-3.2.2-5")
def test_v311_3_1_3_8_an_empty_identifier_cannot_keep_a_session(world: World) -> None:
    client = world.client("", version=4, clean_start=False)
    client.expect_refusal(Reason.CLIENT_IDENTIFIER_NOT_VALID)
    assert client.raw == b"\x20\x02\x00\x02"


class Picky:
    """Refuses every client identifier that is not a word."""

    is_open = False

    def connect(self, login: Login) -> Verdict:
        return Allowed() if login.client_id.isalpha() else Refused("words only", Reason.CLIENT_IDENTIFIER_NOT_VALID)

    def publish(self, login: Login, topic: str) -> Verdict:
        return Allowed()

    def subscribe(self, login: Login, filter_: str) -> Verdict:
        return Allowed()


@clause("MQTT-3.1.3-8", "MQTT311-3.1.3-9")
@BOTH
def test_3_1_3_8_an_identifier_that_is_not_accepted_is_refused_and_closed(new_world: NewWorld, version: int) -> None:
    world = new_world(access=Picky())
    assert world.client("word", version=version).connack.reason is Reason.SUCCESS
    client = world.client("not/a/word", version=version)
    client.expect_refusal(Reason.CLIENT_IDENTIFIER_NOT_VALID)


@clause("MQTT-3.1.3-5", "MQTT311-3.1.3-5")
@BOTH
@pytest.mark.parametrize("client_id", ["with space", "ünïcode", "x" * 1_000, "a/b", "#"])
def test_3_1_3_5_longer_and_other_identifiers_are_accepted_too(world: World, version: int, client_id: str) -> None:
    client = world.client(client_id, version=version)
    client.subscribe("a")
    client.put("a")
    client.expect(Publish)


@clause("MQTT-3.1.4-3", "MQTT311-3.1.4-2", "MQTT-4.13.2-1")
@BOTH
@pytest.mark.parametrize("clean_start", [True, False])
def test_3_1_4_3_a_second_client_of_the_same_name_takes_over(world: World, version: int, clean_start: bool) -> None:
    first = world.durable(version=version)
    first.subscribe("a", qos=1)
    second = world.client(version=version, clean_start=clean_start)
    first.expect_end(Reason.SESSION_TAKEN_OVER)
    assert second.connack.session_present is not clean_start
    world.client("other").publish("a", qos=1)
    assert len(second.messages()) == int(not clean_start)


@clause("MQTT-3.1.4-3")
def test_3_1_4_3_what_was_in_flight_goes_to_the_new_connection(world: World) -> None:
    first = world.durable()
    first.subscribe("a", qos=2)
    world.client("other").publish("a", b"once", qos=2)
    sent = first.expect(Publish)
    second = world.durable()
    first.expect_end(Reason.SESSION_TAKEN_OVER)
    again = second.expect(Publish, payload=b"once", dup=True, packet_id=sent.packet_id)
    second.acknowledge(again)
    second.expect_nothing()


@clause("MQTT-3.1.4-3", "MQTT311-3.1.4-2")
@pytest.mark.parametrize(("old", "new"), [(4, 5), (5, 4)])
def test_3_1_4_3_take_over_works_between_the_versions(world: World, old: int, new: int) -> None:
    first = world.durable(version=old)
    first.subscribe("a", qos=2)
    world.client("other").publish("a", b"kept", qos=2)
    packet_id = first.expect(Publish).packet_id
    second = world.durable(version=new)
    first.expect_end(Reason.SESSION_TAKEN_OVER)
    assert second.connack.session_present
    second.acknowledge(second.expect(Publish, payload=b"kept", dup=True, packet_id=packet_id))
    assert not any(isinstance(packet, Pubrel) for packet in second.take())
