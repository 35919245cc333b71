from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tests.kits.examples import examples
from tests.kits.world import World, payloads
from tests.match.topics import filters, names
from tieline.core.account import Account, Drop
from tieline.core.broker import Broker
from tieline.core.durable.journal import Journal
from tieline.core.holdings import Holdings
from tieline.core.message import Message
from tieline.core.outbound.retained import Retained
from tieline.core.ports import Memory
from tieline.match.trees import tree_bytes
from tieline.wire.topics import matches


def nobody() -> Holdings:
    """An account without limits."""
    return Broker().holdings


def cost(topic: str, message: Message) -> int:
    return message.size + tree_bytes(topic)


class Budget(RuleBasedStateMachine):
    """Retained messages beside a dictionary, with a budget of messages and bytes, and time that passes."""

    kept: Retained

    @initialize(messages=st.integers(1, 6), size=st.sampled_from((1_000, 3_000, 100_000)))
    def begin(self, messages: int, size: int) -> None:
        self.kept = Retained(messages, size, nobody(), Journal(Memory()), Account())
        self.messages, self.size = messages, size
        self.model: dict[str, Message] = {}
        self.now = 0.0

    def expire(self) -> None:
        self.model = {
            topic: message
            for topic, message in self.model.items()
            if message.expires is None or message.expires > self.now
        }

    @rule(topic=names, size=st.sampled_from((0, 10, 2_000)), expiry=st.none() | st.integers(0, 5))
    def put(self, topic: str, size: int, expiry: int | None) -> None:
        self.expire()
        message = Message(topic.encode(), bytes(size), expires=None if expiry is None else self.now + expiry)
        others = {name: other for name, other in self.model.items() if name != topic}
        total = sum(cost(name, other) for name, other in others.items()) + cost(topic, message)
        fits = total <= self.size and len(others) < self.messages
        assert self.kept.put(topic, message, self.now) == fits
        if fits:
            self.model[topic] = message

    @rule(topic=names)
    def remove(self, topic: str) -> None:
        self.kept.remove(topic)
        self.model.pop(topic, None)

    @rule(seconds=st.integers(0, 4))
    def wait(self, seconds: int) -> None:
        self.now += seconds
        self.kept.expire(self.now)
        self.expire()

    @rule(filter_=filters)
    def match(self, filter_: str) -> None:
        wanted = sorted(topic for topic in self.model if matches(filter_, topic))
        assert sorted(message.topic.decode() for message in self.kept.match(filter_) if message) == wanted

    @invariant()
    def the_budget_is_kept(self) -> None:
        if not hasattr(self, "kept"):
            return
        assert len(self.kept) == len(self.model) <= self.messages
        assert self.kept.bytes == sum(cost(topic, message) for topic, message in self.model.items()) <= self.size
        for topic, message in self.model.items():
            assert self.kept.get(topic) is message


TestBudget = Budget.TestCase
TestBudget.settings = examples(60, stateful_step_count=50)


def test_without_room_the_message_is_delivered_but_not_kept_and_the_old_one_goes() -> None:
    world = World(retained_bytes=2_000)
    subscriber, publisher = world.client("s"), world.client("p")
    subscriber.subscribe("#")
    publisher.publish("t", b"small", retain=True)
    publisher.publish("t", bytes(3_000), retain=True)
    assert [len(payload) for payload in payloads(subscriber.messages())] == [5, 3_000]
    late = world.client("late")
    late.subscribe("#")
    assert late.messages() == [], "the old value is no longer the last one"
    assert world.broker.account.drops[Drop.RETAINED_FULL] == 1
    assert len(world.broker.retained) == world.broker.retained.bytes == 0


def test_the_number_of_retained_messages_is_bounded() -> None:
    world = World(retained_messages=10)
    publisher = world.client("p")
    for number in range(25):
        publisher.publish(f"t/{number}", b"x", retain=True)
    assert len(world.broker.retained) == 10
    assert world.broker.account.drops[Drop.RETAINED_FULL] == 15
    publisher.publish("t/3", b"new", retain=True)
    late = world.client("late")
    late.subscribe("t/3")
    assert payloads(late.messages()) == [b"new"], "a topic that has a place keeps it"


def test_expired_messages_make_room() -> None:
    world = World(retained_messages=5)
    publisher = world.client("p")
    for number in range(5):
        publisher.publish(f"t/{number}", b"old", retain=True, message_expiry_interval=10)
    world.advance(10)
    for number in range(5):
        publisher.publish(f"u/{number}", b"new", retain=True)
    assert len(world.broker.retained) == 5
    assert Drop.RETAINED_FULL not in world.broker.account.drops


def test_replacing_a_message_with_an_expiry_for_ever_leaves_nothing_behind() -> None:
    kept = Retained(10, 1_000_000, nobody(), Journal(Memory()), Account())
    for number in range(20_000):
        assert kept.put("t", Message(b"t", b"x", expires=1_000_000.0 + number), 0.0)
    assert len(kept._expiries) < 3_000
    kept.expire(2_000_000.0)
    assert len(kept) == kept.bytes == 0


def test_an_expiry_that_was_taken_back_is_not_applied() -> None:
    kept = Retained(10, 1_000_000, nobody(), Journal(Memory()), Account())
    kept.put("t", Message(b"t", b"x", expires=5.0), 0.0)
    kept.put("t", Message(b"t", b"y"), 1.0)
    kept.expire(10.0)
    assert len(kept) == 1


def test_a_deep_topic_is_charged_for_its_place_in_the_tree() -> None:
    kept = Retained(1_000_000, 1_000_000, nobody(), Journal(Memory()), Account())
    topic = "/".join("a" * 128)
    accepted = 0
    while kept.put(f"{accepted}/{topic[:-2]}", Message(b"t", b"x"), 0.0):
        accepted += 1
    assert accepted < 50, "128 nodes take some 30 kB"


def test_many_that_expire_together_are_freed_in_portions() -> None:
    kept = Retained(100_000, 1_000_000_000, nobody(), Journal(Memory()), Account())
    for number in range(50_000):
        kept.put(f"t/{number}", Message(b"t", b"x", expires=10.0), 0.0)
    kept.put("u", Message(b"u", b"x"), 20.0)
    assert len(kept) > 25_000, "one message does not pay for all of them"
    for number in range(1_000):
        kept.put("u", Message(b"u", b"%d" % number), 20.0)
    assert len(kept) == 1


def test_expiries_of_messages_that_are_gone_are_swept() -> None:
    kept = Retained(10, 1_000_000, nobody(), Journal(Memory()), Account())
    kept.put("stays", Message(b"stays", b"x", expires=500.0), 0.0)
    for number in range(5_000):
        kept.put("t", Message(b"t", b"x", expires=1_000.0 + number), 0.0)
        kept.remove("t")
    assert len(kept._expiries) < 2_000
    kept.expire(500.0)
    assert len(kept) == 0
