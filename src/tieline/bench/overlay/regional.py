"""Regions of simulated brokers behind gateways: the part ``regions`` of the benchmark.

The code is the shipped one, whole brokers in virtual time: messages, bytes and delays are those of the simulated links,
and do not depend on the machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Final

from tieline.bench.suite.declaration import Running
from tieline.bench.suite.results import Row
from tieline.sim.region_measures import Regions
from tieline.sim.region_network import OVERHEAD

#: Brokers of each region beside its gateway.
MEMBERS: Final = 31
_EVERY_S: Final = 4.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RegionalEffort:
    """How much is done."""

    regions: tuple[int, ...]
    events: int
    replaced: int


FULL: Final = RegionalEffort(regions=(4, 8, 16, 32), events=10, replaced=4)
QUICK: Final = RegionalEffort(regions=(2, 4), events=5, replaced=2)


def brokers_of(regions: int) -> int:
    """All brokers, gateways among them."""
    return regions * (MEMBERS + 1)


def measure_regions(regions: int, effort: RegionalEffort, run: Running, rows: list[Row]) -> None:
    """Publications, what is known, and brokers that are replaced."""
    (row,) = rows
    with run.failing(rows):
        run.step(f"{row.title}: everybody finds everybody")
        world = Regions(regions, MEMBERS, Random(1))
        spread = world.spread(effort.events, OVERHEAD)
        known = {each: world.known_bytes(of_gateways=each) for each in (False, True)}
        churned = world.churn(effort.replaced, _EVERY_S)
        row.repetitions.append(
            {
                "receivers": spread.receivers,
                "messages": spread.messages,
                "per_receiver": spread.messages / spread.receivers if spread.receivers else 0.0,
                "link_bytes": spread.bytes,
                "missed": spread.missed,
                "hops": spread.hops,
                "last_ms": spread.last_ms,
                "table_bytes": known[False],
                "gateway_bytes": known[True],
                "granted_ms": 1e3 * churned.granted_s,
                "told_bytes": churned.told_bytes,
                "told_elsewhere": churned.told_elsewhere,
                "churn_missed": churned.missed + churned.doubled,
            }
        )
