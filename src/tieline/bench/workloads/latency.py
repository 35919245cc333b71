"""One message in flight on an otherwise idle broker."""

from __future__ import annotations

from tieline.bench.load.one_at_a_time import PingPong
from tieline.bench.workloads.workload import Effort, Workload


def _ping_pong(effort: Effort) -> PingPong:
    return PingPong(messages=effort.round_trips)


LATENCY = (
    Workload(
        name="latency",
        title="ping-pong, QoS 0, 64 B",
        group="latency",
        job=_ping_pong,
        shown=("p50_us", "p99_us"),
        pair_only=False,
        quick=True,
    ),
)
