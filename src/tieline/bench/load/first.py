"""The first message of a topic beside a later one: whoever remembers where a topic leads has to find out once."""

from __future__ import annotations

import time
from dataclasses import dataclass

from tieline.bench.load.endpoint import Endpoint
from tieline.bench.load.job import Metrics
from tieline.bench.load.saturate import Saturate, Topics
from tieline.bench.measure import Meter

_AT_MOST_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstMessages:
    """So many topics that nobody has used before, one message to each, and then another."""

    topics: int

    @property
    def patience_s(self) -> float:
        """Three rounds at most."""
        return 30.0 + 3 * _AT_MOST_S

    def run(self, at: Endpoint) -> Metrics:
        """CPU of a PUBLISH in the first round and in the second."""
        # a broker that runs already may know topics from before, and must have done this work before
        since = time.monotonic_ns() & 0xFFFFFFFF
        self._load(f"early/{since:08x}").run(at)
        with self._load(f"first/{since:08x}").flow(at) as flow:
            rounds = []
            for _ in range(2):
                meter = Meter(at.pid)
                volume = flow.spell(0.0, rounds=1, at_most_s=_AT_MOST_S)
                rounds.append((meter.read(), volume.published))
            checked = flow.check()
        first, later = (reading.broker_s * 1e6 / published for reading, published in rounds)
        return {
            "cpu_us_first": first,
            "cpu_us_later": later,
            "ratio_first": first / later,
            "delivered": sum(published for _, published in rounds),
            "checked": checked,
            **rounds[0][0].shares(),
        }

    def _load(self, name: str) -> Saturate:
        return Saturate(
            publishers=1,
            filters=(f"{name}/#",),
            topics=Topics(pattern=f"{name}/{{i:06d}}", each=self.topics),
            payload=64,
            qos=0,
            seconds=0.1,
        )
