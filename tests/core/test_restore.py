"""A second broker made from what the first one told its store."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kits.check_store import Finish, PromptStore, check_store
from tests.kits.invariants import check
from tests.kits.ledger import Model
from tests.kits.world import World, payloads
from tieline.core.durable import facts
from tieline.core.outbound import replay
from tieline.core.ports import Portion, Store
from tieline.core.restore import StoredState
from tieline.wire.packets import Pubcomp, Publish, Pubrec, Pubrel, Subscribe, Subscription, Will
from tieline.wire.reason import Reason


class Kept(PromptStore):
    """A store that is always done, and knows what its facts come to."""

    def __init__(self, model: Model | None = None) -> None:
        super().__init__()
        self.model = model or Model()
        self.on_portion: Callable[[Portion, float], None]

    def answer(self) -> None:
        """Say what was asked for."""
        while self.questions:
            self.on_portion(self.model.portion(*self.questions.pop(0)), 0.0)

    def submit(self, facts: Any, log: Any = (), events: Any = ()) -> int:
        for fact in facts:
            self.model.apply(fact)
        self.model.sweep()
        return super().submit(facts, log, events)


class Scene:
    """A world that can be killed and begins anew."""

    def __init__(self, **options: Any) -> None:
        self._options = options
        self.store = Kept()
        self.world = World(store=self.store, **options)
        self._starts = 0

    def restart(self, downtime: float = 0.0, **options: Any) -> World:
        """The broker is killed; the next one begins so much later."""
        now = self.world.now + downtime
        self.store = Kept(self.store.model)
        self.world = World(store=self.store, **(self._options | options))
        self.world.now = now
        state = self.store.model.state
        self._starts += 1
        state.starts = self._starts + 1
        self.world.broker.restore(state, now)
        check(self.world.broker)
        self.world.settle()
        return self.world


def test_the_kit_passes() -> None:
    def make() -> tuple[Store, Finish]:
        store = Kept()
        return store, store.answer

    def reopen(store: Store) -> tuple[Store, Finish, StoredState]:
        assert isinstance(store, Kept)
        new = Kept(store.model)
        return new, new.answer, store.model.state

    check_store(make, reopen)


def test_a_session_ends_when_it_would_have_ended() -> None:
    scene = Scene()
    scene.world.durable("a", expiry_s=100).drop()
    assert not scene.restart(downtime=101).broker.sessions
    scene.world.durable("b", expiry_s=100).drop()
    world = scene.restart(downtime=60)
    assert "b" in world.broker.sessions
    world.advance(39)
    assert "b" in world.broker.sessions
    world.advance(2)
    assert not world.broker.sessions
    assert not scene.store.model.sessions


def test_who_was_connected_has_left_when_the_broker_came_back() -> None:
    scene = Scene()
    scene.world.durable("a", expiry_s=100)
    world = scene.restart(downtime=500)
    assert "a" in world.broker.sessions, "nobody knows when the broker died: the client gets its whole time"
    world = scene.restart(downtime=101)
    assert not world.broker.sessions, "from then on it is known"


def test_a_message_expires_while_no_broker_runs() -> None:
    scene = Scene()
    scene.world.durable("a").subscribe("t", qos=1)
    scene.world.clients[0].drop()
    publisher = scene.world.client("p")
    publisher.publish("t", b"short", qos=1, message_expiry_interval=10)
    publisher.publish("t", b"long", qos=1, message_expiry_interval=100)
    publisher.publish("r", b"short", qos=1, retain=True, message_expiry_interval=10)
    world = scene.restart(downtime=20)
    client = world.durable("a")
    message = client.expect(Publish, payload=b"long")
    assert message.properties["message_expiry_interval"] == 80
    client.expect_nothing()
    assert not len(world.broker.retained)
    assert b"r" not in scene.store.model.retained


def test_a_will_of_a_session_that_is_not_kept_is_published_by_the_next_broker() -> None:
    scene = Scene()
    scene.world.durable("watcher").subscribe("w", qos=1)
    scene.world.client("a", will=Will(topic="w", payload=b"gone", qos=1))
    world = scene.restart()
    world.durable("watcher").expect(Publish, topic="w", payload=b"gone")
    assert "a" not in world.broker.sessions
    assert len(scene.store.model.sessions) == 1
    assert [len(scene.restart().broker.sessions), len(scene.store.model.queue)] == [1, 0], "once"


def test_a_will_that_would_be_refused_today_is_published_without_its_properties() -> None:
    scene = Scene()
    scene.world.durable("watcher").subscribe("w", qos=1)
    scene.world.durable("a", will=Will(topic="w", payload=b"gone", qos=1, properties={"response_topic": "r"}))
    session = scene.world.broker.sessions["a"]
    assert session.will is not None
    session.will.properties["response_topic"] = ""
    scene.world.broker.journal.session(session)
    scene.world.broker.journal.seal()
    message = scene.restart().durable("watcher").expect(Publish, topic="w", payload=b"gone")
    assert not message.properties


def test_a_clean_stop_leaves_a_delayed_will_to_the_next_broker() -> None:
    scene = Scene()
    scene.world.durable("watcher").subscribe("w", qos=1)
    will = Will(topic="w", payload=b"gone", qos=1, properties={"will_delay_interval": 30})
    scene.world.durable("a", will=will)
    scene.world.stop()
    world = scene.restart(downtime=10)
    watcher = world.durable("watcher")
    watcher.expect_nothing()
    world.advance(21)
    watcher.expect(Publish, topic="w", payload=b"gone")


def test_a_clean_start_is_not_undone() -> None:
    scene = Scene()
    old = scene.world.durable("a")
    old.subscribe("t", qos=1)
    old.put("t", qos=2, packet_id=7)
    scene.world.client("a", session_expiry_interval=100).drop()
    world = scene.restart()
    again = world.durable("a")
    assert again.connack.session_present
    again.put("t", qos=2, packet_id=7)
    again.expect(Pubrec, packet_id=7, reason=Reason.NO_MATCHING_SUBSCRIBERS)


def test_a_session_that_is_no_longer_kept_is_forgotten() -> None:
    scene = Scene()
    scene.world.durable("a").subscribe("t", qos=1)
    scene.world.client("a", clean_start=False, session_expiry_interval=0)
    assert not scene.store.model.sessions
    assert not scene.restart().broker.sessions


def test_numbers_of_sessions_do_not_come_back() -> None:
    scene = Scene()
    first = scene.world.client("a").connection.session
    second = scene.restart().client("a").connection.session
    assert first is not None and second is not None
    assert first.number != second.number


def test_shared_subscriptions_and_their_waiting_messages() -> None:
    scene = Scene()
    scene.world.durable("a", expiry_s=100).subscribe("$share/g/t", qos=1)
    scene.world.clients[0].drop()
    scene.world.client("p").publish("t", b"1", qos=1)
    world = scene.restart(downtime=10)
    world.durable("b").subscribe("$share/g/t", qos=1)
    world.advance(100)
    # the first member never came back: another one takes what waited for it ([MQTT-4.8.2-5])
    assert payloads(world.clients[-1].messages()) == [b"1"]


def test_an_heir_gets_a_message_that_the_store_had_forgotten() -> None:
    scene = Scene()
    kept, transient, publisher = scene.world.durable("kept"), scene.world.client("transient"), scene.world.client("p")
    kept.subscribe("t", qos=1)
    transient.subscribe("$share/g/t", qos=1)
    transient.stall()
    publisher.publish("t", b"1", qos=1)
    kept.acknowledge(kept.expect(Publish))
    assert not scene.store.model.messages
    scene.world.durable("heir").subscribe("$share/g/t", qos=1)
    scene.world.clients[-1].drop()
    transient.drop()
    assert payloads(scene.restart().durable("heir").messages()) == [b"1"]


def test_what_was_discarded_does_not_come_back() -> None:
    scene = Scene(full="oldest", queue_messages=3)
    scene.world.durable("a").subscribe("t", qos=1)
    scene.world.clients[0].drop()
    for number in range(6):
        scene.world.client("p").publish("t", b"%d" % number, qos=1)
    assert payloads(scene.restart().durable("a").messages()) == [b"3", b"4", b"5"]


@pytest.mark.parametrize("filter_", ["r/#", "$where/v >= 0/r/#"])
@pytest.mark.parametrize("qos", [0, 1])
def test_a_subscription_gets_the_rest_of_what_was_retained(filter_: str, qos: int, monkeypatch: Any) -> None:
    monkeypatch.setattr(replay, "PORTION", 10)
    scene = Scene()
    for number in range(35):
        scene.world.client("p").publish(f"r/{number}", b'{"v": %d}' % number, qos=1, retain=True)
    client = scene.world.durable("a")
    client.stall()
    client.send(Subscribe(packet_id=1, subscriptions=(Subscription(filter=filter_, qos=qos),)))
    client.drop()
    assert [row[2] & facts.REPLAYING for row in scene.store.model.subscriptions.values()] == [facts.REPLAYING]
    for _ in range(2):
        scene.restart()
    client = scene.world.durable("a")
    found: set[bytes] = set()
    while messages := client.messages():
        for message in messages:
            assert message.retain
            found.add(message.payload)
            client.acknowledge(message)
    assert found == {b'{"v": %d}' % number for number in range(35)}
    assert not any(row[2] & facts.REPLAYING for row in scene.store.model.subscriptions.values()), "it is at its end"
    scene.restart()
    scene.world.durable("a").expect_nothing()


def test_a_condition_that_is_no_longer_understood_is_not_left_out() -> None:
    scene = Scene()
    scene.world.durable("a").subscribe("t", qos=1, user_property=[("$where", "v > 5")])
    key, row = next(iter(scene.store.model.subscriptions.items()))
    scene.store.model.subscriptions[key] = (*row[:4], ("v >",))
    world = scene.restart()
    assert not world.broker.routes.count, "a client gets nothing rather than what it did not ask for"
    assert not scene.store.model.subscriptions


@given(
    story=st.lists(
        st.tuples(
            st.sampled_from(["publish", "publish", "connect", "drop", "take", "take", "release", "crash"]),
            st.integers(0, 2),
            st.integers(1, 2),
        ),
        max_size=60,
    )
)
def test_nothing_is_lost_or_doubled_whenever_the_broker_dies(story: list[tuple[str, int, int]]) -> None:
    scene = Scene()
    names = ("a", "b", "c")
    clients = {name: scene.world.durable(name) for name in names}
    received: dict[str, list[tuple[int, int]]] = {name: [] for name in names}
    held: dict[str, set[int]] = {name: set() for name in names}
    for name in names:
        clients[name].subscribe("t", qos=2)
    sent: dict[int, int] = {1: 0, 2: 0}

    def take(name: str) -> None:
        """Everything that came, answered; QoS 2 counts once per packet id until it is released."""
        client = clients[name]
        for packet in client.take():
            if isinstance(packet, Publish):
                qos, number = map(int, packet.payload.split())
                if packet.qos == 1 or packet.packet_id not in held[name]:
                    received[name].append((qos, number))
                if packet.qos == 2:
                    held[name].add(packet.packet_id)
                    client.send(Pubrec(packet_id=packet.packet_id))
                else:
                    client.acknowledge(packet)
            elif isinstance(packet, Pubrel):
                held[name].discard(packet.packet_id)
                client.send(Pubcomp(packet_id=packet.packet_id))

    for what, who, qos in story:
        name = names[who]
        match what:
            case "publish":
                scene.world.client("p").publish("t", b"%d %d" % (qos, sent[qos]), qos=qos)
                sent[qos] += 1
            case "connect":
                clients[name] = scene.world.durable(name)
            case "drop":
                clients[name].drop()
            case "take" | "release":
                take(name)
            case "crash":
                scene.restart()
                clients = {name: scene.world.durable(name) for name in names}
    clients = {name: scene.world.durable(name) for name in names}
    for name in names:
        for _ in range(4):
            take(name)
        for qos, count in sent.items():
            numbers = [number for kind, number in received[name] if kind == qos]
            assert list(dict.fromkeys(numbers)) == list(range(count)), "all, in order"
            if qos == 2:
                assert len(numbers) == count, "once"
    assert not scene.store.model.queue
    assert not scene.store.model.inflight
