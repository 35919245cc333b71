"""The parts of the matching benchmark, what is measured in each, and with how much effort."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tieline.bench.match.engines import ENGINES, OurIndex, Rtree, Scan, present_engines
from tieline.bench.match.shapes import SPREADS, Spread
from tieline.bench.match.workload import Configuration, counted

PARTS: Final = {
    "engine": "the index alone, beside brute force, rtree and a scan of predicates: latency, batches, exactness",
    "update": "what changes of the index cost: insert, delete, build, rebuild, memory",
    "end": "a broker with 100k conditions and real sockets, beside one with plain topics",
}
#: Numbers of subscriptions.
SMALL, MANY, LARGE = 3_000, 100_000, 1_000_000
#: The configuration that goals and pictures are about; 3 attributes, 0.1 %.
HEADLINE: Final = Configuration(subscriptions=LARGE, attributes=3, selectivity=0.001)
COLUMNS: Final = (
    *(
        Configuration(subscriptions=LARGE, attributes=attributes, selectivity=selectivity)
        for attributes in (2, 3, 6)
        for selectivity in (0.0001, 0.001, 0.01)
    ),
    Configuration(subscriptions=LARGE, attributes=3, selectivity=0.001, kind="G"),
)
CONFIGURATIONS: Final = tuple(
    column.with_subscriptions(number) for number in (SMALL, MANY, LARGE) for column in COLUMNS
)
_EXTREMES: Final = (COLUMNS[0], COLUMNS[8])


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchEffort:
    """How much is done."""

    configurations: Sequence[Configuration]
    #: Passes over the events, and seconds for them; the batches get as long again.
    passes: int
    search_s: float
    #: Sizes and attributes of the indexes whose changes are measured.
    update_sizes: Sequence[int]
    update_attributes: Sequence[int]
    #: The most subscriptions that are also scanned predicate by predicate; reading them takes longest of all.
    scanned: int
    spreads: Sequence[Spread]
    #: Subscriptions, clients that hold them, and events, in brokers.
    conditions: int
    clients: int
    events: int
    #: Whether brokers are also measured as if numba were not installed, where it is.
    without_numba: bool
    spell_s: float
    beside_s: float
    repetitions: int

    def searches(self) -> list[tuple[Configuration, list[str]]]:
        """Configurations, and the engines that are measured in each."""
        return [
            (
                configuration,
                [
                    name
                    for name in present_engines()
                    if ENGINES[name].takes(configuration)
                    and (name != Scan.name or configuration.subscriptions <= self.scanned)
                ],
            )
            for configuration in self.configurations
        ]

    def updates(self) -> list[tuple[Configuration, list[str]]]:
        """The same for changes: what can be changed at all."""
        changeable = [name for name in present_engines() if issubclass(ENGINES[name], OurIndex | Rtree)]
        wanted = [
            Configuration(subscriptions=number, attributes=attributes, selectivity=HEADLINE.selectivity)
            for number in self.update_sizes
            for attributes in self.update_attributes
        ]
        return [(each, [name for name in changeable if ENGINES[name].takes(each)]) for each in wanted]


FULL: Final = MatchEffort(
    configurations=CONFIGURATIONS,
    passes=4,
    search_s=0.6,
    update_sizes=(SMALL, MANY, LARGE),
    update_attributes=(2, 3, 6),
    scanned=MANY,
    spreads=SPREADS,
    conditions=MANY,
    clients=100,
    events=16_384,
    without_numba=True,
    spell_s=1.0,
    beside_s=0.3,
    repetitions=5,
)
QUICK: Final = MatchEffort(
    configurations=(
        *(column.with_subscriptions(SMALL) for column in _EXTREMES),
        *(HEADLINE.with_subscriptions(number) for number in (SMALL, MANY, LARGE)),
    ),
    passes=3,
    search_s=0.3,
    update_sizes=(SMALL, MANY, LARGE),
    update_attributes=(3,),
    scanned=SMALL,
    spreads=SPREADS,
    conditions=MANY,
    clients=100,
    events=16_384,
    without_numba=False,
    spell_s=0.5,
    beside_s=0.2,
    repetitions=2,
)


def update_name(configuration: Configuration) -> str:
    """The key of rows about changes."""
    return f"update-{configuration.name}"


def end_name(spread: Spread, conditions: int) -> str:
    """The key of rows about brokers."""
    return f"end-{spread.replace(' ', '-')}-{counted(conditions)}"
