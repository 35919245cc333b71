"""The client keeps its half of the protocol, over connections that come and go."""

from __future__ import annotations

import pytest

from tests.kits.world import GENESIS, configured
from tieline.core.broker import Broker
from tieline.sim.client import Client
from tieline.sim.clock import Clock
from tieline.sim.link import Way
from tieline.sim.node import VirtualBroker
from tieline.wire.packets import Disconnect, Pingresp, Publish
from tieline.wire.reason import Reason


@pytest.fixture
def node() -> VirtualBroker:
    return VirtualBroker(Clock(), Broker(configured(receive_maximum=3, topic_alias_maximum=5), now=GENESIS))


@pytest.mark.parametrize("version", [4, 5])
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_a_conversation(node: VirtualBroker, version: int, qos: int) -> None:
    clock = node.clock
    client = Client(clock, "c", version=version)
    answered: list[bytes] = []

    def answer(message: Publish, now: float) -> None:
        answered.append(message.payload)
        if message.topic == "question":
            client.publish("answer", b"yes", qos=qos)

    client.on_message = answer
    client.subscribe("#", qos=qos)
    client.publish("question", b"?", qos=qos)
    assert not client.is_idle or qos == 0, "it waits for a connection"
    client.connect(node.dial())
    clock.run_for(1)
    if qos == 0:
        client.publish("question", b"?")
        clock.run_for(1)
    assert answered == [b"?", b"yes"]
    assert client.is_idle
    assert not client.is_resumed
    client.unsubscribe("#")
    client.publish("question", b"?", qos=qos)
    clock.run_for(1)
    kinds = [type(heard.packet).__name__ for heard in client.heard]
    assert [kind for kind in kinds if "suback" in kind.lower()] == ["Suback", "Unsuback"]
    assert len(answered) == 2
    client.disconnect()
    clock.run_for(1)
    assert node.broker.account.closed == {"disconnect": 1}


def test_it_stays_within_the_broker_s_receive_maximum(node: VirtualBroker) -> None:
    client = Client(node.clock, "c")
    client.connect(node.dial(Way(delay_s=0.5), Way(delay_s=0.5)))
    node.clock.run_for(2)
    for number in range(10):
        client.publish("t", b"%d" % number, qos=2)
    node.clock.run_for(0.5)
    assert node.broker.account.publishes_in == 3
    node.clock.run_for(20)
    assert node.broker.account.publishes_in == 10
    assert client.is_idle
    assert not node.broker.account.closed


def test_aliases_of_the_broker_are_understood(node: VirtualBroker) -> None:
    subscriber, publisher = Client(node.clock, "s"), Client(node.clock, "p")
    subscriber.connect(node.dial(), topic_alias_maximum=5)
    publisher.connect(node.dial())
    subscriber.subscribe("#")
    node.clock.run_for(1)
    for _ in range(3):
        for topic in ("a/long/topic", "another"):
            publisher.publish(topic)
            node.clock.run_for(1)
    assert [message.topic for _, message in subscriber.messages] == ["a/long/topic", "another"] * 3
    raw = [heard.packet.properties for heard in subscriber.heard if isinstance(heard.packet, Publish)]
    assert any("topic_alias" in properties for properties in raw)


def test_it_pings_and_notices_when_no_answer_comes(node: VirtualBroker) -> None:
    clock = node.clock
    client = Client(clock, "c")
    ended: list[float] = []
    client.on_end = ended.append
    end = node.dial()
    client.connect(end, keep_alive=10)
    clock.run_until(GENESIS + 35)
    assert [heard.at - GENESIS for heard in client.heard if isinstance(heard.packet, Pingresp)] == [10, 20, 30]
    end.into.fall_silent()
    clock.run_for(100)
    assert ended == [GENESIS + 50], "the ping at 40 stays without an answer until the next is due"
    assert node.broker.account.closed == {"connection_lost": 1}


def test_a_broker_that_is_written_to_over_a_full_line_gets_everything(node: VirtualBroker) -> None:
    clock = node.clock
    subscriber, publisher = Client(clock, "s"), Client(clock, "p")
    subscriber.connect(node.dial())
    subscriber.subscribe("#")
    publisher.connect(node.dial(Way(rate=10_000, buffer=500)))
    clock.run_for(1)
    for number in range(50):
        publisher.publish("t", b"%0400d" % number)
    assert not publisher.is_idle
    clock.run_for(10)
    assert [int(message.payload) for _, message in subscriber.messages] == list(range(50))
    assert publisher.is_idle


def test_one_connection_at_a_time(node: VirtualBroker) -> None:
    client = Client(node.clock, "c")
    client.connect(node.dial())
    with pytest.raises(RuntimeError, match="has a connection"):
        client.connect(node.dial())


def test_a_client_that_is_away_forgets_qos_0_and_keeps_the_rest(node: VirtualBroker) -> None:
    subscriber, publisher = Client(node.clock, "s"), Client(node.clock, "p")
    subscriber.connect(node.dial())
    subscriber.subscribe("#", qos=2)
    node.clock.run_for(1)
    for qos in (0, 1, 2):
        publisher.publish("t", b"%d" % qos, qos=qos)
    publisher.connect(node.dial())
    node.clock.run_for(1)
    assert [message.payload for _, message in subscriber.messages] == [b"1", b"2"]


@pytest.mark.parametrize("qos", [1, 2])
def test_what_was_not_acknowledged_is_sent_again_and_says_so(node: VirtualBroker, qos: int) -> None:
    clock = node.clock
    subscriber, publisher = Client(clock, "s"), Client(clock, "p")
    subscriber.connect(node.dial())
    subscriber.subscribe("#", qos=2)
    sent: list[bytes] = []
    for _ in range(2):
        end = node.dial(back=Way(delay_s=1.0))
        end.out.tap = lambda now, data: sent.append(data)
        publisher.connect(end, clean_start=False, session_expiry_interval=60)
        clock.run_for(1)
        if not sent[1:]:
            publisher.publish("t", b"x", qos=qos)
            clock.run_for(0.5)
            publisher.drop()
    clock.run_for(5)
    assert publisher.is_idle
    firsts = [data[0] & 0xFE for data in sent if data and data[0] >> 4 == 3]
    assert firsts == [0x30 | qos << 1, 0x38 | qos << 1]
    assert len(subscriber.messages) == (2 if qos == 1 else 1)


def test_take_over_ends_the_older_connection(node: VirtualBroker) -> None:
    older, newer = Client(node.clock, "c"), Client(node.clock, "c")
    older.connect(node.dial())
    node.clock.run_for(1)
    newer.connect(node.dial())
    node.clock.run_for(1)
    assert newer.is_connected and not older.is_connected
    told = older.heard[-1].packet
    assert isinstance(told, Disconnect) and told.reason is Reason.SESSION_TAKEN_OVER
