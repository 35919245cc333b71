from __future__ import annotations

from typing import Any

import pytest

from tests.kits.check_store import Finish, LateStore, PromptStore, check_store
from tests.kits.world import Client, World
from tieline.core.ports import Memory, Store
from tieline.wire.packets import (
    Pingreq,
    Pingresp,
    Puback,
    Pubcomp,
    Publish,
    Pubrec,
    Pubrel,
    Suback,
    Subscribe,
    Subscription,
    Unsuback,
    Unsubscribe,
)
from tieline.wire.reason import Reason


def late() -> tuple[Store, Finish]:
    store = LateStore()
    return store, lambda: void(store.commit())


def prompt() -> tuple[Store, Finish]:
    return PromptStore(), lambda: None


def memory() -> tuple[Store, Finish]:
    return Memory(), lambda: None


def void(_: object) -> None: ...


@pytest.mark.parametrize("make", [late, prompt, memory])
def test_the_kit_passes(make: object) -> None:
    check_store(make)  # type: ignore[arg-type]  # parametrize does not keep types


class Late:
    """A world whose store commits on command."""

    def __init__(self, **options: Any) -> None:
        self.store = LateStore()
        self.world = World(store=self.store, **options)

    def commit(self, batches: int | None = None) -> None:
        self.world.broker.committed(self.store.commit(batches))
        self.world.settle()


@pytest.fixture
def scene() -> Late:
    return Late()


def durable(scene: Late, client_id: str = "d", version: int = 5) -> Client:
    client = scene.world.durable(client_id, version=version)
    scene.commit()
    client.note_connack()
    return client


def test_puback_waits_for_the_commit(scene: Late) -> None:
    client = durable(scene)
    client.put("t", qos=1, packet_id=7, retain=True)
    client.expect_nothing()
    scene.commit()
    client.expect(Puback, packet_id=7)
    client.expect_nothing()


def test_pubrec_and_pubcomp_wait_for_the_commit(scene: Late) -> None:
    client = durable(scene)
    client.put("t", qos=2, packet_id=7)
    client.expect_nothing()
    scene.commit()
    client.expect(Pubrec, packet_id=7)
    client.send(Pubrel(packet_id=7))
    client.expect_nothing()
    scene.commit()
    client.expect(Pubcomp, packet_id=7)


def test_suback_and_unsuback_wait_for_the_commit(scene: Late) -> None:
    client = durable(scene)
    client.send(Subscribe(packet_id=1, subscriptions=(Subscription(filter="t", qos=1),)))
    client.expect_nothing()
    scene.commit()
    client.expect(Suback, packet_id=1)
    client.send(Unsubscribe(packet_id=2, filters=("t",)))
    client.expect_nothing()
    scene.commit()
    client.expect(Unsuback, packet_id=2)


def test_a_ping_does_not_wait(scene: Late) -> None:
    client = durable(scene)
    client.put("t", qos=1, retain=True)
    client.send(Pingreq())
    client.expect(Pingresp)
    client.expect_nothing()


def test_a_chunk_is_one_batch(scene: Late) -> None:
    client = durable(scene)
    before = len(scene.store.batches)
    client.send(*(Publish(topic="t", payload=b"x", qos=1, packet_id=number, retain=True) for number in range(1, 50)))
    assert len(scene.store.batches) == before + 1
    scene.commit()
    assert len(client.take()) == 49


def test_a_commit_releases_what_it_covers_and_no_more(scene: Late) -> None:
    client = durable(scene)
    for packet_id in (1, 2, 3):
        client.put("t", qos=1, packet_id=packet_id, retain=True)
    scene.commit(batches=1)
    client.expect(Puback, packet_id=1)
    client.expect_nothing()
    scene.commit(batches=2)
    client.expect(Puback, packet_id=2)
    client.expect(Puback, packet_id=3)


def test_an_acknowledgement_without_a_fact_waits_for_what_went_before(scene: Late) -> None:
    client = durable(scene)
    client.put("t", qos=1, packet_id=1, retain=True)
    client.put("nobody", qos=1, packet_id=2)
    client.expect_nothing()
    scene.commit()
    assert [packet.packet_id for packet in client.take() if isinstance(packet, Puback)] == [1, 2]


def test_what_is_acknowledged_was_described(scene: Late) -> None:
    subscriber, publisher = durable(scene, "s"), durable(scene, "p")
    subscriber.send(Subscribe(packet_id=1, subscriptions=(Subscription(filter="t", qos=2),)))
    publisher.put("t", b"1", qos=1)
    publisher.put("t", b"2", qos=2, packet_id=9)
    publisher.put("t", b"3", qos=0, retain=True)
    scene.commit()
    assert {"session", "subscribe", "queue"} <= set(scene.store.kinds("s"))
    assert {"session", "take"} <= set(scene.store.kinds("p"))
    assert "retain" in scene.store.kinds()
    publisher.send(Pubrel(packet_id=9))
    assert scene.store.kinds("p")[-1] == "release"
    for packet in subscriber.take():
        if isinstance(packet, Publish) and packet.qos == 1:
            subscriber.send(Puback(packet_id=packet.packet_id))
    assert {"sent", "settled"} <= set(scene.store.kinds("s"))
    assert subscriber.connection.session is not None
    subscriber.send(Unsubscribe(packet_id=2, filters=("t",)))
    assert scene.store.kinds("s")[-1] == "unsubscribe"


def test_a_session_that_ends_is_forgotten(scene: Late) -> None:
    client = durable(scene)
    client.disconnect(session_expiry_interval=0)
    scene.world.client("other")
    assert "forget" in scene.store.kinds("d")


def test_a_connection_that_is_gone_gets_nothing(scene: Late) -> None:
    client = durable(scene)
    client.put("t", qos=1, retain=True)
    client.drop()
    scene.commit()
    assert client.take() == []
    again = durable(scene)
    again.expect_nothing()


def test_receive_maximum_counts_a_message_once() -> None:
    scene = Late(receive_maximum=4)
    client = durable(scene)
    client.send(*(Publish(topic="t", payload=b"x", qos=2, packet_id=number) for number in (1, 2)))
    client.send(*(Publish(topic="t", payload=b"x", qos=1, packet_id=number, retain=True) for number in (3, 4)))
    client.expect_nothing()
    scene.commit()
    assert len(client.take()) == 4


@pytest.mark.parametrize("qos", [1, 2])
def test_receive_maximum_is_enforced_while_the_store_is_late(qos: int) -> None:
    scene = Late(receive_maximum=4)
    client = durable(scene)
    client.send(*(Publish(topic="t", payload=b"x", qos=qos, packet_id=n, retain=True) for n in range(1, 6)))
    client.expect_end(Reason.RECEIVE_MAXIMUM_EXCEEDED)


def test_receive_maximum_does_not_count_other_answers() -> None:
    scene = Late(receive_maximum=2)
    client = durable(scene)
    for packet_id in (1, 2, 3):
        client.send(Subscribe(packet_id=packet_id, subscriptions=(Subscription(filter="t"),)))
    client.put("u", qos=1, retain=True)
    client.expect_nothing()
    scene.commit()
    assert len(client.take()) == 4


def test_what_need_not_survive_is_acknowledged_at_once(scene: Late) -> None:
    transient = scene.world.client("transient")
    transient.subscribe("t", qos=1)
    publisher = scene.world.client("p")
    publisher.put("t", qos=1, packet_id=1)
    publisher.expect(Puback, packet_id=1)
    publisher.put("t", qos=1, packet_id=2, retain=True)
    publisher.put("t", qos=1, packet_id=3)
    publisher.expect_nothing()  # in the order of the messages ([MQTT-4.6.0-2])
    scene.commit()
    publisher.expect(Puback, packet_id=2)
    publisher.expect(Puback, packet_id=3)


def test_connack_waits_for_the_session(scene: Late) -> None:
    client = scene.world.durable("d")
    client.send(Pingreq())
    client.expect_nothing()
    scene.commit()
    client.note_connack()
    assert not client.connack.session_present
    client.expect(Pingresp)


def test_a_client_that_is_sent_away_before_it_was_let_in_gets_no_word(scene: Late) -> None:
    client = scene.world.durable("d")
    durable(scene)
    assert client.closed and not client.raw


def test_qos_2_is_sent_when_its_packet_id_is_permanent(scene: Late) -> None:
    subscriber, publisher = durable(scene, "s"), durable(scene, "p")
    subscriber.send(Subscribe(packet_id=1, subscriptions=(Subscription(filter="t", qos=2),)))
    scene.commit()
    subscriber.expect(Suback)
    publisher.put("t", qos=2, packet_id=7)
    scene.commit(batches=1)
    publisher.expect(Pubrec, packet_id=7)
    subscriber.expect_nothing()
    assert scene.store.kinds("s")[-1] == "sent"
    scene.commit()
    message = subscriber.expect(Publish, qos=2, dup=False)
    subscriber.send(Pubrec(packet_id=message.packet_id))
    subscriber.expect_nothing()
    scene.commit()
    subscriber.expect(Pubrel, packet_id=message.packet_id)


def test_qos_2_that_could_not_depart_is_sent_after_the_next_connack(scene: Late) -> None:
    subscriber = durable(scene, "s")
    subscriber.send(Subscribe(packet_id=1, subscriptions=(Subscription(filter="t", qos=2),)))
    scene.commit()
    publisher = durable(scene, "p")
    for packet_id in (1, 2):
        publisher.put("t", b"%d" % packet_id, qos=2, packet_id=packet_id)
    scene.commit()
    assert scene.store.kinds("s")[-2:] == ["sent", "sent"]
    subscriber.drop()
    again = durable(scene, "s")
    assert [message.payload for message in again.messages()] == [b"1", b"2"]


def test_a_message_that_is_too_large_does_not_keep_its_packet_id(scene: Late) -> None:
    client = scene.world.durable("s", maximum_packet_size=100)
    scene.commit()
    client.note_connack()
    client.send(Subscribe(packet_id=1, subscriptions=(Subscription(filter="t", qos=2),)))
    scene.commit()
    client.expect(Suback)
    publisher = scene.world.client("p")
    publisher.put("t", bytes(200), qos=2, packet_id=1)
    publisher.put("t", b"small", qos=2, packet_id=2)
    for _ in range(3):
        scene.commit()
    client.expect(Publish, payload=b"small")
    session = client.connection.session
    assert session is not None and len(session.inflight) == 1
    assert scene.store.kinds("s")[-1] == "settled"


def test_a_store_that_is_behind_holds_clients(scene: Late) -> None:
    client = durable(scene)
    scene.store.is_behind = True
    client.put("t", qos=1, packet_id=1, retain=True)
    scene.commit()
    client.expect_nothing()
    scene.store.is_behind = False
    scene.commit()
    scene.commit()
    client.expect(Puback, packet_id=1)


@pytest.mark.parametrize("version", [4, 5])
@pytest.mark.parametrize("qos", [1, 2])
def test_a_store_without_room(version: int, qos: int) -> None:
    scene = Late(pause_max_s=5)
    client = durable(scene, version=version)
    scene.world.broker.store_is("no room", scene.world.now)
    client.put("t", qos=qos, packet_id=1, retain=True)
    if version == 5:
        (refused,) = client.take()
        assert refused.reason is Reason.QUOTA_EXCEEDED  # type: ignore[union-attr]  # PUBACK or PUBREC
        assert refused.properties["reason_string"] == "no room"  # type: ignore[union-attr]  # as above
        assert scene.world.broker.retained.get("t") is None
    else:
        client.expect_nothing()
        scene.world.broker.store_is("", scene.world.now)
        scene.world.settle()
        scene.commit()
        assert client.take()


def test_memory_is_done_at_once() -> None:
    store = Memory()
    assert store.is_volatile
    assert store.submit([]) == store.committed
    assert store.submit([]) == store.committed == 2
