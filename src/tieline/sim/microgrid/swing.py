"""Frequency of a microgrid that has lost the grid: the swing equation, with what holds the frequency up.

All powers are per unit of the load at the moment of separation, ``f0`` is 50 Hz::

    2H/f0 · df/dt = generation - load · (1 + D·(f-f0)/f0)          inertia, load damping
    Tg · dgeneration/dt = clip(reference - (f-f0)/(f0·R)) - generation   droop of the grid-forming unit
    dreference/dt = -Ki · (f-f0)/f0                                 secondary control, after a while

If the frequency falls below a stage of the load shedding, a share of the load is cut off; when it has been back for
some time, one stage after the other is restored.  Integrated in steps of 20 ms with Euler's method, which is small
against every time constant here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

NOMINAL_HZ: Final = 50.0
STEP_S: Final = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """What determines the frequency of the island; the defaults are a small diesel set and a battery inverter."""

    #: H: energy of the rotating masses (and what an inverter imitates) over rated power.
    inertia_s: float = 2.0
    #: R: relative fall of frequency from no load to full load.
    droop: float = 0.05
    #: Tg: how fast generation follows.
    governor_s: float = 0.5
    #: D: relative fall of load for a relative fall of frequency.
    damping: float = 1.5
    #: Ki, and how long after the separation secondary control begins.
    secondary_per_s: float = 0.8
    secondary_after_s: float = 5.0
    #: What generation can give at most.
    most: float = 1.2
    #: Below which frequency each stage cuts its share of the load off.
    shed_hz: tuple[float, ...] = (48.0, 47.0, 46.0)
    shed_share: float = 0.08
    #: A stage is restored when the frequency has been above this for so long.
    restore_hz: float = 49.8
    restore_after_s: float = 20.0


@dataclass(frozen=True, slots=True)
class Excursion:
    """The frequency from separation on, and when stages of load were cut off and restored (second, stage)."""

    hertz: NDArray[np.float64]
    generation: NDArray[np.float64]
    load: NDArray[np.float64]
    shed: list[tuple[float, int]] = field(default_factory=list)
    restored: list[tuple[float, int]] = field(default_factory=list)

    def at(self, seconds: NDArray[np.float64]) -> NDArray[np.float64]:
        """The frequency at some moments after the separation."""
        return np.interp(seconds, np.arange(len(self.hertz)) * STEP_S, self.hertz)


def separate(
    machine: Machine, *, deficit: float, duration_s: float, load_steps: Iterable[tuple[float, float]] = ()
) -> Excursion:
    """What happens when a microgrid loses the grid that gave it ``deficit`` of its load.

    ``load_steps`` are moments after the separation, and the share by which the load grows (or, below zero, falls).
    """
    count = round(duration_s / STEP_S) + 1
    steps = sorted(load_steps)
    hertz, generation, loads = np.empty(count), np.empty(count), np.empty(count)
    result = Excursion(hertz, generation, loads)
    frequency, power, reference, load = NOMINAL_HZ, 1.0 - deficit, 1.0 - deficit, 1.0
    stages, good_s = 0, 0.0
    for index in range(count):
        now = index * STEP_S
        while steps and steps[0][0] <= now:
            load += steps.pop(0)[1]
        taken = load - stages * machine.shed_share
        relative = (frequency - NOMINAL_HZ) / NOMINAL_HZ
        drawn = taken * (1.0 + machine.damping * relative)
        hertz[index], generation[index], loads[index] = frequency, power, drawn
        if stages < len(machine.shed_hz) and frequency < machine.shed_hz[stages]:
            result.shed.append((now, stages))
            stages += 1
        good_s = good_s + STEP_S if frequency > machine.restore_hz else 0.0
        if stages and good_s > machine.restore_after_s:
            stages, good_s = stages - 1, 0.0
            result.restored.append((now, stages))
        if now >= machine.secondary_after_s:
            reference -= STEP_S * machine.secondary_per_s * relative
        wanted = min(max(reference - relative / machine.droop, 0.0), machine.most)
        frequency += STEP_S * (power - drawn) * NOMINAL_HZ / (2.0 * machine.inertia_s)
        power += STEP_S * (wanted - power) / machine.governor_s
    return result


def is_shed(excursion: Excursion, stage: int, seconds: NDArray[np.float64]) -> NDArray[np.bool_]:
    """At which moments the load of a stage is cut off."""
    off = np.zeros(len(seconds), bool)
    changes = sorted(
        [(when, True) for when, which in excursion.shed if which == stage]
        + [(when, False) for when, which in excursion.restored if which == stage]
    )
    for (begin, is_off), (end, _next) in pairwise([*changes, (float("inf"), False)]):
        off |= is_off & (seconds >= begin) & (seconds < end)
    return off
