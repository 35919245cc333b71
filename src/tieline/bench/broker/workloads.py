"""What the brokers are asked to do: all workloads by name, in the order in which they run."""

from __future__ import annotations

from tieline.bench.broker.saturated import DURABLE, THROUGHPUT
from tieline.bench.broker.workload import BrokerEffort, Workload
from tieline.bench.load.connections import ConnectMany, HoldIdle, Visits
from tieline.bench.load.one_at_a_time import Assure, PingPong
from tieline.bench.load.pace import Pace
from tieline.bench.load.saturate import BystandingFilters, FirstMessages

#: About how long a client takes to connect, and over TLS.
_CONNECT_S, _HANDSHAKE_S = 0.0005, 0.005


def _paced(
    clients: int, per_second: int, *, tls: bool = False, first: bool = False, everyone: bool = False
) -> Workload:
    """Many clients with pauses between their messages: batching helps least here."""

    def job(effort: BrokerEffort) -> Pace:
        return Pace(clients=clients, per_second=per_second, seconds=effort.paced_s, tls=tls, first=first)

    def lasts_s(effort: BrokerEffort) -> float:
        connecting = clients * (_HANDSHAKE_S if tls else _CONNECT_S)
        return 0.5 + clients / 2_000 + connecting + (1 / per_second if first else effort.paced_s)

    return Workload(
        name=f"paced-{clients}x{per_second}" + ("-tls" if tls else "") + ("-first" if first else ""),
        title=f"{clients:,} clients x {per_second} msg/s, {'TLS' if tls else 'TCP'}"
        + (", each for the first time" if first else ""),
        group="paced",
        job=job,
        lasts_s=lasts_s,
        pair_only=not everyone,
        tls=tls,
        repetitions=5,
    )


_FIRST = Workload(
    name="first",
    title="first message of each of 20k topics, QoS 0, 64 B",
    group="first",
    job=lambda effort: FirstMessages(topics=effort.topics),
    lasts_s=lambda _effort: 2.0,
)
_LATENCY = Workload(
    name="latency",
    title="ping-pong, QoS 0, 64 B",
    group="latency",
    job=lambda effort: PingPong(messages=effort.round_trips),
    lasts_s=lambda effort: 0.2 + 1e-4 * effort.round_trips,
    pair_only=False,
)
_PACED = (
    _paced(200, 1),
    _paced(200, 50, everyone=True),
    _paced(1_000, 1),
    _paced(1_000, 1, first=True),
    _paced(1_000, 10),
    _paced(200, 50, tls=True),
    _paced(1_000, 10, tls=True),
)
_CONNECTIONS = (
    Workload(
        name="connect",
        title="connect rate (TCP, CONNECT, CONNACK)",
        group="connections",
        job=lambda effort: ConnectMany(connections=effort.connects),
        lasts_s=lambda effort: 0.3 + _CONNECT_S * effort.connects,
        pair_only=False,
    ),
    Workload(
        name="visits",
        title="connect, subscribe and disconnect",
        group="connections",
        job=lambda effort: Visits(visits=effort.connects),
        lasts_s=lambda effort: 0.3 + _CONNECT_S * effort.connects,
        repetitions=5,
    ),
    # memory hardly varies, so once is enough
    Workload(
        name="idle",
        title="idle connections, TCP",
        group="connections",
        job=lambda effort: HoldIdle(connections=effort.idle),
        lasts_s=lambda effort: 3.0 + 2 * _CONNECT_S * effort.idle,
        fresh=True,
        repetitions=1,
    ),
    Workload(
        name="idle-tls",
        title="idle connections, TLS",
        group="connections",
        job=lambda effort: HoldIdle(connections=effort.idle_tls, tls=True),
        lasts_s=lambda effort: 3.0 + _HANDSHAKE_S * effort.idle_tls,
        tls=True,
        fresh=True,
        repetitions=1,
    ),
)
#: A hundred thousand subscriptions that do not match: a PUBLISH should not notice them.
_FILTERS = Workload(
    name="filters",
    title="PUBLISH beside 100k filters that do not match",
    group="filters",
    job=lambda effort: BystandingFilters(filters=effort.filters, seconds=effort.seconds),
    lasts_s=lambda effort: 6.0 + 4 * effort.seconds,
    fresh=True,
)
_PROMISE = Workload(
    name="durable-latency",
    title="send to PUBACK, one at a time, QoS 1, 64 B",
    group="promise",
    job=lambda effort: Assure(messages=effort.round_trips // 5),
    lasts_s=lambda _effort: 3.5,
    qos=1,
    durable=True,
    fresh=True,
)

WORKLOADS: tuple[Workload, ...] = (
    *THROUGHPUT, _FIRST, _LATENCY, *_PACED, *_CONNECTIONS, _FILTERS, *DURABLE, _PROMISE,
)  # fmt: skip
#: What can be run alone: the tables of the report.
PARTS: tuple[str, ...] = tuple(dict.fromkeys(one.group for one in WORKLOADS))
