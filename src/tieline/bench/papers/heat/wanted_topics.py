"""First paper, Figure 2: delay of the most wanted topics over the number of distributions, by policy.

Eight topics differ in how many clients subscribe to them, from eight down to one.  One of those clients, the upper
database, sits behind a blocked port and subscribes to all of them.  A burst of ``n`` messages, spread evenly over
the topics in a shuffled order, is published at once; the delay is that of the two most wanted topics at the port.

FIFO is mosquitto, and Tieline with ``policy = "fifo"``.  The heat that the paper prints is a count of the subscriptions
that arrive in a period, set to zero at its end.  It is given to a broker from outside, as ``tieline heat put`` does:
*printed* is the table of a period in which nobody had to subscribe again, *renewed* that of one in which every
subscriber did.  The taxonomy has three classes of importance by content; both
most wanted topics are in the highest, together with a third, so that the comparison does not favour heat.

Losses are counted in another burst, to a queue that holds a quarter of it: the share that is lost of the two topics
which each policy ranks lowest.

The blocked port is a subscriber that takes 128 kB a second, whatever is sent to it.  Real sockets, no root: its receive
buffer is small and it reads at a fixed rate, so TCP holds the broker back as a thin link would.
"""

from __future__ import annotations

import contextlib
import random
import socket
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from tieline.bench.brokers import Mosquitto, Tieline, known_peers
from tieline.bench.load.job import Endpoint
from tieline.bench.load.packets import NOTHING
from tieline.bench.papers.frame.declaration import Request
from tieline.bench.papers.frame.table import Cell, Table
from tieline.bench.peer import Instance, Peer
from tieline.bench.timed.nodes import (
    Reader,
    Receive,
    SlowReader,
    Timetable,
    Writer,
    clock,
    hang_up,
    open_node,
    subscribe,
)
from tieline.bench.timed.packets import Arrival, Flows

BYTES_PER_S = 128_000.0
_RECEIVE_BUFFER = 2_304
_SEGMENT = 536


def open_port(
    at: Endpoint,
    timetable: Timetable,
    name: str,
    filters: Sequence[str],
    receive: Receive,
    wishes: Mapping[str, str] = NOTHING,
) -> socket.socket:
    """A subscriber with a blocked port; ``wishes`` are the user properties of its SUBSCRIBE."""
    sock = open_node(at.host, at.port, name, receive_buffer=_RECEIVE_BUFFER, segment=_SEGMENT)
    subscribe(sock, filters, wishes)
    SlowReader(sock, timetable, receive, bytes_per_s=BYTES_PER_S)
    return sock


TOPICS = tuple(f"plant/{letter}" for letter in "abcdefgh")
#: The two topics with the most subscribers.
HIGH = TOPICS[:2]
#: Importance by content, as an operator might have it; the third entry of the first class is not much wanted.
TAXONOMY = {2: ("plant/a", "plant/b", "plant/f"), 1: ("plant/c", "plant/d", "plant/g"), 0: ("plant/e", "plant/h")}
#: The two topics that each policy ranks lowest.
LOW = {"heat": TOPICS[-2:], "taxonomy": TAXONOMY[0]}
COUNTS = (16, 32, 64, 128, 256)
BYTES = 512
_LOSS_COUNT, _LOSS_QUEUE = 256, 64
_PATIENCE_S = 1.5
#: A table of counts holds for longer than the experiment takes.
_PERIOD_S = 3_600
_CLASSES = "".join(
    f'[[class]]\nname = "{topic.replace("/", "-")}"\nfilter = "{topic}"\nlevel = {level}\n'
    for level, topics in TAXONOMY.items()
    for topic in topics
)

#: The brokers of the figure: what it calls them, and how each is set up.
_PEERS: dict[str, Callable[[], Peer]] = {
    "mosquitto": Mosquitto,
    "fifo": lambda: Tieline('[priority]\npolicy = "fifo"\n'),
    "taxonomy": lambda: Tieline(f'[priority]\npolicy = "taxonomy"\n{_CLASSES}'),
    "heat": lambda: Tieline('[priority]\npolicy = "heat"\n'),
    "printed": lambda: Tieline('[priority]\npolicy = "heat"\n'),
    "renewed": lambda: Tieline('[priority]\npolicy = "heat"\n'),
}
#: Subscriptions that arrive for each topic in a period: one for each subscriber, or none any more.
COUNTED: Final[Mapping[str, Mapping[str, int]]] = {
    "printed": dict.fromkeys(TOPICS, 0),
    "renewed": {topic: len(TOPICS) - number for number, topic in enumerate(TOPICS)},
}
_SHORT = f"[limits]\nqueue_messages = {_LOSS_QUEUE}\n"
_SHORT_PEERS: dict[str, Callable[[], Peer]] = {
    "taxonomy": lambda: Tieline(f'{_SHORT}[priority]\npolicy = "taxonomy"\n{_CLASSES}'),
    "heat": lambda: Tieline(f'{_SHORT}[priority]\npolicy = "heat"\n'),
}


@dataclass(slots=True)
class PlantScene:
    """One broker with its subscribers and one publisher."""

    timetable: Timetable
    flows: Flows = field(default_factory=lambda: Flows(TOPICS))
    sockets: list[socket.socket] = field(default_factory=list)
    writer: Writer | None = None

    def open(self, at: Endpoint) -> None:
        """The port subscribes to everything, the others to ever fewer topics: heat is eight down to one."""
        for number in range(1, len(TOPICS)):
            sock = open_node(at.host, at.port, f"other{number}")
            self.sockets.append(sock)
            subscribe(sock, TOPICS[:-number])
            Reader(sock, self.timetable, _ignore)
        sender = open_node(at.host, at.port, "plant")
        self.sockets.append(sender)
        self.sockets.append(open_port(at, self.timetable, "database", ["plant/#"], self._received))
        self.writer = Writer(sender, self.timetable)

    def begin(self, count: int, seed: int) -> None:
        """Count anew, and publish so many messages at once."""
        self.flows = Flows(TOPICS)
        topics = list(TOPICS) * (count // len(TOPICS))
        random.Random(seed).shuffle(topics)
        assert self.writer is not None
        self.writer.write(b"".join(self.flows.message(topic, BYTES) for topic in topics))

    def _received(self, arrival: Arrival, when_ns: int) -> None:
        self.flows.received(arrival, when_ns)


def _ignore(_arrival: Arrival, _when_ns: int) -> None:
    """The other subscribers only make a topic wanted."""


def measure(request: Request) -> list[Table]:
    """All brokers at once; bursts one after another, the mean delay of the most wanted topics for each."""
    seeds = request.seeds(quick=2, full=5, note="bursts")
    request.state("burst, losses", _LOSS_COUNT, "messages")
    request.state("queue, losses", _LOSS_QUEUE, "messages")
    peers = {name: make for name, make in _PEERS.items() if name != "mosquitto" or known_peers()[name].version()}
    delays: list[tuple[Cell, ...]] = []
    with _scenes(peers) as (timetable, scenes):
        _burst(timetable, scenes, COUNTS[-1], seed=-1)  # the port is known to be blocked when the experiment begins
        for count in COUNTS:
            for seed in seeds:
                request.step(f"{count} messages, burst {seed}")
                _burst(timetable, scenes, count, seed=seed)
                for name, scene in scenes.items():
                    waits = [wait * 1e3 for topic in HIGH for wait in scene.flows[topic].waits_s()]
                    delays.append((name, count, seed, statistics.fmean(waits)))
    losses: list[tuple[Cell, ...]] = []
    with _scenes(_SHORT_PEERS) as (timetable, scenes):
        for seed in seeds:
            request.step(f"losses, burst {seed}")
            _burst(timetable, scenes, _LOSS_COUNT, seed=seed)
            for name, scene in scenes.items():
                losses.append((name, seed, _lost_share(scene, LOW[name]), _lost_share(scene, TOPICS)))
    return [
        Table("delays", {"policy": "order of the broker", "messages": "distributions in the burst", "seed": "seed",
                         "delay_ms": "mean delay of the two most wanted topics, ms"}, delays),
        Table("losses", {"policy": "order of the broker", "seed": "seed",
                         "lost_low": "share lost of the two topics that the policy ranks lowest",
                         "lost_all": "share lost of all"}, losses),
    ]  # fmt: skip


def _burst(timetable: Timetable, scenes: Mapping[str, PlantScene], count: int, *, seed: int) -> None:
    """One burst at every broker; over when everything has arrived, or nothing more can be expected."""
    for scene in scenes.values():
        scene.begin(count, seed)
    timetable.run(
        clock() + 2 * count * BYTES / BYTES_PER_S + _PATIENCE_S,
        lambda: not any(scene.flows.lost for scene in scenes.values()),
    )


def _lost_share(scene: PlantScene, topics: tuple[str, ...]) -> float:
    sent = sum(len(scene.flows[topic].sent) for topic in topics)
    return sum(scene.flows[topic].lost for topic in topics) / sent


@contextlib.contextmanager
def _scenes(peers: Mapping[str, Callable[[], Peer]]) -> Iterator[tuple[Timetable, dict[str, PlantScene]]]:
    with contextlib.ExitStack() as stack:
        timetable = stack.enter_context(Timetable())
        scenes = {}
        for name, make in peers.items():
            peer = make()
            at = stack.enter_context(Instance(peer))
            scenes[name] = scene = PlantScene(timetable)
            stack.callback(hang_up, scene.sockets)
            scene.open(at)
            if name in COUNTED and isinstance(peer, Tieline):
                peer.ask("heat", act="put", topics=dict(COUNTED[name]), period=f"{_PERIOD_S}s")
        yield timetable, scenes
