"""Saturated workloads: 1:1, fan-in, fan-out, pairs and many topics, at QoS 0, 1 and 2, also for sessions that stay.

Brokers may profit from runs of messages to one topic in one chunk.  In the rows "topics change" there are none:
consecutive messages always differ in topic.

Where sessions stay, Tieline writes every acknowledged message to its disk before it acknowledges it.  mosquitto with
persistence keeps sessions in memory and writes them every half hour and at the end; a power cut in between takes what
it acknowledged.  Those rows say what the difference costs.
"""

from __future__ import annotations

from tieline.bench.broker.workload import BrokerEffort, Workload
from tieline.bench.load.saturate import Saturate, Topics

_TENS = range(10)


def _saturated(  # the columns of the lists below
    name: str,
    title: str,
    topics: Topics,
    *,
    filters: tuple[str, ...] = (),
    publishers: int = 1,
    fan: int = 1,
    payload: int = 64,
    qos: int = 0,
    version: int = 4,
    group: str = "throughput",
    repetitions: int | None = None,
    everyone: bool = False,
) -> Workload:
    """Without filters everybody subscribes to the one topic."""

    def job(effort: BrokerEffort) -> Saturate:
        return Saturate(
            publishers=publishers,
            filters=filters or (topics.pattern,) * fan,
            topics=topics,
            fan=fan,
            payload=payload,
            qos=qos,
            version=version,
            seconds=effort.seconds,
            keeps_sessions=group == "durable",
        )

    size = f"{payload} B" if payload < 1024 else f"{payload // 1024} kB"
    how = {"durable": ", sessions stay"}.get(group, ", MQTT 5" if version == 5 else "")
    return Workload(
        name=name,
        title=f"{title}, QoS {qos}, {size}{how}",
        group=group,
        job=job,
        repetitions=repetitions,
        pair_only=not everyone,
        qos=qos,
        version=version,
        durable=group == "durable",
        fresh=group == "durable",
        anew=group == "payloads",
    )


def _one_to_one(name: str, *, payload: int = 64, qos: int = 0, version: int = 4, everyone: bool = False) -> Workload:
    topics = Topics(pattern="one/to/one")
    return _saturated(name, "1:1", topics, payload=payload, qos=qos, version=version, everyone=everyone)


def _fan_in(name: str, *, qos: int = 0, everyone: bool = False) -> Workload:
    topics, filters = Topics(pattern="fan/in/{p:03d}"), ("fan/in/#",)
    return _saturated(name, "fan-in 100:1", topics, filters=filters, publishers=100, qos=qos, everyone=everyone)


def _fan_out(name: str, *, qos: int = 0, everyone: bool = False) -> Workload:
    return _saturated(name, "fan-out 1:100", Topics(pattern="fan/out"), fan=100, qos=qos, everyone=everyone)


def _sized(kilobytes: int, *, everyone: bool = False) -> tuple[Workload, Workload]:
    """A payload of this size, to one subscriber and to a hundred."""

    def shape(name: str, title: str, fan: int, *, everyone: bool) -> Workload:
        return _saturated(
            f"qos0-{name}-{kilobytes}kB",
            title,
            Topics(pattern=f"sized/{name}"),
            fan=fan,
            payload=kilobytes * 1024,
            group="payloads",
            repetitions=5,
            everyone=everyone,
        )

    return shape("1to1", "1:1", 1, everyone=everyone), shape("fanout", "fan-out 1:100", 100, everyone=False)


def _pairs(name: str, pairs: int, *, payload: int, qos: int = 0, everyone: bool = False) -> Workload:
    return _saturated(
        name,
        f"{pairs}:{pairs} pairs",
        Topics(pattern="pair/{p:02d}"),
        filters=tuple(f"pair/{number:02d}" for number in range(pairs)),
        publishers=pairs,
        payload=payload,
        qos=qos,
        everyone=everyone,
    )


THROUGHPUT = (
    _one_to_one("qos0-1to1", everyone=True),
    _one_to_one("qos0-1to1-16B", payload=16),
    _one_to_one("qos0-1to1-256B", payload=256),
    _one_to_one("qos0-1to1-v5", version=5),
    _saturated(
        "qos0-1to1-topics",
        "1:1, topics change (1,000)",
        Topics(pattern="turn/{i:04d}", each=1_000),
        filters=("turn/#",),
        everyone=True,
    ),
    _fan_in("qos0-fanin", everyone=True),
    _saturated(
        "qos0-fanin-topics",
        "fan-in 100:1, topics change (10 each)",
        Topics(pattern="fan/in/{p:03d}/{i}", each=10),
        filters=("fan/in/#",),
        publishers=100,
    ),
    _fan_out("qos0-fanout", everyone=True),
    _saturated(
        "qos0-fanout-topics",
        "fan-out 1:100, topics change (1,000)",
        Topics(pattern="turn/{i:04d}", each=1_000),
        filters=("turn/#",) * 100,
        fan=100,
    ),
    _saturated(
        "qos0-many-topics",
        "100k topics, each to 2 of 20 wildcard subscribers",
        Topics(pattern="many/{ones}/{tens}/{rest:03d}", each=100_000),
        filters=tuple(f"many/{n}/#" for n in _TENS) + tuple(f"many/+/{n}/+" for n in _TENS),
        fan=2,
        everyone=True,
    ),
    *_sized(1),
    *_sized(4),
    *_sized(16, everyone=True),
    *_sized(64),
    *_sized(256),
    _pairs("qos0-4to4", 4, payload=64),
    _pairs("qos0-10to10", 10, payload=256, everyone=True),
    _one_to_one("qos1-1to1", qos=1, everyone=True),
    _fan_in("qos1-fanin", qos=1),
    _fan_out("qos1-fanout", qos=1),
    _pairs("qos1-10to10", 10, payload=256, qos=1),
    _one_to_one("qos2-1to1", qos=2, everyone=True),
    _fan_out("qos2-fanout", qos=2),
)
DURABLE = (
    _saturated("durable-1to1", "1:1", Topics(pattern="kept/one"), qos=1, group="durable"),
    _saturated(
        "durable-fanin",
        "fan-in 100:1",
        Topics(pattern="kept/in/{p:03d}"),
        filters=("kept/in/#",),
        publishers=100,
        qos=1,
        group="durable",
    ),
    _saturated("durable-fanout", "fan-out 1:100", Topics(pattern="kept/out"), fan=100, qos=1, group="durable"),
)
