"""What the brokers are asked to do: all workloads by name, in the order in which they run.

Saturated workloads are 1:1, fan-in, fan-out, pairs and many topics, at QoS 0, 1 and 2, also for sessions that stay.
Brokers may profit from runs of messages to one topic in one chunk.  In the rows "topics change" there are none:
consecutive messages always differ in topic.

Where sessions stay, Tieline writes every acknowledged message to its disk before it acknowledges it.  mosquitto with
persistence keeps sessions in memory and writes them every half hour and at the end; a power cut in between takes what
it acknowledged.  Those rows say what the difference costs.
"""

from __future__ import annotations

from dataclasses import dataclass

from tieline.bench.broker.cases import BrokerEffort, Workload
from tieline.bench.load.connections import ConnectMany, HoldIdle, Visits
from tieline.bench.load.latency import Assure, PacedClients, PingPong
from tieline.bench.load.saturate import BystandingFilters, FirstMessages, Saturate, Topics

#: About how long a client takes to connect, and over TLS.
_CONNECT_S, _HANDSHAKE_S = 0.0005, 0.005


@dataclass(frozen=True, slots=True)
class _Shape:
    """Who publishes to which topics, and who subscribes; without filters everybody to the one topic."""

    title: str
    pattern: str
    filters: tuple[str, ...] = ()
    publishers: int = 1
    fan: int = 1
    #: Topics that each publisher takes in turn.
    each: int = 1


def _pairs(pairs: int) -> _Shape:
    return _Shape(f"{pairs}:{pairs} pairs", "pair/{p:02d}", tuple(f"pair/{n:02d}" for n in range(pairs)), pairs)


_ONE = _Shape("1:1", "one/to/one")
_ONE_CHANGING = _Shape("1:1, topics change (1,000)", "turn/{i:04d}", ("turn/#",), each=1_000)
_IN = _Shape("fan-in 100:1", "fan/in/{p:03d}", ("fan/in/#",), publishers=100)
_IN_CHANGING = _Shape("fan-in 100:1, topics change (10 each)", "fan/in/{p:03d}/{i}", ("fan/in/#",), 100, each=10)
_OUT = _Shape("fan-out 1:100", "fan/out", fan=100)
_OUT_CHANGING = _Shape("fan-out 1:100, topics change (1,000)", "turn/{i:04d}", ("turn/#",) * 100, fan=100, each=1_000)
_MANY = _Shape(
    "100k topics, each to 2 of 20 wildcard subscribers", "many/{ones}/{tens}/{rest:03d}",
    tuple(f"many/{n}/#" for n in range(10)) + tuple(f"many/+/{n}/+" for n in range(10)), fan=2, each=100_000,
)  # fmt: skip


def _saturated(
    name: str,
    shape: _Shape,
    *,
    payload: int = 64,
    qos: int = 0,
    version: int = 4,
    group: str = "throughput",
    everyone: bool = False,
) -> Workload:
    is_kept = group == "durable"
    size = f"{payload} B" if payload < 1024 else f"{payload // 1024} kB"
    how = ", sessions stay" if is_kept else ", MQTT 5" if version == 5 else ""
    return Workload(
        name=name,
        title=f"{shape.title}, QoS {qos}, {size}{how}",
        group=group,
        job=lambda effort: Saturate(
            publishers=shape.publishers,
            filters=shape.filters or (shape.pattern,) * shape.fan,
            topics=Topics(pattern=shape.pattern, each=shape.each),
            fan=shape.fan,
            payload=payload,
            qos=qos,
            version=version,
            seconds=effort.seconds,
            keeps_sessions=is_kept,
        ),
        repetitions=5 if group == "payloads" else None,
        pair_only=not everyone,
        qos=qos,
        version=version,
        durable=is_kept,
        fresh=is_kept,
        anew=group == "payloads",
    )


def _sized(kilobytes: int) -> tuple[Workload, Workload]:
    """A payload of this size, to one subscriber and to a hundred."""
    shapes = (("1to1", _Shape("1:1", "sized/1to1")), ("fanout", _Shape("fan-out 1:100", "sized/fanout", fan=100)))
    one, out = (
        _saturated(
            f"qos0-{name}-{kilobytes}kB", shape, payload=kilobytes * 1024, group="payloads",
            everyone=kilobytes == 16 and shape.fan == 1,
        )
        for name, shape in shapes
    )  # fmt: skip
    return one, out


def _paced(
    clients: int, per_second: int, *, tls: bool = False, first: bool = False, everyone: bool = False
) -> Workload:
    """Many clients with pauses between their messages: batching helps least here."""

    def lasts_s(effort: BrokerEffort) -> float:
        connecting = clients * (_HANDSHAKE_S if tls else _CONNECT_S)
        return 0.5 + clients / 2_000 + connecting + (1 / per_second if first else effort.paced_s)

    return Workload(
        name=f"paced-{clients}x{per_second}" + ("-tls" if tls else "") + ("-first" if first else ""),
        title=f"{clients:,} clients x {per_second} msg/s, {'TLS' if tls else 'TCP'}"
        + (", each for the first time" if first else ""),
        group="paced",
        job=lambda effort: PacedClients(
            clients=clients, per_second=per_second, seconds=effort.paced_s, tls=tls, first=first
        ),
        lasts_s=lasts_s,
        pair_only=not everyone,
        tls=tls,
        repetitions=5,
    )


def _idle(name: str, kind: str, *, tls: bool) -> Workload:
    """Memory hardly varies, so once is enough."""

    def count(effort: BrokerEffort) -> int:
        return effort.idle_tls if tls else effort.idle

    return Workload(
        name=name,
        title=f"idle connections, {kind}",
        group="connections",
        job=lambda effort: HoldIdle(connections=count(effort), tls=tls),
        lasts_s=lambda effort: 3.0 + (_HANDSHAKE_S if tls else 2 * _CONNECT_S) * count(effort),
        tls=tls,
        fresh=True,
        repetitions=1,
    )


WORKLOADS: tuple[Workload, ...] = (
    _saturated("qos0-1to1", _ONE, everyone=True),
    _saturated("qos0-1to1-16B", _ONE, payload=16),
    _saturated("qos0-1to1-256B", _ONE, payload=256),
    _saturated("qos0-1to1-v5", _ONE, version=5),
    _saturated("qos0-1to1-topics", _ONE_CHANGING, everyone=True),
    _saturated("qos0-fanin", _IN, everyone=True),
    _saturated("qos0-fanin-topics", _IN_CHANGING),
    _saturated("qos0-fanout", _OUT, everyone=True),
    _saturated("qos0-fanout-topics", _OUT_CHANGING),
    _saturated("qos0-many-topics", _MANY, everyone=True),
    *(workload for kilobytes in (1, 4, 16, 64, 256) for workload in _sized(kilobytes)),
    _saturated("qos0-4to4", _pairs(4)),
    _saturated("qos0-10to10", _pairs(10), payload=256, everyone=True),
    _saturated("qos1-1to1", _ONE, qos=1, everyone=True),
    _saturated("qos1-fanin", _IN, qos=1),
    _saturated("qos1-fanout", _OUT, qos=1),
    _saturated("qos1-10to10", _pairs(10), payload=256, qos=1),
    _saturated("qos2-1to1", _ONE, qos=2, everyone=True),
    _saturated("qos2-fanout", _OUT, qos=2),
    Workload(
        name="first",
        title="first message of each of 20k topics, QoS 0, 64 B",
        group="first",
        job=lambda effort: FirstMessages(topics=effort.topics),
        lasts_s=lambda _effort: 2.0,
    ),
    Workload(
        name="latency",
        title="ping-pong, QoS 0, 64 B",
        group="latency",
        job=lambda effort: PingPong(messages=effort.round_trips),
        lasts_s=lambda effort: 0.2 + 1e-4 * effort.round_trips,
        pair_only=False,
    ),
    _paced(200, 1),
    _paced(200, 50, everyone=True),
    _paced(1_000, 1),
    _paced(1_000, 1, first=True),
    _paced(1_000, 10),
    _paced(200, 50, tls=True),
    _paced(1_000, 10, tls=True),
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
    _idle("idle", "TCP", tls=False),
    _idle("idle-tls", "TLS", tls=True),
    # a hundred thousand subscriptions that do not match: a PUBLISH should not notice them
    Workload(
        name="filters",
        title="PUBLISH beside 100k filters that do not match",
        group="filters",
        job=lambda effort: BystandingFilters(filters=effort.filters, seconds=effort.seconds),
        lasts_s=lambda effort: 6.0 + 4 * effort.seconds,
        fresh=True,
    ),
    _saturated("durable-1to1", _Shape("1:1", "kept/one"), qos=1, group="durable"),
    _saturated("durable-fanin", _Shape("fan-in 100:1", "kept/in/{p:03d}", ("kept/in/#",), 100), qos=1, group="durable"),
    _saturated("durable-fanout", _Shape("fan-out 1:100", "kept/out", fan=100), qos=1, group="durable"),
    Workload(
        name="durable-latency",
        title="send to PUBACK, one at a time, QoS 1, 64 B",
        group="promise",
        job=lambda effort: Assure(messages=effort.round_trips // 5),
        lasts_s=lambda _effort: 3.5,
        qos=1,
        durable=True,
        fresh=True,
    ),
)
#: What can be run alone: the tables of the report.
PARTS: tuple[str, ...] = tuple(dict.fromkeys(one.group for one in WORKLOADS))
