"""What a message costs whose topic the broker has not seen before."""

from __future__ import annotations

from tieline.bench.load.saturate import FirstMessages
from tieline.bench.workloads.workload import Effort, Workload


def _first(effort: Effort) -> FirstMessages:
    return FirstMessages(topics=effort.topics)


FIRST = (
    Workload(
        name="first",
        title="first message of each of 20k topics, QoS 0, 64 B",
        group="first",
        job=_first,
        shown=("cpu_us_first", "cpu_us_later", "ratio_first"),
        quick=True,
        once_if_quick=True,
    ),
)
