"""A whole broker in virtual time: a thin link, time limits to the moment, sessions across cuts, hours in a second."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random
from time import process_time
from typing import Any

import pytest

from tests.kits.invariants import check
from tests.kits.world import configured
from tieline.core.broker import Broker
from tieline.sim.client import Client
from tieline.sim.clock import GENESIS, Clock
from tieline.sim.endpoint import Endpoint
from tieline.sim.link import Split, Way
from tieline.sim.node import VirtualBroker
from tieline.wire.packets import Disconnect, Publish, Will
from tieline.wire.reason import Reason

#: 128 kbit/s, and a quarter of a second to the other end: times that are exact in binary.
THIN = Way(rate=16_000, delay_s=0.25)
FAR = Way(delay_s=0.25)
URGENT: dict[str, Any] = {"user_property": [("priority", "3")]}
BULK = 300
ROOT = Path(__file__).parents[2]


def chance(seed: int) -> Split:
    random = Random(seed)
    return lambda most: random.randint(1, most)


class Scene:
    """A broker, and somebody who listens at every line that leads from it to a client."""

    def __init__(self, **options: Any) -> None:
        self.clock = Clock()
        self.node = VirtualBroker(self.clock, Broker(configured(**options), now=self.clock.now))
        #: Who got which bytes when.
        self.story: list[tuple[str, float, bytes]] = []

    def dial(self, name: str, there: Way = FAR, back: Way = FAR, split: Split | None = None) -> Endpoint:
        end = self.node.dial(there, back, split=split)
        end.into.tap = lambda now, data: self.story.append((name, now, data))
        return end

    def client(self, name: str, *filters: str, qos: int = 0, back: Way = FAR, split: Split | None = None) -> Client:
        client = Client(self.clock, name)
        client.connect(self.dial(name, FAR, back, split))
        if filters:
            client.subscribe(*filters, qos=qos)
        self.clock.run_for(2)
        assert client.is_connected
        return client


def tell_of_bulk_and_an_alarm(qos: int, seed: int | None = None) -> tuple[Scene, Client, float]:
    """Bulk fills a thin link for minutes; in the middle of it comes an alarm."""
    scene = Scene(queue_messages=10_000, inflight=65_535)
    split = None if seed is None else chance(seed)
    subscriber = scene.client("subscriber", "#", qos=qos, back=THIN, split=split)
    publisher = scene.client("publisher", split=split)
    for number in range(BULK):
        publisher.publish("bulk", b"%01000d" % number, qos=qos)
    scene.clock.run_for(10)
    sent_at = scene.clock.now
    publisher.publish("alarm", b"!", qos=qos, **URGENT)
    (path,) = [conn.path for conn in scene.node.broker.connections if conn.client_id == "subscriber"]
    assert path.rate == pytest.approx(16_000, rel=0.1) and path.rtt_s == 0.5, "the core knows the line"
    scene.clock.run_for(60)
    check(scene.node.broker)
    return scene, subscriber, sent_at


@pytest.mark.parametrize("seed", [None, 1])
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_an_urgent_message_overtakes_the_bulk_on_a_thin_link(qos: int, seed: int | None) -> None:
    scene, subscriber, sent_at = tell_of_bulk_and_an_alarm(qos, seed)
    numbers = [int(message.payload) for _, message in subscriber.messages if message.topic == "bulk"]
    assert numbers == list(range(BULK)), "everything arrives, once and in order"
    ((arrived_at, _),) = [one for one in subscriber.messages if one[1].topic == "alarm"]
    bulk_before = sum(at < arrived_at for at, _ in subscriber.messages)
    assert BULK / 4 < bulk_before < BULK * 3 / 4, "it came in the middle of the bulk"
    # the way to the broker and the way on, what the kernel may hold, and two packets of bulk
    bound_s = 0.25 + 0.25 + (1.25 * 16_000 * 0.5 + 4_096 + 2 * 1_024) / 16_000
    assert arrived_at - sent_at <= bound_s
    busy_s = subscriber.messages[-1][0] - subscriber.messages[0][0]
    assert BULK * 1_000 / busy_s > 0.9 * 16_000, "and the link was hardly ever idle"
    assert not scene.node.broker.account.drops


def digest(seed: int) -> str:
    """The whole story of a scene, bytes and times."""
    told = hashlib.sha256()
    for qos in (0, 2):
        scene, _, _ = tell_of_bulk_and_an_alarm(qos, seed)
        scene.node.broker.stop(scene.clock.now)
        scene.node.poke()
        scene.clock.run_for(5)
        for line in scene.story:
            told.update(repr(line).encode())
    return told.hexdigest()


def test_the_same_seed_tells_the_same_story_byte_for_byte() -> None:
    first = digest(7)
    assert digest(7) == first
    assert digest(8) != first
    code = "from tests.sim.test_virtual_time import digest; print(digest(7))"
    for hash_seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment, cwd=ROOT
        )
        assert done.stdout.strip() == first, "in another process, too"


def test_silence_ends_a_connection_at_one_and_a_half_keep_alives_and_the_will_follows_after_its_delay() -> None:
    scene = Scene()
    watcher = scene.client("watcher", "gone/#")
    silent = Client(scene.clock, "silent")
    will = Will(topic="gone/silent", payload=b"!", properties={"will_delay_interval": 5})
    silent.connect(scene.dial("silent"), keep_alive=10, pings=False, will=will, session_expiry_interval=60)
    began = scene.clock.now
    scene.clock.run_for(60)
    heard_at = began + 0.25
    assert silent.heard[-1].at == heard_at + 15 + 0.25
    told = silent.heard[-1].packet
    assert isinstance(told, Disconnect) and told.reason is Reason.KEEP_ALIVE_TIMEOUT
    assert [(at, message.payload) for at, message in watcher.messages] == [(heard_at + 15 + 5 + 0.25, b"!")]


def test_a_client_that_pings_stays_and_one_behind_a_silent_line_does_not() -> None:
    scene = Scene()
    watcher = scene.client("watcher", "gone")
    client = Client(scene.clock, "client")
    end = scene.dial("client")
    client.connect(end, keep_alive=10, will=Will(topic="gone", payload=b""))
    scene.clock.run_until(GENESIS + 3_600)
    assert client.is_connected and not watcher.messages
    end.out.fall_silent()
    cut_at = scene.clock.now
    scene.clock.run_for(60)
    ((gone_at, _),) = watcher.messages
    assert 5 <= gone_at - cut_at <= 15.25, "one and a half intervals after the last ping"
    assert not client.is_connected


def test_a_cut_that_nobody_notices_costs_nothing_but_time() -> None:
    scene = Scene()
    subscriber = Client(scene.clock, "s")
    end = scene.dial("s")
    subscriber.connect(end, keep_alive=30)
    subscriber.subscribe("#")
    publisher = scene.client("p")
    end.into.fall_silent()
    for number in range(100):
        publisher.publish("t", b"%d" % number)
        scene.clock.run_for(0.1)
    assert not subscriber.messages
    end.into.speak()
    scene.clock.run_for(1)
    assert [int(message.payload) for _, message in subscriber.messages] == list(range(100))
    assert not scene.node.broker.account.closed


def cut_while_messages_travel(qos: int, seed: int) -> tuple[Client, Client, int]:
    """Both clients lose their connections again and again, at times of chance, and come back to their sessions."""
    scene = Scene(queue_messages=10_000)
    random = Random(seed)
    clock = scene.clock
    subscriber, publisher = Client(clock, "s"), Client(clock, "p")
    count = 200

    def keep(client: Client, back: Way) -> Callable[[float], None]:
        def connect(now: float) -> None:
            end = scene.dial(client.client_id, FAR, back, chance(random.randrange(100)))
            client.connect(end, clean_start=False, session_expiry_interval=3_600)

        def come_back(now: float) -> None:
            clock.after(random.choice((0.0, 0.1, 2.0)), connect)

        client.on_end = come_back
        return connect

    keep(subscriber, THIN)(clock.now)
    subscriber.subscribe("#", qos=qos)
    keep(publisher, FAR)(clock.now)
    clock.run_for(2)
    for number in range(count):
        clock.after(number * 0.05, lambda now, number=number: publisher.publish("t", b"%0600d" % number, qos=qos))  # type: ignore[misc]
    for _ in range(10):
        clock.run_for(random.uniform(0.2, 2.0))
        random.choice((subscriber, publisher)).drop()
        check(scene.node.broker)
    clock.run_for(120)
    assert subscriber.is_connected and publisher.is_connected
    assert publisher.is_idle
    assert not scene.node.broker.sessions["s"].inflight
    assert not scene.node.broker.sessions["p"].inbound
    return subscriber, publisher, count


@pytest.mark.parametrize("seed", range(10))
def test_a_session_that_resumes_after_a_cut_gets_qos_2_once_and_in_order(seed: int) -> None:
    subscriber, _, count = cut_while_messages_travel(2, seed)
    assert subscriber.is_resumed
    assert [int(message.payload) for _, message in subscriber.messages] == list(range(count))


@pytest.mark.parametrize("seed", range(10))
def test_a_session_that_resumes_after_a_cut_gets_qos_1_at_least_once_and_first_in_order(seed: int) -> None:
    subscriber, _, count = cut_while_messages_travel(1, seed)
    numbers = [int(message.payload) for _, message in subscriber.messages]
    assert list(dict.fromkeys(numbers)) == list(range(count)), "the first of each in order"
    packets = [heard.packet for heard in subscriber.heard if isinstance(heard.packet, Publish)]
    assert any(packet.dup for packet in packets), "some were sent again"


def test_hours_pass_in_a_second() -> None:
    """Twenty clients ping, measure and listen for six hours."""
    began = process_time()
    scene = Scene()
    clock = scene.clock
    watcher = scene.client("watcher", "meter/+")
    clients = [Client(clock, f"{number}") for number in range(20)]
    sent = 0

    def measure(now: float) -> None:
        nonlocal sent
        for client in clients:
            client.publish(f"meter/{client.client_id}", b"230.1")
            sent += 1
        clock.after(60, measure)

    for client in clients:
        client.connect(scene.node.dial(FAR, FAR), keep_alive=300)
    clock.after(1, measure)
    clock.run_for(6 * 3_600)
    assert sent == 7_200
    assert len(watcher.messages) == sent
    assert all(client.is_connected for client in clients)
    assert {at - GENESIS for at, _ in watcher.messages} == {2 + 1 + 60.0 * minute + 0.5 for minute in range(360)}
    assert process_time() - began < 5, "about half a second where nothing else is going on"
