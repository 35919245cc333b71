"""A microgrid in virtual time: everything it says arrives, urgent things first where the line is thin, the same each
time."""

from __future__ import annotations

import pytest

from tests.kits.world import GENESIS
from tests.sim.microgrid.conftest import START_S, quiet
from tieline.conf.load import loads
from tieline.core.broker import Broker
from tieline.sim.clock import Clock
from tieline.sim.link import Way
from tieline.sim.microgrid import Fault, World
from tieline.sim.microgrid.messages import LEVELS
from tieline.sim.microgrid.played import PlayedWorld
from tieline.sim.network import VirtualNetwork
from tieline.sim.node import VirtualBroker
from tieline.sim.story import Story

pytest.importorskip("pyarrow", reason="the extra sim is not installed")

_SECONDS = 45.0
_CLASSES = "[mqtt]\nsys_interval_s = 0\n" + "".join(
    f'[[class]]\nname = "{kind}"\nfilter = "microgrid/+/+/{kind}"\nlevel = {level}\n' for kind, level in LEVELS.items()
)


@pytest.fixture(name="world", scope="module")
def _world() -> World:
    return quiet(script=(Fault(at_s=START_S + 20.4, node="R16"),))


def play(
    world: World, *, seed: int = 0, way: Way, control: Way | None = None
) -> tuple[PlayedWorld, list[tuple[float, str]], Story]:
    clock = Clock()
    story = Story(clock)
    network = VirtualNetwork(clock, seed=seed, usual=way, story=story)
    broker = VirtualBroker(clock, Broker(loads(_CLASSES, "grid.toml"), now=GENESIS))
    played = PlayedWorld(world, network, broker, duration_s=_SECONDS)
    listener = played.join("control-room", control)
    listener.subscribe("microgrid/#", qos=1)
    clock.run_for(_SECONDS + 120)
    return played, [(when - GENESIS, message.topic) for when, message in listener.messages], story


def test_everything_the_world_says_arrives(world: World) -> None:
    played, heard, story = play(world, way=Way(delay_s=0.01, loss=0.05, jitter_s=0.02))
    assert played.published["reading"] == len(world.nodes) * _SECONDS
    assert played.published["fault"] == 1 and played.published["protection"] >= 1
    assert len(heard) == sum(played.published.values())
    (fault,) = {topic for _, topic in heard if topic.endswith("/fault")}
    assert [entry.other for entry in story.about(fault)] == ["broker", "control-room"]


def test_a_seed_is_a_run(world: World) -> None:
    rough = Way(delay_s=0.01, loss=0.1, jitter_s=0.05)
    one, again, other = (play(world, seed=seed, way=rough)[1] for seed in (1, 1, 2))
    assert one == again != other


def test_urgent_messages_overtake_readings_on_a_thin_line(world: World) -> None:
    thin = Way(delay_s=0.01, rate=2_000)
    _played, heard, story = play(world, way=Way(delay_s=0.01), control=thin)
    sent = {
        entry.topic: entry.at for entry in story.all() if entry.topic.endswith("/fault") and entry.other == "broker"
    }
    urgent = [(when, topic) for when, topic in heard if topic in sent]
    (when, topic) = urgent[0]
    readings = [waited for waited in _waits(heard, story) if waited > 0]
    assert when - sent[topic] < 5.0 < max(readings)


def _waits(heard: list[tuple[float, str]], story: Story) -> list[float]:
    """How much later than at the broker the last reading of each topic came."""
    at_broker: dict[str, list[float]] = {}
    for entry in story.all():
        if entry.topic.endswith("/reading") and entry.other == "broker":
            at_broker.setdefault(entry.topic, []).append(entry.at)
    got: dict[str, list[float]] = {}
    for when, topic in heard:
        if topic.endswith("/reading"):
            got.setdefault(topic, []).append(when)
    return [came - left for topic, times in got.items() for left, came in zip(at_broker[topic], times, strict=False)]
