"""Connections: accepted per second, and memory while they do nothing."""

from __future__ import annotations

from tieline.bench.load.connections import ConnectMany, HoldIdle, Visits
from tieline.bench.workloads.workload import Effort, Workload

_IDLE = ("bytes_connection", "bytes_subscribed")


def _connect(effort: Effort) -> ConnectMany:
    return ConnectMany(connections=effort.connects)


def _visits(effort: Effort) -> Visits:
    return Visits(visits=effort.connects)


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
        name="visits",
        title="connect, subscribe and disconnect",
        group="connections",
        job=_visits,
        shown=("rate", "cpu_us_connection"),
        quick=True,
        repetitions=5,
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
