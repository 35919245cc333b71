"""A network of virtual lines: loss and reordering are delay, partitions are silence, and a seed is the whole of
chance."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from tests.kits.world import GENESIS, configured
from tieline.core.broker import Broker
from tieline.sim.client import Client
from tieline.sim.clock import Clock
from tieline.sim.link import Way
from tieline.sim.network import VirtualNetwork
from tieline.sim.node import VirtualBroker
from tieline.sim.story import Story

ROUGH = Way(delay_s=0.02, rate=50_000, loss=0.2, jitter_s=0.05, segment=500)


class Scene:
    """A broker, a publisher and a subscriber, each over a line of its own."""

    def __init__(self, *, seed: int = 0, way: Way = ROUGH, version: int = 5) -> None:
        self.clock = Clock()
        self.story = Story(self.clock)
        self.network = VirtualNetwork(self.clock, seed=seed, usual=way, story=self.story)
        self.broker = VirtualBroker(self.clock, Broker(configured(), now=GENESIS))
        self.publisher, self.subscriber = (self.client(name, version) for name in ("meter", "control"))
        self.subscriber.subscribe("#", qos=1)
        self.clock.run_for(60)

    def client(self, name: str, version: int) -> Client:
        client = Client(self.clock, name, version=version)
        ours, theirs = self.network.connect(name, "hill")
        self.broker.accept(theirs)
        client.connect(ours)
        return client

    def arrivals(self) -> list[tuple[float, bytes]]:
        return [(when, bytes(message.payload)) for when, message in self.subscriber.messages]


def publish(client: Client, payload: bytes, _now: float) -> None:
    client.publish("a/b", payload, 1)


def crossed(seed: int, *, way: Way = ROUGH) -> Scene:
    scene = Scene(seed=seed, way=way)
    for number in range(40):
        payload = b"%03d" % number * 100
        scene.clock.after(0.05 * number, partial(publish, scene.publisher, payload))
    scene.clock.run_for(300)
    return scene


def test_everything_arrives_once_and_in_order_over_a_rough_line() -> None:
    scene = crossed(1)
    assert [payload[:3] for _, payload in scene.arrivals()] == [b"%03d" % number for number in range(40)]
    assert scene.network.retried > 5
    overtaken = sum(line.end.out.overtaken + line.end.into.overtaken for line in scene.network._lines)
    assert overtaken > 5


def test_the_same_seed_is_the_same_run_and_another_one_another() -> None:
    runs = [crossed(seed).arrivals() for seed in (3, 3, 4)]
    assert runs[0] == runs[1] != runs[2]
    assert [payload for _, payload in runs[0]] == [payload for _, payload in runs[2]]


def test_another_node_does_not_change_the_luck_of_the_others() -> None:
    alone, beside = Clock(), Clock()
    networks = [VirtualNetwork(clock, seed=5, usual=ROUGH) for clock in (alone, beside)]
    networks[1].connect("late", "hill")
    ends = [network.connect("meter", "hill") for network in networks]
    for (ours, _theirs), network in zip(ends, networks, strict=True):
        ours.write(bytes(20_000))
        network.clock.run_for(60)
    assert ends[0][1].into.retried == ends[1][1].into.retried > 0


def test_loss_costs_time() -> None:
    def took(way: Way) -> float:
        return crossed(1, way=way).arrivals()[-1][0]

    assert took(Way(delay_s=0.02, rate=50_000)) + 0.2 < took(Way(delay_s=0.02, rate=50_000, loss=0.3))


def test_a_line_that_loses_everything_breaks_the_connection() -> None:
    clock = Clock()
    network = VirtualNetwork(clock, usual=Way(loss=0.999_999))
    ours, theirs = network.connect("a", "b")
    ours.write(b"hello")
    clock.run_for(20_000)
    assert theirs.is_broken and not theirs.read(10)


def test_a_partition_is_silence_until_it_heals() -> None:
    scene = Scene(way=Way(delay_s=0.01))
    scene.network.partition(["meter"], ["hill", "control"])
    scene.publisher.publish("a/b", b"late", 1)
    scene.clock.run_for(30)
    assert scene.arrivals() == []
    stranger = scene.client("stranger", 5)
    scene.clock.run_for(5)
    assert len(stranger.heard) == 0, "who is in no group does not reach those who are in one"
    scene.network.heal()
    scene.clock.run_for(30)
    assert [payload for _, payload in scene.arrivals()] == [b"late"]
    assert scene.publisher.is_idle
    assert stranger.is_connected, "it connected while nothing got through, and what it said was sent again"


def test_a_way_may_become_another_one_while_it_is_used() -> None:
    scene = Scene(way=Way(delay_s=0.01))
    scene.network.way("meter", "hill", Way(delay_s=5.0))
    scene.publisher.publish("a/b", b"slow", 1)
    scene.clock.run_for(4)
    assert scene.arrivals() == []
    scene.clock.run_for(4)
    assert [payload for _, payload in scene.arrivals()] == [b"slow"]


@pytest.mark.parametrize("version", [4, 5])
def test_the_story_of_a_message_and_of_a_node(version: int) -> None:
    scene = Scene(way=Way(delay_s=0.25), version=version)
    for text in (b"one", b"two"):
        scene.publisher.publish("a/b", text, 1)
    scene.clock.run_for(5)
    one = list(scene.story.about("a/b", b"one"))
    assert [(entry.node, entry.other) for entry in one] == [("meter", "hill"), ("hill", "control")]
    assert one[1].at == pytest.approx(one[0].at + 0.25)
    assert str(one[0]).endswith("meter → hill: PUBLISH a/b, QoS 1, 3 bytes")
    assert len(list(scene.story.about("a/b"))) == 4
    told = [entry.what for entry in scene.story.of("control")]
    assert told[:3] == ["connects", "CONNECT", "CONNACK"] and "SUBSCRIBE" in told and "PUBACK" in told
    scene.network.partition(["meter"])
    scene.publisher.drop()
    scene.network.heal()
    scene.clock.run_for(5)
    told = [entry.what for entry in scene.story.of("meter")]
    ends = ["is cut off, in group 1 of 1", "is joined again", "the connection is over"]
    places = [told.index(what) for what in ends]
    assert places == sorted(places)


def test_a_story_is_bounded_and_says_what_it_has_forgotten() -> None:
    story = Story(Clock(), most=3)
    for number in range(5):
        story.tell("a", str(number))
    assert [entry.what for entry in story.all()] == ["2", "3", "4"]
    assert (len(story), story.forgotten) == (3, 2)


def test_lines_that_do_not_speak_mqtt_are_counted_in_bytes() -> None:
    clock = Clock()
    story = Story(clock)
    ours, _theirs = VirtualNetwork(clock, story=story).connect("a", "b")
    ours.write(b"\x00\xff\xff\xff\xff\xff")
    ours.finish()
    clock.run_for(1)
    assert [entry.what for entry in story.of("b")] == ["connects", "6 bytes", "the connection is over"]


def test_progress_is_told_a_hundred_times_at_most() -> None:
    clock = Clock()

    def every(_now: float) -> None:
        clock.after(0.01, every)

    every(0.0)
    told: list[float] = []
    clock.run_for(10, told.append)
    assert told == sorted(set(told)) and len(told) == 100 and told[-1] == 1.0
    quiet: list[float] = []
    Clock().run_for(10, quiet.append)
    assert quiet == [1.0]


@pytest.mark.parametrize("wrong", [{"loss": 1.0}, {"loss": -0.1}, {"retry_s": 0.0}, {"jitter_s": -1.0}])
def test_ways_that_cannot_be_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="may be lost"):
        Way(**wrong)
