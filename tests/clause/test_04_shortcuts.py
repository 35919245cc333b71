"""The second message of a topic takes a shorter way through the broker; no statement may get lost on it."""

from __future__ import annotations

import pytest

from tests.clause import raw
from tests.clause.conftest import NewWorld
from tests.clause.marker import clause
from tests.kits.world import Client, World, payloads, topics
from tieline.core.ports import Allowed, Login, Refused, Verdict
from tieline.wire.encode import encode
from tieline.wire.packets import Puback, Publish
from tieline.wire.reason import Reason

BOTH = pytest.mark.parametrize("version", [5, 4], ids=["v5", "v311"])


class Owners:
    """A client may publish only to the topic of its own name."""

    is_open = False

    def connect(self, login: Login) -> Verdict:
        return Allowed()

    def publish(self, login: Login, topic: str) -> Verdict:
        return Allowed() if topic == login.client_id else Refused("not yours")

    def subscribe(self, login: Login, filter_: str) -> Verdict:
        return Allowed()


def warm(world: World, *names: str) -> None:
    """Let the broker meet topics before the test."""
    for name in names:
        for version in (4, 5):
            world.client("warm", version=version).publish(name, qos=1)


@clause("MQTT-3.3.2-3", "MQTT-4.6.0-5", "MQTT311-3.3.2-3", "MQTT311-4.6.0-6")
@pytest.mark.parametrize("sender", [4, 5])
@pytest.mark.parametrize("receiver", [4, 5])
def test_3_3_2_3_packets_that_look_alike_are_told_apart(world: World, sender: int, receiver: int) -> None:
    warm(world, "a", "b", "c")
    client = world.client("client", version=receiver)
    client.subscribe("a")
    everything = world.client("everything", version=receiver)
    everything.subscribe("#")
    sent = [("a", b"1"), ("a", b"2"), ("b", b"3"), ("a", b"4"), ("c", b"5"), ("a", b"66"), ("a", b""), ("a", b"7")]
    stream = b"".join(encode(Publish(topic=topic, payload=payload), sender) for topic, payload in sent)
    world.client("sender", version=sender).send(stream)
    assert payloads(client.messages()) == [payload for topic, payload in sent if topic == "a"]
    received = everything.messages()
    assert list(zip(topics(received), payloads(received), strict=True)) == sent


@clause("MQTT-3.3.4-3", "MQTT-3.8.3-3", "MQTT-3.1.2-24", "MQTT-3.1.2-26", "MQTT-4.8.2-3")
def test_3_3_4_3_a_run_of_packets_reaches_each_subscriber_in_its_own_way(world: World) -> None:
    warm(world, "a")
    own, small, named, aliased = (
        world.client("own"),
        world.client("small", maximum_packet_size=24),
        world.client("named"),
        world.client("aliased", topic_alias_maximum=1),
    )
    shared = [world.client(f"member {number}") for number in range(2)]
    own.subscribe("a", no_local=True)
    small.subscribe("a")
    named.subscribe("a", subscription_identifier=[77])
    aliased.subscribe("a")
    for member in shared:
        member.subscribe("$share/group/a", qos=1)
    run = [bytes([number]) * 30 for number in range(5)] + [b"short"]
    own.send(b"".join(encode(Publish(topic="a", payload=payload), 5) for payload in run))
    own.expect_nothing()
    assert payloads(small.messages()) == [b"short"]
    tagged = named.messages()
    assert payloads(tagged) == run
    assert all(message.properties == {"subscription_identifier": [77]} for message in tagged)
    first, *rest = aliased.messages()
    assert (first.topic, [message.topic for message in rest]) == ("a", [""] * 5)
    assert payloads([first, *rest]) == run
    assert sorted(payload for member in shared for payload in payloads(member.messages())) == sorted(run)


@clause("MQTT-2.2.1-3", "MQTT311-2.3.1-1")
@BOTH
def test_2_2_1_3_identifier_zero_is_refused_on_a_known_topic(world: World, version: int) -> None:
    warm(world, "a")
    client = world.client(version=version)
    client.send(raw.publish(version, "a", b"payload", flags=0x2, packet_id=0))
    client.expect_end(Reason.PROTOCOL_ERROR)


@clause("MQTT-3.2.2-11")
def test_3_2_2_11_the_maximum_qos_holds_on_a_known_topic(new_world: NewWorld) -> None:
    world = new_world(maximum_qos=0)
    client = world.client()
    client.subscribe("a")
    client.put("a")
    client.put("a", b"above", qos=1)
    client.expect(Publish, payload=b"x")
    client.expect_end(Reason.QOS_NOT_SUPPORTED)


@clause("MQTT311-3.3.5-2", "MQTT-3.4.2-1")
@BOTH
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_v311_3_3_5_2_what_one_client_may_another_may_not(new_world: NewWorld, version: int, qos: int) -> None:
    world = new_world(access=Owners())
    owner, thief, watcher = (world.client(name, version=version) for name in ("owner", "thief", "watcher"))
    watcher.subscribe("#")
    for client, payload in ((owner, b"1"), (owner, b"2"), (thief, b"no"), (owner, b"3"), (thief, b"nor this")):
        reason = client.publish("owner", payload, qos=qos)
        is_told = client is thief and qos and version == 5
        assert reason is (Reason.NOT_AUTHORIZED if is_told else Reason.SUCCESS)
    assert payloads(watcher.messages()) == [b"1", b"2", b"3"]


@clause("MQTT-1.5.5-1")
@pytest.mark.parametrize("flags", [0x0, 0x2], ids=["QoS 0", "QoS 1"])
def test_1_5_5_1_a_longer_length_is_malformed_on_a_known_topic(world: World, flags: int) -> None:
    warm(world, "a")
    client = world.client()
    body = raw.publish(5, "a", b"payload", flags=flags, packet_id=1 if flags else None)[2:]
    client.send(bytes([0x30 | flags, 0x80 | len(body), 0x00]) + body)
    client.expect_end(Reason.MALFORMED_PACKET)


@clause("MQTT-1.5.4-1", "MQTT-3.3.2-1", "MQTT311-3.3.2-1")
@BOTH
@pytest.mark.parametrize("length", [0, 1, 2, 4, 5, 9, 300])
def test_3_3_2_1_a_topic_that_leaves_its_packet_is_malformed(world: World, version: int, length: int) -> None:
    """The declared length of the topic points into, or behind, the packet that follows."""
    warm(world, "a", "aa", "a" * 5, "a" * 9)
    watcher = world.client("watcher")
    watcher.subscribe("#")
    client = world.client(version=version)
    good = raw.publish(version, "a", b"a" * 4)
    bad = raw.packet(raw.PUBLISH, raw.u16(length), b"a" * 4)
    client.send(good, bad, good)
    is_well_formed = version == 4 and length in (1, 2, 4)  # the rest is payload
    assert client.closed is not is_well_formed
    assert len(watcher.messages()) == (3 if is_well_formed else 1)


@clause("MQTT-4.13.1-1", "MQTT-4.3.3-4")
def test_4_3_3_4_puback_does_not_finish_a_qos_2_message(world: World) -> None:
    client = world.durable()
    client.subscribe("a", qos=2)
    world.client("other").publish("a", b"x", qos=2)
    message = client.expect(Publish, qos=2)
    client.send(Puback(packet_id=message.packet_id))
    client.expect_end(Reason.PROTOCOL_ERROR)
    world.durable().expect(Publish, payload=b"x", dup=True, packet_id=message.packet_id)


@clause("MQTT-3.3.4-1", "MQTT-4.3.2-4", "MQTT311-3.3.4-1", "MQTT311-4.3.2-2")
@BOTH
@pytest.mark.parametrize("audience", ["nobody", "somebody"])
def test_3_3_4_1_every_qos_1_message_of_a_run_is_acknowledged(world: World, version: int, audience: str) -> None:
    warm(world, "a")
    reader = world.client("reader")
    if audience == "somebody":
        reader.subscribe("a", qos=1)
    client: Client = world.client(version=version)
    identifiers = [1, 2, 2, 65_535, 3]
    client.send(
        *(
            raw.publish(version, "a", bytes([number]), flags=0x2, packet_id=one)
            for number, one in enumerate(identifiers)
        )
    )
    reason = Reason.NO_MATCHING_SUBSCRIBERS if audience == "nobody" and version == 5 else Reason.SUCCESS
    for packet_id in identifiers:
        client.expect(Puback, packet_id=packet_id, reason=reason)
    assert len(reader.messages()) == (5 if audience == "somebody" else 0)
