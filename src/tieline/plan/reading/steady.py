"""Traffic that is measured again and again, without its noise: a plan should follow what lasts.

Theory of operation
-------------------
Each flow has a rate that goes half of the way to what the last look has seen of it; a new flow begins with what was
seen.  A flow that is silent fades, and is forgotten after a few looks, so that a publisher that speaks once in a while
does not come and go in every plan.  Subscriptions are those of the last look.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from tieline.core.figures.demand import DemandRow
from tieline.plan.reading.running import Survey

#: The share of the last look in a rate.
_NEW: Final = 0.5
#: A flow that was silent for so many looks in a row is forgotten.
SILENT_LOOKS: Final = 5
#: Rates are told as counts, so that they are told for so many seconds.
_SECONDS: Final = 1_000.0

_Key = tuple[str, str]


class _Flow:
    """One publisher and topic at one broker, per second."""

    __slots__ = ("bytes", "level", "messages", "silent")

    def __init__(self, level: int, messages: float, size: float) -> None:
        self.level = level
        self.messages = messages
        self.bytes = size
        self.silent = 0


class Steadied:
    """What all brokers are asked to carry, over several looks."""

    def __init__(self) -> None:
        self._flows: dict[str, dict[_Key, _Flow]] = {}

    def after(self, surveys: Iterable[Survey]) -> list[Survey]:
        """What to plan for, after one more look; brokers that were not looked at are forgotten."""
        found = [*surveys]
        self._flows = {survey.broker: self._flows.get(survey.broker, {}) for survey in found}
        return [self._after(survey) for survey in found]

    def _after(self, survey: Survey) -> Survey:
        flows = self._flows[survey.broker]
        seen = {(row.publisher, row.topic): row for row in survey.flows}
        for key, row in seen.items():
            messages, size = row.messages / survey.seconds, row.bytes / survey.seconds
            flow = flows.get(key)
            if flow is None:
                flows[key] = _Flow(row.level, messages, size)
                continue
            flow.level, flow.silent = row.level, 0
            flow.messages += _NEW * (messages - flow.messages)
            flow.bytes += _NEW * (size - flow.bytes)
        for key in [key for key in flows if key not in seen]:
            flow = flows[key]
            flow.silent += 1
            flow.messages *= 1 - _NEW
            flow.bytes *= 1 - _NEW
            if flow.silent >= SILENT_LOOKS:
                del flows[key]
        return Survey(
            broker=survey.broker,
            seconds=_SECONDS,
            unnamed=survey.unnamed,
            flows=[
                DemandRow(publisher, topic, flow.level, round(flow.messages * _SECONDS), round(flow.bytes * _SECONDS))
                for (publisher, topic), flow in flows.items()
            ],
            subscriptions=survey.subscriptions,
        )
