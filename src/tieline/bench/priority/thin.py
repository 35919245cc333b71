"""Thin link: a subscriber behind 128 kbit/s, three flows that together are too much for it.

Theory of operation
-------------------
One *lane* is a broker in a network namespace, a subscriber in another, and a shaped link between them.  Publishers sit
beside the broker, on its loopback.  Urgent messages (level 3) come once a second, bulk (level 1) at twice what the link
carries, low ones (level 0) at half of what their floor guarantees.  All lanes run at the same time: together they send
some hundred messages a second, which leaves the processor idle, so no lane disturbs another.

A message that has not arrived when the run ends counts as the length of the run.  Afterwards publishers are silent and
Tieline's queues run empty, so that every bulk message is either received or named among the drops.
"""

from __future__ import annotations

import contextlib
import random
import socket
import ssl
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tieline.bench.brokers import Mosquitto, Tieline, topic_class
from tieline.bench.load.clients import tls_context
from tieline.bench.load.job import Endpoint, Metrics
from tieline.bench.peer import Instance, make_certificate
from tieline.bench.timed.link import LinkBound, Shape, ThinLink, Where, thin_link
from tieline.bench.timed.nodes import Reader, Timetable, Writer, clock, hang_up, open_node, subscribe
from tieline.bench.timed.packets import Arrival, Flows, Tally

URGENT, BULK, LOW = "thin/urgent", "thin/bulk", "thin/low"
LEVELS = {URGENT: 3, BULK: 1, LOW: 0}
FLOOR = 0.1
LOW_TIMEOUT_S = 5.0
#: Sizes of whole PUBLISH packets.
URGENT_BYTES, LOW_BYTES = 150, 200
BULK_BYTES = (500, 1_000)
#: Bulk comes in clumps of equal packets, as a file transfer does, up to so many at once.
BULK_CLUMP = 12
#: Four seconds of the link: overflow begins soon, and emptying the queue at the end takes no longer.
QUEUE_BYTES = 65_536

CONFIGURATION = f"""\
[limits]
queue_bytes = {QUEUE_BYTES}
[priority]
floor = {FLOOR}
"""
CLASSES = (
    topic_class("alarm", URGENT, 3)
    + topic_class("log", LOW, 0, f"timeout = {LOW_TIMEOUT_S}")
    + topic_class("bulk", "thin/#", 1, f"max_packet = {BULK_BYTES[1]}")
)
#: Without topic rules the treatment of level 0 still has to be said somewhere: by a rule that matches none of these.
BY_PROPERTY = topic_class("log", "elsewhere/#", 0, f"timeout = {LOW_TIMEOUT_S}")
_SETTLE_S = 0.3
_BULK_HEAD_START_S = 0.5
_SILENCE_S = 1.5


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneCase:
    """What one lane is."""

    name: str
    title: str
    peer: str
    where: Where
    by_property: bool = False
    is_tls: bool = False


CASES = (
    LaneCase(name="thin-broker", title="at the broker", peer="tieline", where="broker"),
    LaneCase(name="thin-broker", title="at the broker", peer="mosquitto", where="broker"),
    LaneCase(name="thin-router", title="at a router", peer="tieline", where="router"),
    LaneCase(name="thin-router", title="at a router", peer="mosquitto", where="router"),
    LaneCase(
        name="thin-property", title="at the broker, by property", peer="tieline", where="broker", by_property=True
    ),
    LaneCase(name="thin-tls", title="at a router, TLS", peer="tieline", where="router", is_tls=True),
)


@dataclass(slots=True, kw_only=True)
class Lane:
    """A broker, its thin link and its three flows."""

    case: LaneCase
    peer: Tieline | Mosquitto
    link: ThinLink
    writers: dict[str, Writer]
    sockets: list[socket.socket]
    rtt_s: float
    flows: Flows = field(default_factory=lambda: Flows(LEVELS))
    #: When anything arrived last.
    last_s: float = 0.0

    def received(self, arrival: Arrival, when_ns: int) -> None:
        """The subscriber got a message."""
        self.flows.received(arrival, when_ns)
        self.last_s = clock()

    def send(self, topic: str, size: int, count: int = 1) -> None:
        """Publish packets of this size, all at once."""
        user = {"priority": str(LEVELS[topic])} if self.case.by_property else {}
        self.writers[topic].write(b"".join(self.flows.message(topic, size, user) for _ in range(count)))

    def begin(self, timetable: Timetable, begin: float, end: float) -> None:
        """Put the three flows on the agenda."""
        rate = self.link.shape.bytes_per_s
        chance = random.Random(7)
        # for each byte sent above it, the low class earns FLOOR bytes
        low_rate = rate * FLOOR / (1 + FLOOR) / 2

        def bulk(now: float) -> float | None:
            size, count = chance.randint(*BULK_BYTES), chance.randint(1, BULK_CLUMP)
            self.send(BULK, size, count)
            return now + count * size / (2 * rate) if now < end else None

        timetable.at(begin, bulk)
        timetable.every(1.0, begin + _BULK_HEAD_START_S, end, lambda: self.send(URGENT, URGENT_BYTES))
        timetable.every(LOW_BYTES / low_rate, begin + _BULK_HEAD_START_S / 2, end, lambda: self.send(LOW, LOW_BYTES))

    @property
    def bound(self) -> LinkBound:
        """What is promised to urgent messages on this link."""
        return LinkBound(
            bytes_per_s=self.link.shape.bytes_per_s,
            rtt_s=self.rtt_s,
            urgent=URGENT_BYTES,
            largest=BULK_BYTES[1],
            smallest=BULK_BYTES[0],
            quantum=BULK_BYTES[1],  # whichever lower class is owed
            is_tls=self.case.is_tls,
        )

    def metrics(self, seconds: float) -> Metrics:
        """The numbers at the end of the run, before the queues run empty."""
        urgent, bulk, low = (self.flows[topic] for topic in (URGENT, BULK, LOW))
        # a low message may take its timeout, so the last ones cannot be judged yet
        low = low.before(time.time_ns() - round(LOW_TIMEOUT_S * 1e9))
        bound_s = self.bound.seconds
        waits = urgent.waits_s(seconds)
        return {
            "urgent_p50_ms": urgent.quantile_s(0.5, seconds) * 1e3,
            "urgent_p99_ms": urgent.quantile_s(0.99, seconds) * 1e3,
            "urgent_max_ms": max(waits) * 1e3,
            "urgent_sent": len(urgent.sent),
            "urgent_lost": urgent.lost,
            "bound_ms": bound_s * 1e3,
            "over_bound": sum(wait > bound_s for wait in waits),
            "low_p50_ms": low.quantile_s(0.5, seconds) * 1e3,
            "low_max_ms": max(low.waits_s(seconds), default=0.0) * 1e3,
            "low_sent": len(low.sent),
            "low_lost": low.lost,
            "bulk_p50_ms": bulk.quantile_s(0.5, seconds) * 1e3,
            "link_bytes_per_s": len(bulk.arrived) * sum(BULK_BYTES) / 2 / seconds,
            "rtt_ms": self.rtt_s * 1e3,
        }

    def account(self) -> Metrics:
        """What became of every bulk message, once the queues are empty; only Tieline says what it dropped."""
        bulk = self.flows[BULK]
        found: Metrics = {
            "bulk_sent": len(bulk.sent),
            "bulk_received": len(bulk.arrived),
            "disordered": sum(flow.disordered + flow.duplicates for flow in self.flows.values()),
        }
        if isinstance(self.peer, Tieline):
            top = self.peer.top()
            dropped = sum(top["drops"].values())
            found["drops_named"] = dropped
            found["unaccounted"] = self.flows.lost - dropped
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One lane's numbers, and its urgent messages as (second of sending, seconds taken), missing ones included."""

    case: LaneCase
    metrics: Metrics
    urgent: list[tuple[float, float]]


def run(cases: Sequence[LaneCase], *, seconds: float, shape: Shape | None = None) -> list[Result]:
    """All lanes at once."""
    with contextlib.ExitStack() as stack:
        timetable = stack.enter_context(Timetable())
        lanes = [stack.enter_context(_lane(case, shape or Shape(), timetable)) for case in cases]
        begin = clock() + _SETTLE_S
        for lane in lanes:
            lane.begin(timetable, begin, begin + seconds)
        timetable.run(begin + seconds)
        numbers = [lane.metrics(seconds) for lane in lanes]
        timelines = [_timeline(lane.flows[URGENT], seconds) for lane in lanes]
        ours = [lane for lane in lanes if lane.case.peer == "tieline"]
        end = clock()
        timetable.run(
            end + 3 * QUEUE_BYTES / (shape or Shape()).bytes_per_s,
            lambda: clock() - max([end, *(lane.last_s for lane in ours)]) > _SILENCE_S,
        )
        return [
            Result(case=lane.case, metrics={**found, **lane.account()}, urgent=timeline)
            for lane, found, timeline in zip(lanes, numbers, timelines, strict=True)
        ]


def _timeline(urgent: Tally, missing_s: float) -> list[tuple[float, float]]:
    first = urgent.sent[0]
    waits = urgent.waits_s(missing_s)
    return [((sent - first) / 1e9, wait) for sent, wait in zip(urgent.sent, waits, strict=True)]


@contextlib.contextmanager
def _lane(case: LaneCase, shape: Shape, timetable: Timetable) -> Iterator[Lane]:
    with contextlib.ExitStack() as stack:
        link = stack.enter_context(thin_link(case.where, shape))
        peer: Tieline | Mosquitto
        if case.peer == "tieline":
            peer = Tieline(CONFIGURATION + (BY_PROPERTY if case.by_property else CLASSES), addresses=[link.address])
        else:
            peer = Mosquitto(addresses=[link.address])
        sockets: list[socket.socket] = []
        certificate = None
        if case.is_tls:
            directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="tieline-bench-"))
            certificate = make_certificate(Path(directory))
        with link.broker.entered():
            at = stack.enter_context(Instance(peer, certificate))
            stack.callback(hang_up, sockets)
            sockets.extend(open_node(at.host, at.port, f"from-{topic}") for topic in LEVELS)
        with link.subscriber.entered():
            began = clock()
            socket.create_connection((link.address, at.port), timeout=10.0).close()
            rtt_s = clock() - began
            port, tls = (at.port, None) if at.tls_port is None else (at.tls_port, _trusting(at))
            receiver = open_node(link.address, port, "behind-the-link", tls=tls)
        sockets.append(receiver)
        subscribe(receiver, ["thin/#"])
        writers = {topic: Writer(sock, timetable) for topic, sock in zip(LEVELS, sockets, strict=False)}
        lane = Lane(case=case, peer=peer, link=link, writers=writers, sockets=sockets, rtt_s=rtt_s)
        Reader(receiver, timetable, lane.received)
        yield lane


def _trusting(at: Endpoint) -> ssl.SSLContext:
    """The certificate is the benchmark's own, and made out to the loopback address."""
    context = tls_context(at)
    context.check_hostname = False
    return context
