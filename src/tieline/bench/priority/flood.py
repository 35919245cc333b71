"""Publishers at full speed: whatever their sockets take is sent, and whatever comes back is read and thrown away."""

from __future__ import annotations

import contextlib
import os
import select
import time
from dataclasses import dataclass

from tieline.bench.load.clients import clients, subscribe
from tieline.bench.load.endpoint import Endpoint
from tieline.bench.load.ends import Sink, Source
from tieline.bench.load.job import Metrics
from tieline.bench.load.stream import encode
from tieline.bench.measure import Meter

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
            subscribe(receiver, ["flood/#"], version=5)
            sources = [Source(sock, poller, stream, 0) for sock, stream in zip(senders, streams, strict=True)]
            by_fd = {source.fd: source for source in sources}
            meter = Meter(at.pid)
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
        return {
            "flood_rate": sink.delivered / packet / reading.wall_s,
            **reading.shares(),
        }
