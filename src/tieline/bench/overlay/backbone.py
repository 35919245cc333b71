"""Twelve brokers in namespaces of their own, joined as a real backbone is, by links of 128 kbit/s in both directions.

Theory of operation
-------------------
The network is SNDlib's abilene, twelve nodes and fifteen links, from ``topohub``.  Eight of fourteen flows of bulk lead
to one place in the middle, the others from anywhere to anywhere; their ends and rates come from one seed, chosen among
some hundreds because in it the shortest ways meet on a link that carries half of what they bring, and other ways have
room.  Six urgent flows go beside the first of them.  Bulk has QoS 0, so that what does not fit is dropped and counted,
or QoS 1, where nothing may be lost.

What brokers are told about plans is typed as users type it: ``tieline plan …`` in a process of its own, which asks one
broker by its socket, while traffic goes on.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import random
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from tieline.bench.brokers import topic_class
from tieline.bench.load import packets
from tieline.bench.load.job import Failure, Stalled
from tieline.bench.overlay.thin_network import ThinNetwork, thin_network
from tieline.bench.peer import Instance
from tieline.bench.timed.link import Shape
from tieline.bench.timed.nodes import Listener, Timetable, Writer, clock, hang_up, open_node, subscribe
from tieline.bench.timed.packets import Flows, acknowledge, arrival

TOPOLOGY: Final = "sndlib/abilene"
_SEED: Final = 367
_CENTRE: Final = 6
_BULK, _TO_CENTRE, _URGENT = 14, 8, 6
_RATES: Final = (1_440.0, 2_160.0, 2_880.0)
#: Sizes of whole PUBLISH packets.
_BULK_BYTES: Final = 800
_URGENT_BYTES: Final = 150
_URGENT_EVERY_S: Final = 0.5
#: How long a message is of use that is not to be kept.
EXPIRY_S: Final = 3
#: What a PUBLISH with QoS 1 has beside its topic and its payload.
_HEAD: Final = 8
#: What is said of each link, in bits.
CAPACITY: Final = 124_000
CONFIGURATION: Final = "[priority]\nfloor = 0.1\n" + topic_class("alarm", "net/urgent/#", 3)
_JOINED_S: Final = 60.0
_COMMAND_S: Final = 180.0


class TrafficPair(NamedTuple):
    """What one broker's publisher sends to another one's subscriber."""

    #: Among all flows, so that packet ids of one publisher are told apart.
    number: int
    topic: str
    origin: int
    destination: int
    #: Bytes of packets in a second, and of one packet.
    rate: float
    size: int


def edges() -> tuple[int, list[tuple[int, int]]]:
    """How many brokers, and the links between them."""
    from tieline.plan.reading.networks import topology

    found = topology(TOPOLOGY)
    return len(found.ids), [(a, b) for a, b in found.pairs.tolist()]


def flows(brokers: int) -> list[TrafficPair]:
    """Everything that is published."""
    chance = random.Random(_SEED)
    found = []
    for number in range(_BULK):
        origin, destination = chance.sample(range(brokers), 2)
        if number < _TO_CENTRE:
            destination = _CENTRE
        if origin == destination:
            origin = 0
        found.append(TrafficPair(number, f"net/bulk/{number}", origin, destination, chance.choice(_RATES), _BULK_BYTES))
    rate = _URGENT_BYTES / _URGENT_EVERY_S
    return found + [
        TrafficPair(_BULK + number, f"net/urgent/{number}", flow.origin, flow.destination, rate, _URGENT_BYTES)
        for number, flow in enumerate(found[:_URGENT])
    ]


def size_of(topic: str) -> int:
    """Bytes of the packets that are published to a topic."""
    return _URGENT_BYTES if "urgent" in topic else _BULK_BYTES


@dataclass(slots=True, kw_only=True)
class Net:
    """Brokers that run, what is published, and what has arrived."""

    network: ThinNetwork
    flows: list[TrafficPair]
    tallies: Flows
    timetable: Timetable
    _writers: list[Writer]
    #: Flows of an earlier one go on no longer.
    _round: int = 0

    @property
    def directory(self) -> Path:
        """Where files of this run may lie."""
        return self.network.directory

    @property
    def at(self) -> Path:
        """The socket of the broker that is asked for all."""
        return self.network.members[0].socket

    def publish(self, *, qos: int = 0) -> None:
        """Let all flows begin now, each at a moment of its own; those that were going on end."""
        chance = random.Random(1)
        self._round += 1
        for flow in self.flows:
            period = flow.size / flow.rate
            self.timetable.at(clock() + period * chance.random(), self._sending(flow, qos, period))

    def hush(self) -> None:
        """Let all flows end."""
        self._round += 1

    def _sending(self, flow: TrafficPair, qos: int, period: float) -> Callable[[float], float | None]:
        writer, tally, mine = self._writers[flow.origin], self.tallies[flow.topic], self._round
        ids = itertools.cycle(range(1 + 3_000 * flow.number, 3_000 * (flow.number + 1)))

        def send(now: float) -> float | None:
            if mine != self._round:
                return None
            if qos == 0:
                writer.write(_expiring(flow.topic, tally.payload(flow.size - len(flow.topic) - _HEAD - 3)))
            else:
                payload = tally.payload(flow.size - len(flow.topic) - _HEAD)
                writer.write(packets.publish(flow.topic, payload, qos=qos, packet_id=next(ids), version=5))
            return now + period

        return send

    def ask(self, *words: str) -> str:
        """``tieline WORDS`` while traffic goes on; what it printed."""
        command = [sys.executable, "-m", "tieline", *words]
        with (
            (self.directory / "said").open("w+b") as said,
            subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=said, stderr=subprocess.STDOUT) as process,
        ):
            self.timetable.run(clock() + _COMMAND_S, lambda: process.poll() is not None)
            if process.poll() is None:
                process.kill()
                raise Stalled(f"`tieline {' '.join(words)}` took more than {_COMMAND_S:.0f} s")
            said.seek(0)
            printed = said.read().decode()
        if process.returncode != 0:
            raise Failure(f"`tieline {' '.join(words)}`: {printed.strip()[-400:]}")
        return printed

    def links(self) -> dict[tuple[str, str], float]:
        """By link, the messages that have left its two ends so far, as the brokers themselves count them."""
        found: dict[tuple[str, str], float] = {}
        for member in self.network.members:
            said = member.ask("net")
            for link in said["own"]:
                ends = (min(said["name"], link["peer"]), max(said["name"], link["peer"]))
                found[ends] = found.get(ends, 0.0) + sum(class_["sent"] for class_ in link["classes"])
        return found


class Subscriber(Listener):
    """Takes everything at once, and acknowledges what wants to be acknowledged."""

    def __init__(self, sock: socket.socket, timetable: Timetable, tallies: Flows) -> None:
        super().__init__(sock, timetable)
        self._tallies = tallies

    def heard(self, first: int, body: bytes, when_ns: int) -> None:
        """Write down when a message came."""
        if first & 0xF0 == packets.PUBLISH:
            found = arrival(first, body)
            self._tallies.received(found, when_ns)
            if found.qos:
                self.write(acknowledge(packets.PUBACK, found.packet_id))


@contextlib.contextmanager
def running(*, link: str = f"capacity = {CAPACITY}") -> Iterator[Net]:
    """The network, joined and quiet; ``link`` is what the settings say of each link."""
    count, joined = edges()
    with contextlib.ExitStack() as stack:
        timetable = stack.enter_context(Timetable())
        network = stack.enter_context(thin_network(count, joined, CONFIGURATION, shape=Shape(), link=link))
        everything = flows(count)
        tallies = Flows([flow.topic for flow in everything])
        sockets: list[socket.socket] = []
        stack.callback(hang_up, sockets)
        writers: list[Writer] = []
        for number, (space, member) in enumerate(zip(network.spaces, network.members, strict=True)):
            with space.entered():
                at = stack.enter_context(Instance(member))
                sender = open_node(at.host, at.port, f"from-{number}")
                receiver = open_node(at.host, at.port, f"at-{number}")
            sockets += [sender, receiver]
            writers.append(Writer(sender, timetable))
            wanted = [flow.topic for flow in everything if flow.destination == number]
            subscribe(receiver, [*wanted, f"nobody/{number}"], qos=1)
            Subscriber(receiver, timetable, tallies)
        net = Net(network=network, flows=everything, tallies=tallies, timetable=timetable, _writers=writers)
        _await(net, count)
        yield net


def _expiring(topic: str, payload: bytes) -> bytes:
    """A PUBLISH with QoS 0 that is of no use after :data:`EXPIRY_S`: readings are replaced by later ones."""
    properties = b"\x02" + EXPIRY_S.to_bytes(4, "big")
    body = packets.text(topic) + packets.varint(len(properties)) + properties + payload
    return packets.framed(packets.PUBLISH, body)


def _await(net: Net, count: int) -> None:
    """Until every broker is reached by the first one, and knows what is wanted."""
    deadline = clock() + _JOINED_S
    while clock() < deadline:
        answer = json.loads(net.ask("net", "--socket", str(net.at), "--json"))
        if sum(broker["is_reachable"] for broker in answer["brokers"]) == count:
            net.timetable.run(clock() + 3.0)
            return
        net.timetable.run(clock() + 0.5)
    raise Stalled(f"{count} brokers did not find each other within {_JOINED_S:.0f} s")
