"""Three thin hops: what is urgent crosses four brokers while bulk fills every link between them.

Theory of operation
-------------------
Four brokers are in network namespaces of their own, joined in a line by links of 128 kbit/s in both directions.
Publishers sit beside the last broker and the subscriber beside the first, on their loopbacks.  Urgent messages (level
3) come once a second; bulk (level 1) comes at twice what a link carries from the last broker, and as much from each
broker on the way, so that every link is too thin; and among it comes a message that takes a link for 2.5 s by itself.
Low ones (level 0) come at half of what their floor guarantees.

What is promised on each hop follows from three bounds: what the kernel may hold, one segment that had begun, and one
segment of a class that is owed its floor.  All of that, with what packets add, leaves at the rate of the link; then the
urgent message itself does, and travels.  The promise for the line is the sum over its hops.

Where a link has a delay, a relay process makes it.
"""

from __future__ import annotations

import contextlib
import math
import random
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final

from tieline.bench.brokers import topic_class
from tieline.bench.load.job import Endpoint, Metrics, Stalled
from tieline.bench.overlay.backbone import Subscriber
from tieline.bench.overlay.thin_network import ThinNetwork, thin_network
from tieline.bench.peer import Instance
from tieline.bench.timed.link import KERNEL_BYTES, SEGMENT_BYTES, Shape
from tieline.bench.timed.nodes import Timetable, Writer, clock, hang_up, open_node, subscribe
from tieline.bench.timed.packets import Flows
from tieline.overlay.frames.segments import SEGMENT

URGENT, BULK, LONG, LOW, PROBE = "line/urgent", "line/bulk", "line/long", "line/low", "line/probe"
FLOOR: Final = 0.1
LOW_TIMEOUT_S: Final = 5.0
#: Sizes of whole PUBLISH packets.
URGENT_BYTES, LOW_BYTES, LONG_BYTES = 150, 200, 40_000
BULK_BYTES: Final = (500, 1_000)
BULK_CLUMP: Final = 12
LONG_EVERY_S: Final = 8.0
#: What the link protocol adds to a short message: head of the frame, publisher, places.
FRAME_BYTES: Final = 60

CONFIGURATION: Final = (
    f"[priority]\nfloor = {FLOOR}\n"
    + topic_class("alarm", URGENT, 3)
    + topic_class("probe", PROBE, 2)
    + topic_class("log", LOW, 0, f"timeout = {LOW_TIMEOUT_S}")
    + topic_class("bulk", "line/#", 1)
)
_HEAD_START_S: Final = 0.5
_JOINED_S: Final = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class HopBound:
    """The parts of the promise for one hop, in bytes on the wire."""

    bytes_per_s: float
    #: Of the thin link when it is idle.
    rtt_s: float = 0.0
    kernel: int = KERNEL_BYTES
    segment: int = SEGMENT
    quantum: int = SEGMENT
    urgent: int = URGENT_BYTES + FRAME_BYTES

    @property
    def seconds(self) -> float:
        """The longest that an urgent message may take over the hop."""
        ahead = self.kernel + self.segment + self.quantum
        # a packet may be no fuller than the smallest of bulk
        packets = 1 + math.ceil(ahead / BULK_BYTES[0])
        return (ahead + self.urgent + packets * SEGMENT_BYTES) / self.bytes_per_s + self.rtt_s


@dataclass(slots=True, kw_only=True)
class ThinLine:
    """Running brokers, and what is published at one end and heard at the other."""

    shape: Shape
    hops: int
    #: What every link takes in each direction beside its rate.
    delay_s: float
    network: ThinNetwork
    writers: dict[str, Writer]
    flows: Flows

    def send(self, topic: str, size: int, count: int = 1) -> None:
        """Publish packets of this size, all at once."""
        self.writers[topic].write(b"".join(self.flows.message(topic, size) for _ in range(count)))

    def begin(self, timetable: Timetable, begin: float, end: float) -> None:
        """Put the flows on the agenda."""
        rate = self.shape.bytes_per_s
        chance = random.Random(7)
        low_rate = rate * FLOOR / (1 + FLOOR) / 2

        def bulk(topic: str, now: float) -> float | None:
            size, count = chance.randint(*BULK_BYTES), chance.randint(1, BULK_CLUMP)
            self.send(topic, size, count)
            return now + count * size / (2 * rate) if now < end else None

        for number in range(1, self.hops + 1):
            timetable.at(begin, partial(bulk, f"{BULK}/{number}"))
        timetable.every(LONG_EVERY_S, begin + 0.1, end, lambda: self.send(LONG, LONG_BYTES))
        timetable.every(1.0, begin + _HEAD_START_S, end, lambda: self.send(URGENT, URGENT_BYTES))
        timetable.every(LOW_BYTES / low_rate, begin + _HEAD_START_S, end, lambda: self.send(LOW, LOW_BYTES))

    @property
    def bound_s(self) -> float:
        """What is promised to urgent messages on this line."""
        return self.hops * HopBound(bytes_per_s=self.shape.bytes_per_s, rtt_s=2 * self.delay_s).seconds

    def metrics(self, seconds: float) -> Metrics:
        """What came of it."""
        urgent, low = self.flows[URGENT], self.flows[LOW]
        bulk = sum(len(flow.arrived) for topic, flow in self.flows.items() if topic.startswith(BULK))
        # the last ones are under way: an urgent one for as long as is promised, a low one for a timeout on each hop
        urgent = urgent.before(time.time_ns() - round(2 * self.bound_s * 1e9))
        low = low.before(time.time_ns() - round(self.hops * LOW_TIMEOUT_S * 1e9))
        waits = urgent.waits_s(seconds)
        return {
            "urgent_p50_ms": urgent.quantile_s(0.5, seconds) * 1e3,
            "urgent_p99_ms": urgent.quantile_s(0.99, seconds) * 1e3,
            "urgent_max_ms": max(waits) * 1e3,
            "bound_ms": self.bound_s * 1e3,
            "of_bound": urgent.quantile_s(0.99, seconds) / self.bound_s,
            "over_bound": sum(wait > self.bound_s for wait in waits),
            "low_p50_ms": low.quantile_s(0.5, seconds) * 1e3,
            "low_max_ms": max(low.waits_s(seconds), default=0.0) * 1e3,
            "low_served": 1 - low.lost / max(1, len(low.sent)),
            "link_bytes_per_s": bulk * sum(BULK_BYTES) / 2 / seconds,
            "disordered": sum(flow.disordered + flow.duplicates for flow in self.flows.values()),
        }


def run(*, seconds: float, hops: int = 3, link: str = "", delay_s: float = 0.0) -> Metrics:
    """Brokers in a line for a while; ``link`` is what the configuration says of each link beside its address."""
    with Timetable() as timetable, running(hops, timetable, link=link, delay_s=delay_s) as line:
        begin = clock()
        line.begin(timetable, begin, begin + seconds)
        timetable.run(begin + seconds)
        return line.metrics(seconds)


@contextlib.contextmanager
def running(
    hops: int, timetable: Timetable, *, link: str = "", delay_s: float = 0.0, qos: int = 0
) -> Iterator[ThinLine]:
    """Brokers in a line, joined and quiet, and a subscriber at the first one that asks for everything with this QoS."""
    shape = Shape()
    with contextlib.ExitStack() as stack:
        laid = thin_network(hops + 1, _edges(hops), CONFIGURATION, shape=shape, link=link, delay_s=delay_s)
        network = stack.enter_context(laid)
        endpoints: list[Endpoint] = []
        for space, member in zip(network.spaces, network.members, strict=True):
            with space.entered():
                endpoints.append(stack.enter_context(Instance(member)))
        sockets: list[socket.socket] = []
        stack.callback(hang_up, sockets)
        with network.spaces[0].entered():
            receiver = open_node(endpoints[0].host, endpoints[0].port, "at-the-first")
            sockets.append(receiver)
        senders: dict[str, socket.socket] = {}
        for number, at in enumerate(endpoints[1:], 1):
            topics = [f"{BULK}/{number}", *((URGENT, LONG, LOW, PROBE) if number == hops else ())]
            with network.spaces[number].entered():
                for topic in topics:
                    senders[topic] = open_node(at.host, at.port, f"from-{topic}")
                    sockets.append(senders[topic])
        subscribe(receiver, ["line/#"], qos=qos)
        writers = {topic: Writer(sock, timetable) for topic, sock in senders.items()}
        flows = Flows(writers)
        line = ThinLine(shape=shape, hops=hops, delay_s=delay_s, network=network, writers=writers, flows=flows)
        Subscriber(receiver, timetable, flows)
        _join_all(line, timetable)
        yield line


def _edges(hops: int) -> list[tuple[int, int]]:
    """Each broker of the line listens for the next one."""
    return [(number, number + 1) for number in range(hops)]


def _join_all(line: ThinLine, timetable: Timetable) -> None:
    """Send probes until one has crossed, and wait for the others to have left the links."""
    probes = line.flows[PROBE]
    deadline = clock() + _JOINED_S
    while not probes.arrived:
        if clock() > deadline:
            raise Stalled(f"nothing crossed {line.hops} hops within {_JOINED_S:.0f} s")
        line.send(PROBE, URGENT_BYTES)
        timetable.run(clock() + 0.2)
    timetable.run(clock() + 1.0)
