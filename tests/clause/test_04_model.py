"""Chapter 4 as a whole: any conversation against a model that is too simple to be wrong.

A script is a list of turns; in a turn one client sends a few packets.  It is played in three worlds: packet by packet,
byte by byte, and with all packets of a turn in one chunk, which is what takes the broker's short cuts.  In each of them
every client receives exactly what brute force over all subscriptions says, in order.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.clause.marker import clause
from tests.kits.world import Client, World
from tieline.wire.encode import encode
from tieline.wire.packets import Packet, Publish, Pubrec, Pubrel, Subscribe, Subscription, Unsubscribe
from tieline.wire.topics import matches

NAMES = ("one", "two", "three")
TOPICS = ("a", "a/b", "b", "$x/a")
FILTERS = ("a", "a/#", "+/b", "#", "b", "$x/+")

publishing = st.builds(
    Publish,
    topic=st.sampled_from(TOPICS),
    payload=st.sampled_from([b"", b"1", b"22", bytes(200)]),
    qos=st.integers(0, 2),
    retain=st.sampled_from([False, False, True]),
)
#: Packets of one shape, back to back: what the broker handles in one go.
plain = st.builds(
    Publish, topic=st.sampled_from(("a", "b")), payload=st.sampled_from([b"1", b"2", b"22"]), qos=st.integers(0, 1)
)
subscribing = st.builds(
    Subscription,
    filter=st.sampled_from(FILTERS),
    qos=st.integers(0, 2),
    no_local=st.booleans(),
    retain_as_published=st.booleans(),
    retain_handling=st.integers(0, 2),
)
leaving = st.just("drop")
actions = st.one_of(
    st.lists(publishing, min_size=1, max_size=6),
    st.lists(plain, min_size=2, max_size=6),
    subscribing,
    st.sampled_from(FILTERS),
    leaving,
)
scripts = st.lists(st.tuples(st.sampled_from(NAMES), actions), max_size=25)
versions = st.fixed_dictionaries({name: st.sampled_from([4, 5]) for name in NAMES})

Turn = tuple[str, list[Publish] | Subscription | str]
#: What a client is to receive: topic, payload, QoS and retain flag.
Seen = tuple[str, bytes, int, bool]


@dataclass
class Model:
    """Every subscription and every retained message in plain dictionaries."""

    versions: dict[str, int]
    subscriptions: dict[str, dict[str, Subscription]] = field(default_factory=lambda: {name: {} for name in NAMES})
    #: The last retained message of each topic, with its sender.
    retained: dict[str, tuple[str, Publish]] = field(default_factory=dict)
    away: set[str] = field(default_factory=set)
    expected: defaultdict[str, list[Seen]] = field(default_factory=lambda: defaultdict(list))

    def publish(self, sender: str, message: Publish) -> None:
        if message.retain:
            self.retained.pop(message.topic, None)
            if message.payload:
                self.retained[message.topic] = (sender, message)
        for name, held in self.subscriptions.items():
            matching = [
                one
                for one in held.values()
                if matches(one.filter, message.topic) and not (one.no_local and name == sender)
            ]
            if matching:
                qos = min(message.qos, max(one.qos for one in matching))
                keeps = any(one.retain_as_published for one in matching)
                if qos or name not in self.away:
                    self.expected[name].append((message.topic, message.payload, qos, message.retain and keeps))

    def subscribe(self, name: str, wish: Subscription) -> list[Seen]:
        """Add a subscription; the retained messages that it is to bring, in any order."""
        is_new = wish.filter not in self.subscriptions[name]
        if self.versions[name] == 4:  # which has no options but the QoS
            wish = Subscription(filter=wish.filter, qos=wish.qos)
        self.subscriptions[name][wish.filter] = wish
        if wish.retain_handling == 2 or (wish.retain_handling == 1 and not is_new):
            return []
        return [
            (one.topic, one.payload, min(one.qos, wish.qos), True)
            for sender, one in self.retained.values()
            if matches(wish.filter, one.topic) and not (wish.no_local and sender == name)
        ]


class Stage:
    """Plays a script in one world and compares with the model after every turn."""

    def __init__(self, way: str, versions: dict[str, int]) -> None:
        self.is_joined = way == "joined"
        self.world = World(split=way == "split")
        self.model = Model(versions)
        self.clients = {name: self.connect(name) for name in NAMES}
        self.next_id = 0
        for topic in TOPICS:  # the broker takes the short cut only for topics it has met
            self.clients["one"].put(topic)

    def connect(self, name: str) -> Client:
        return self.world.durable(name, version=self.model.versions[name])

    def play(self, turn: Turn) -> None:
        name, action = turn
        if name in self.model.away:
            self.clients[name] = self.connect(name)
            self.model.away.discard(name)
        client = self.clients[name]
        if action == "drop":
            client.drop()
            self.model.away.add(name)
        elif isinstance(action, str):
            self.model.subscriptions[name].pop(action, None)
            client.send(Unsubscribe(packet_id=self.free_id(), filters=(action,)))
        elif isinstance(action, Subscription):
            extra = self.model.subscribe(name, action)
            client.send(Subscribe(packet_id=self.free_id(), subscriptions=(action,)))
            self.look(name, extra)
        else:
            for message in action:
                self.model.publish(name, message)
            self.send(client, action)
        for other in NAMES:
            if other not in self.model.away:
                self.look(other, [])

    def send(self, client: Client, messages: list[Publish]) -> None:
        packets: list[Packet] = []
        for message in messages:
            packet_id = self.free_id() if message.qos else 0
            packets.append(
                Publish(
                    topic=message.topic,
                    payload=message.payload,
                    qos=message.qos,
                    retain=message.retain,
                    packet_id=packet_id,
                )
            )
            if message.qos == 2:
                packets.append(Pubrel(packet_id=packet_id))
        if self.is_joined:
            client.send(b"".join(encode(packet, client.version) for packet in packets))
        else:
            for packet in packets:
                client.send(packet)

    def look(self, name: str, extra: list[Seen]) -> None:
        """Acknowledge and compare what came: per QoS in order, as far as MQTT promises one."""
        client = self.clients[name]
        received: list[Seen] = []
        while client.inbox:
            for packet in client.take():
                if isinstance(packet, Publish):
                    received.append((packet.topic, packet.payload, packet.qos, packet.retain))
                    client.acknowledge(packet)
                else:
                    assert not isinstance(packet, Pubrec) or packet.reason < 0x80
        expected = self.model.expected.pop(name, [])
        if extra:
            assert sorted(received) == sorted(expected + extra)
        else:
            for qos in range(3):
                assert [one for one in received if one[2] == qos] == [one for one in expected if one[2] == qos]

    def free_id(self) -> int:
        self.next_id += 1
        return self.next_id


@clause("MQTT-3.3.2-3", "MQTT-3.3.4-2", "MQTT-3.8.3-3", "MQTT-3.8.4-8", "MQTT-4.5.0-1", "MQTT-4.6.0-5", "MQTT-4.6.0-6")
@clause("MQTT311-3.3.2-3", "MQTT311-3.3.5-1", "MQTT311-3.8.4-6", "MQTT311-4.5.0-1", "MQTT311-4.6.0-6")
@pytest.mark.parametrize("way", ["whole", "split", "joined"])
@given(script=scripts, versions=versions)
def test_every_client_receives_exactly_what_brute_force_says(
    way: str, script: list[Turn], versions: dict[str, int]
) -> None:
    stage = Stage(way, versions)
    for turn in script:
        stage.play(turn)
    for name in sorted(stage.model.away):
        stage.clients[name] = stage.connect(name)
        stage.look(name, [])
