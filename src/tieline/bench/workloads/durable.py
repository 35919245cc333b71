"""QoS 1 for sessions that stay, with a store: the promise of an acknowledgement, and what keeping it costs.

Tieline writes every acknowledged message to its disk before it acknowledges it.  mosquitto with persistence keeps
sessions in memory and writes them every half hour and at the end; a power cut in between takes what it acknowledged.
The rows say what the difference costs.
"""

from __future__ import annotations

from tieline.bench.load.one_at_a_time import Assure
from tieline.bench.load.saturate import Saturate, Topics
from tieline.bench.workloads.workload import Effort, Workload

GROUP = "durable"


def _kept(
    name: str,
    title: str,
    *,
    filters: tuple[str, ...],
    topics: Topics,
    publishers: int = 1,
    fan: int = 1,
    quick: bool = False,
) -> Workload:
    def job(effort: Effort) -> Saturate:
        return Saturate(
            publishers=publishers,
            filters=filters,
            topics=topics,
            fan=fan,
            payload=64,
            qos=1,
            seconds=effort.seconds,
            keeps_sessions=True,
        )

    return Workload(
        name=name,
        title=f"{title}, QoS 1, 64 B, sessions stay",
        group=GROUP,
        job=job,
        shown=("rate", "cpu_us_delivered"),
        quick=quick,
        once_if_quick=True,
        qos=1,
        durable=True,
        fresh=True,
    )


def _promise(effort: Effort) -> Assure:
    return Assure(messages=effort.round_trips // 5)


DURABLE = (
    _kept("durable-1to1", "1:1", filters=("kept/one",), topics=Topics(pattern="kept/one"), quick=True),
    _kept(
        "durable-fanin",
        "fan-in 100:1",
        publishers=100,
        filters=("kept/in/#",),
        topics=Topics(pattern="kept/in/{p:03d}"),
    ),
    _kept(
        "durable-fanout",
        "fan-out 1:100",
        filters=("kept/out",) * 100,
        topics=Topics(pattern="kept/out"),
        fan=100,
        quick=True,
    ),
    Workload(
        name="durable-latency",
        title="send to PUBACK, one at a time, QoS 1, 64 B",
        group="promise",
        job=_promise,
        shown=("p50_us", "p99_us"),
        qos=1,
        durable=True,
        fresh=True,
    ),
)
