"""Connections: accepted per second, and memory while they do nothing."""

from __future__ import annotations

from tieline.bench.load.hold import ConnectMany, HoldIdle
from tieline.bench.workloads.workload import Effort, Workload

_IDLE = ("bytes_connection", "bytes_subscribed")


def _connect(effort: Effort) -> ConnectMany:
    return ConnectMany(connections=effort.connects)


def _idle(effort: Effort) -> HoldIdle:
    return HoldIdle(connections=effort.idle)


def _idle_tls(effort: Effort) -> HoldIdle:
    return HoldIdle(connections=effort.idle_tls, tls=True)


CONNECTIONS = (
    Workload(
        name="connect",
        title="connect rate (TCP, CONNECT, CONNACK)",
        group="connections",
        job=_connect,
        shown=("rate", "cpu_us_connection"),
        pair_only=False,
    ),
    Workload(
        name="idle",
        title="idle connections, TCP",
        group="connections",
        job=_idle,
        shown=_IDLE,
        quick=True,
        fresh=True,
        once=True,
    ),
    Workload(
        name="idle-tls",
        title="idle connections, TLS",
        group="connections",
        job=_idle_tls,
        shown=_IDLE,
        quick=True,
        tls=True,
        fresh=True,
        once=True,
    ),
)
