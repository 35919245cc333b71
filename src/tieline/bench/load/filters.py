"""Does a PUBLISH cost more because of subscriptions that do not match it?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tieline.bench.load.clients import clients, subscribe
from tieline.bench.load.endpoint import Endpoint
from tieline.bench.load.job import Metrics
from tieline.bench.load.saturate import Saturate, Topics

_FILTERS_EACH = 1_000
#: Literal, with wildcards inside, and with a wildcard first: a matcher may treat each kind differently.
_SHAPES = ("other/{n}/state", "other/+/{n}/#", "+/{n}/+/state")


@dataclass(frozen=True, slots=True, kw_only=True)
class BystandingFilters:
    """The same publisher without and with so many subscriptions that never match."""

    filters: int
    seconds: float

    @property
    def patience_s(self) -> float:
        """Four spells and the subscribing."""
        return 90.0 + 16 * self.seconds

    def run(self, at: Endpoint) -> Metrics:
        """CPU of a PUBLISH before and after, for one topic and for topics that change with every message."""
        one, many = self._load(1), self._load(20_000)
        one_before, many_before = one.run(at), many.run(at)
        names = [f"bystander{number}" for number in range(-(-self.filters // _FILTERS_EACH))]
        with clients(at, names) as socks:
            upcoming = _filters(self.filters)
            for sock in socks:
                subscribe(sock, [name for _, name in zip(range(_FILTERS_EACH), upcoming, strict=False)])
            one_after, many_after = one.run(at), many.run(at)
        return {
            "filters": self.filters,
            "cpu_us_inbound": one_after["cpu_us_inbound"],
            "ratio_one_topic": one_after["cpu_us_inbound"] / one_before["cpu_us_inbound"],
            "ratio_many_topics": many_after["cpu_us_inbound"] / many_before["cpu_us_inbound"],
            "ratio_cold": many_after["cpu_us_cold"] / many_before["cpu_us_cold"],
            "cpu_us_cold": many_after["cpu_us_cold"],
            "broker_cores": one_after["broker_cores"],
            "generator_cores": one_after["generator_cores"],
        }

    def _load(self, topics: int) -> Saturate:
        pattern = "busy/{ones}/{tens}/{rest:03d}"
        return Saturate(
            publishers=1,
            filters=("busy/#",),
            topics=Topics(pattern=pattern, each=topics),
            payload=64,
            qos=0,
            seconds=self.seconds,
        )


def _filters(count: int) -> Iterator[str]:
    for number in range(count):
        yield _SHAPES[number % len(_SHAPES)].format(n=number)
