"""What can happen to a microgrid, and how often: scripted, or drawn from a seed, day by day."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

DAY_S: Final = 86_400

FaultKind = Literal["phase-ground", "phase-phase", "three-phase"]
_FAULT_KINDS: Final[tuple[FaultKind, ...]] = ("phase-ground", "phase-phase", "three-phase")
_FAULT_ODDS: Final = (0.7, 0.2, 0.1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Islanding:
    """The microgrid loses the grid outside, which gave it ``deficit`` of its load, and gets it back."""

    at_s: float
    duration_s: float = 180.0
    deficit: float = 0.6
    #: Steps of load while it is alone: seconds after the separation, share of the load.
    load_steps: tuple[tuple[float, float], ...] = ((45.0, 0.15), (75.0, -0.15))


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A short circuit at a node: its feeder's breaker trips, and closes again after a dead time.

    A lasting one makes it trip again; then somebody has to go and repair it.
    """

    at_s: float
    node: str
    kind: FaultKind = "phase-ground"
    resistance_ohm: float = 0.02
    clearing_s: float = 0.25
    dead_s: float = 5.0
    repair_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Upset:
    """A change of voltage to ``factor`` of what it was: from outside, or at one node (a motor starts, a load trips)."""

    at_s: float
    node: str | None
    factor: float
    duration_s: float


Happening = Islanding | Fault | Upset


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """How often things happen by themselves, in a week; the last two at each node."""

    islandings: float = 0.5
    faults: float = 1.0
    upsets: float = 2.0
    local_dips: float = 0.4
    local_swells: float = 0.2


QUIET: Final = Rates(islandings=0, faults=0, upsets=0, local_dips=0, local_swells=0)


def draw_day(day: int, *, seed: int, rates: Rates, nodes: tuple[str, ...]) -> Iterator[Happening]:
    """What happens by itself on one day since 1970: a Poisson process for each cause, the same for the same seed."""
    rng = np.random.default_rng([seed, day, 1])

    def moments(per_week: float) -> list[float]:
        return [DAY_S * (day + float(part)) for part in rng.random(rng.poisson(per_week / 7))]

    for at_s in moments(rates.islandings):
        length, deficit = float(rng.uniform(60, 900)), float(rng.uniform(0.3, 0.8))
        yield Islanding(at_s=at_s, duration_s=length, deficit=deficit)
    for at_s in moments(rates.faults):
        yield Fault(
            at_s=at_s,
            node=nodes[int(rng.integers(len(nodes)))],
            kind=_FAULT_KINDS[int(rng.choice(len(_FAULT_KINDS), p=_FAULT_ODDS))],
            resistance_ohm=float(rng.uniform(0.005, 0.05)),
            clearing_s=float(rng.uniform(0.08, 0.6)),
            dead_s=float(rng.choice([0.5, 5.0, 30.0])),
            repair_s=float(rng.uniform(600, 3_600)) if rng.random() < 0.2 else None,
        )
    for at_s in moments(rates.upsets):
        yield Upset(at_s=at_s, node=None, factor=float(rng.uniform(0.45, 0.93)), duration_s=_length(rng))
    for node in nodes:
        for at_s in moments(rates.local_dips):
            yield Upset(at_s=at_s, node=node, factor=float(rng.uniform(0.7, 0.92)), duration_s=_length(rng))
        for at_s in moments(rates.local_swells):
            yield Upset(at_s=at_s, node=node, factor=float(rng.uniform(1.08, 1.25)), duration_s=_length(rng))


def _length(rng: np.random.Generator) -> float:
    """Seconds: most upsets are over in a few tenths, some last for several seconds; never less than half a period."""
    return float(np.clip(rng.lognormal(mean=np.log(0.25), sigma=1.0), 0.01, 30.0))
