"""Busy broker: fifty publishers at full speed, and an urgent message that must not wait for them.

The flood and the probe are processes of their own, so that neither waits for the other.  The kernel stamps the arrival
of every urgent message, so a probe that is scheduled late does not count against the broker.
"""

from __future__ import annotations

import contextlib
import os
import select
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from tieline.bench.brokers import Tieline, known_peers
from tieline.bench.load.clients import clients
from tieline.bench.load.clients import subscribe as subscribe_plainly
from tieline.bench.load.ends import Sink, Source
from tieline.bench.load.job import Endpoint, Generator, Metrics
from tieline.bench.load.packets import encode
from tieline.bench.measure import CostMeter
from tieline.bench.peer import Instance
from tieline.bench.timed.nodes import Reader, Timetable, Writer, clock, hang_up, open_node, subscribe
from tieline.bench.timed.packets import Tally

_STREAM_MESSAGES = 1_000
_LARGEST_SEND = 65_536
#: The flood yields to the brokers and to the probe: on two cores it would otherwise measure the scheduler.
_NICE = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Flood:
    """``publishers`` that never pause, and one subscriber that takes everything."""

    publishers: int
    seconds: float
    payload: int = 64

    @property
    def patience_s(self) -> float:
        """Connecting, and the flood."""
        return 20.0 + 2 * self.seconds

    def run(self, at: Endpoint) -> Metrics:
        """Messages that the broker delivered per second, and what that cost."""
        names = [f"flood{number:03d}" for number in range(self.publishers)]
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, 0, _NICE)
        with (
            select.epoll() as poller,
            clients(at, ["flooded"], version=5) as (receiver,),
            clients(at, names, version=5) as senders,
        ):
            streams = [
                encode(number, [f"flood/{number:03d}"], payload=self.payload, qos=0, version=5, count=_STREAM_MESSAGES)
                for number in range(self.publishers)
            ]
            packet = streams[0].layout.packet
            sink = Sink(receiver, poller, streams[0].layout, 0, 0)
            subscribe_plainly(receiver, ["flood/#"], version=5)
            sources = [Source(sock, poller, stream, 0) for sock, stream in zip(senders, streams, strict=True)]
            by_fd = {source.fd: source for source in sources}
            meter = CostMeter(at.pid)
            until = time.perf_counter() + self.seconds
            while time.perf_counter() < until:
                free = [source for source in sources if not source.blocked]
                for source in free:
                    source.publish(_LARGEST_SEND)
                for fd, event in poller.poll(0 if free else 0.1):
                    if fd == sink.fd:
                        sink.readable()
                    elif event & select.EPOLLOUT:
                        by_fd[fd].writable()
            reading = meter.read()
        return {"flood_rate": sink.delivered / packet / reading.wall_s, **reading.shares()}


_TOPIC = "probe/urgent"
_BYTES = 150
_URGENT = {"priority": "3"}
_DRAIN_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """So many urgent messages a second on a connection of their own, of level 3."""

    per_second: float
    seconds: float
    #: The flood comes first.
    delay_s: float

    @property
    def patience_s(self) -> float:
        """Waiting for the flood, sending, and seeing everything arrive."""
        return 20.0 + self.delay_s + 2 * self.seconds

    def run(self, at: Endpoint) -> Metrics:
        """Time from send to receive; a message that does not arrive counts as the length of the run."""
        tally = Tally()

        time.sleep(self.delay_s)
        with Timetable() as timetable:
            receiver = open_node(at.host, at.port, "probe-to", _URGENT)
            sender = open_node(at.host, at.port, "probe-from", _URGENT)
            try:
                subscribe(receiver, [_TOPIC])
                Reader(receiver, timetable, tally.received)
                writer = Writer(sender, timetable)
                end = clock() + self.seconds
                timetable.every(1 / self.per_second, 0.0, end, lambda: writer.write(tally.message(_TOPIC, _BYTES)))
                timetable.run(end)
                timetable.run(end + _DRAIN_S, lambda: not tally.lost)
            finally:
                hang_up([receiver, sender])
        return {
            "urgent_p50_ms": tally.quantile_s(0.5, self.seconds) * 1e3,
            "urgent_p99_ms": tally.quantile_s(0.99, self.seconds) * 1e3,
            "urgent_max_ms": max(tally.waits_s(self.seconds)) * 1e3,
            "urgent_sent": len(tally.sent),
            "urgent_lost": tally.lost,
        }


PUBLISHERS = 50
PER_SECOND = 200.0
_LEAD_S = 0.7


def measure(peer_name: str, *, seconds: float) -> Metrics:
    """One broker under one flood."""
    peer = known_peers()[peer_name]
    with Instance(peer) as at:
        probe = Probe(per_second=PER_SECOND, seconds=seconds, delay_s=_LEAD_S)
        flood = Flood(publishers=PUBLISHERS, seconds=_LEAD_S + seconds + 0.5)
        with Generator() as flooding, Generator() as probing, ThreadPoolExecutor(1) as threads:
            flooded = threads.submit(flooding.run, flood, at)
            found = probing.run(probe, at)
            found |= flooded.result()
        if isinstance(peer, Tieline):
            found["longest_turn_ms"] = float(peer.top()["longest_turn_ms"])
        return found
