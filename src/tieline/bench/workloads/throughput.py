"""Saturated workloads: 1:1, fan-in, fan-out, pairs and many topics, at QoS 0, 1 and 2."""

from __future__ import annotations

from tieline.bench.load.saturate import Saturate, Topics
from tieline.bench.workloads.workload import Effort, Workload

_SHOWN = ("rate", "cpu_us_delivered")
_TENS = range(10)


def _saturated(
    name: str,
    title: str,
    *,
    filters: tuple[str, ...],
    topics: Topics,
    publishers: int = 1,
    fan: int = 1,
    payload: int = 64,
    qos: int = 0,
    version: int = 4,
    group: str = "throughput",
    repetitions: int | None = None,
    anew: bool = False,
    everyone: bool = False,
    quick: bool = False,
) -> Workload:
    def job(effort: Effort) -> Saturate:
        return Saturate(
            publishers=publishers,
            filters=filters,
            topics=topics,
            fan=fan,
            payload=payload,
            qos=qos,
            version=version,
            seconds=effort.seconds,
        )

    size = f"{payload} B" if payload < 1024 else f"{payload // 1024} kB"
    protocol = ", MQTT 5" if version == 5 else ""
    return Workload(
        name=name,
        title=f"{title}, QoS {qos}, {size}{protocol}",
        group=group,
        job=job,
        shown=_SHOWN,
        repetitions=repetitions,
        anew=anew,
        pair_only=not everyone,
        quick=quick,
        qos=qos,
        version=version,
    )


def _one_to_one(
    name: str, *, payload: int = 64, qos: int = 0, version: int = 4, everyone: bool = False, quick: bool = False
) -> Workload:
    return _saturated(
        name,
        "1:1",
        filters=("one/to/one",),
        topics=Topics(pattern="one/to/one"),
        payload=payload,
        qos=qos,
        version=version,
        everyone=everyone,
        quick=quick,
    )


def _fan_in(name: str, *, qos: int = 0, everyone: bool = False) -> Workload:
    return _saturated(
        name,
        "fan-in 100:1",
        publishers=100,
        filters=("fan/in/#",),
        topics=Topics(pattern="fan/in/{p:03d}"),
        qos=qos,
        everyone=everyone,
        quick=True,
    )


def _fan_out(name: str, *, qos: int = 0, everyone: bool = False, quick: bool = False) -> Workload:
    return _saturated(
        name,
        "fan-out 1:100",
        filters=("fan/out",) * 100,
        topics=Topics(pattern="fan/out"),
        fan=100,
        qos=qos,
        everyone=everyone,
        quick=quick,
    )


def _sized(kilobytes: int, *, everyone: bool = False, quick: bool = False) -> tuple[Workload, Workload]:
    """A payload of this size, to one subscriber and to a hundred."""

    def shape(name: str, title: str, fan: int, *, everyone: bool) -> Workload:
        return _saturated(
            f"qos0-{name}-{kilobytes}kB",
            title,
            filters=(f"sized/{name}",) * fan,
            topics=Topics(pattern=f"sized/{name}"),
            fan=fan,
            payload=kilobytes * 1024,
            group="payloads",
            repetitions=5,
            anew=True,
            everyone=everyone,
            quick=quick,
        )

    return shape("1to1", "1:1", 1, everyone=everyone), shape("fanout", "fan-out 1:100", 100, everyone=False)


def _pairs(name: str, pairs: int, *, payload: int, qos: int = 0, everyone: bool = False) -> Workload:
    return _saturated(
        name,
        f"{pairs}:{pairs} pairs",
        publishers=pairs,
        filters=tuple(f"pair/{number:02d}" for number in range(pairs)),
        topics=Topics(pattern="pair/{p:02d}"),
        payload=payload,
        qos=qos,
        everyone=everyone,
    )


#: Brokers may profit from runs of messages to one topic in one chunk.  In the rows "topics change" there are none:
#: consecutive messages always differ in topic.
THROUGHPUT = (
    _one_to_one("qos0-1to1", everyone=True, quick=True),
    _one_to_one("qos0-1to1-16B", payload=16),
    _one_to_one("qos0-1to1-256B", payload=256),
    _one_to_one("qos0-1to1-v5", version=5),
    _saturated(
        "qos0-1to1-topics",
        "1:1, topics change (1,000)",
        filters=("turn/#",),
        topics=Topics(pattern="turn/{i:04d}", each=1_000),
        everyone=True,
        quick=True,
    ),
    _fan_in("qos0-fanin", everyone=True),
    _saturated(
        "qos0-fanin-topics",
        "fan-in 100:1, topics change (10 each)",
        publishers=100,
        filters=("fan/in/#",),
        topics=Topics(pattern="fan/in/{p:03d}/{i}", each=10),
    ),
    _fan_out("qos0-fanout", everyone=True, quick=True),
    _saturated(
        "qos0-fanout-topics",
        "fan-out 1:100, topics change (1,000)",
        filters=("turn/#",) * 100,
        topics=Topics(pattern="turn/{i:04d}", each=1_000),
        fan=100,
    ),
    _saturated(
        "qos0-many-topics",
        "100k topics, each to 2 of 20 wildcard subscribers",
        publishers=1,
        filters=tuple(f"many/{n}/#" for n in _TENS) + tuple(f"many/+/{n}/+" for n in _TENS),
        topics=Topics(pattern="many/{ones}/{tens}/{rest:03d}", each=100_000),
        fan=2,
        everyone=True,
    ),
    *_sized(1),
    *_sized(4),
    *_sized(16, everyone=True),
    *_sized(64, quick=True),
    *_sized(256),
    _pairs("qos0-4to4", 4, payload=64),
    _pairs("qos0-10to10", 10, payload=256, everyone=True),
    _one_to_one("qos1-1to1", qos=1, everyone=True, quick=True),
    _fan_in("qos1-fanin", qos=1),
    _fan_out("qos1-fanout", qos=1, quick=True),
    _pairs("qos1-10to10", 10, payload=256, qos=1),
    _one_to_one("qos2-1to1", qos=2, everyone=True),
    _fan_out("qos2-fanout", qos=2),
)
