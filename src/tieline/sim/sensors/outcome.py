"""What came of a run: who received what and when, what it cost, and when the network died by each definition."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Self

import numpy as np

from tieline.sim.sensors.air import ACCOUNTS, COUNTERS
from tieline.sim.sensors.radio import Radio
from tieline.sim.sensors.world import World

_WINDOW_S: Final = 20.0
#: Windows with fewer wanted deliveries than this say nothing.
_FEW: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Lifetime:
    """Seconds until the network died; four definitions, because each rewards something else."""

    first_death: float
    tenth_dead: float
    half_dead: float
    #: The end of the first 20 s in which more than half of what was wanted never arrived.
    loss: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The figures of one run."""

    #: Deliveries that were wanted of events that happened, and how many of them took place.
    wanted: int
    delivered: int
    #: Means and quantiles over deliveries that took place; NaN without any.
    delay_s: float
    delay_p95_s: float
    #: By what it was spent for.
    energy_j: dict[str, float]
    counters: dict[str, int]
    events: int
    lifetime: Lifetime
    #: By second.
    living: list[int]
    tables: dict[int, int]

    @property
    def success(self) -> float:
        return self.delivered / self.wanted if self.wanted else 1.0

    @property
    def active_j(self) -> float:
        """What was spent for frames and matching; idling costs all protocols the same."""
        return sum(joules for account, joules in self.energy_j.items() if account != "idle")

    @property
    def frames(self) -> int:
        return self.counters["sent_data"] + self.counters["sent_control"]

    @classmethod
    def of(
        cls, world: World, radio: Radio, wanted: dict[int, list[int]], living: list[int], tables: dict[int, int]
    ) -> Self:
        """Count what came of a world so far; reports of one happening count as one.

        ``wanted`` has for each event that happened the sinks that wanted it then, ``living`` the sensors that lived in
        each second, ``tables`` the entries of each table.
        """
        air = radio.air
        slots_per_s = world.parameters.slots_per_s
        first: dict[tuple[int, int], float] = {}
        moment: dict[tuple[int, int], float] = {}
        for event, sinks in wanted.items():
            happening = int(world.happening[event])
            second = float(world.event_second[event])
            for sink in sinks:
                slot = int(air.received[event, sink])
                key = (happening, sink)
                moment.setdefault(key, second)
                if slot >= 0:
                    delay = max(0.0, slot / slots_per_s - second)
                    first[key] = min(first.get(key, np.inf), delay)
        delays = np.array(sorted(first.values()))
        spent = air.spent[: radio.sensors].sum(axis=0)
        return cls(
            wanted=len(moment),
            delivered=len(first),
            delay_s=float(delays.mean()) if len(delays) else float("nan"),
            delay_p95_s=float(np.quantile(delays, 0.95)) if len(delays) else float("nan"),
            energy_j=dict(zip(ACCOUNTS, spent.tolist(), strict=True)),
            counters=dict(zip(COUNTERS, air.counters.tolist(), strict=True)),
            events=len(wanted),
            lifetime=_lifetime(radio, moment, first),
            living=list(living),
            tables=tables,
        )


def _lifetime(radio: Radio, moment: dict[tuple[int, int], float], delivered: dict[tuple[int, int], float]) -> Lifetime:
    slots_per_s = radio.parameters.slots_per_s
    end = radio.now / slots_per_s
    died = radio.air.died[: radio.sensors]
    deaths = np.sort(died[died >= 0]) / slots_per_s
    count = radio.sensors

    def until(share: float) -> float:
        needed = max(1, int(np.ceil(share * count)))
        return float(deaths[needed - 1]) if len(deaths) >= needed else end

    keys = list(moment)
    window = (np.array([moment[key] for key in keys]) // _WINDOW_S).astype(int)
    got = np.array([key in delivered for key in keys], dtype=int)
    loss = end
    for number in range(int(window.max(initial=-1)) + 1):
        inside = window == number
        total = int(inside.sum())
        # what happened at the very end had no time to arrive
        if total >= _FEW and (number + 1) * _WINDOW_S <= end and got[inside].sum() * 2 < total:
            loss = (number + 1) * _WINDOW_S
            break
    return Lifetime(first_death=until(0.0), tenth_dead=until(0.1), half_dead=until(0.5), loss=loss)
