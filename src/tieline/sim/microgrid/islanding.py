"""The microgrid alone: what its nodes feel, and what protection and control room do from separation to return.

The grid-forming unit cannot hold the voltage at once either: it sags with the deficit and comes back with the time
constant of its regulator.  So a separation goes through zone 3 (voltage) and zone 2 (frequency) of the plane of
EN 50160, and recovers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tieline.sim.microgrid.disturbance import NOMINAL_V, incident
from tieline.sim.microgrid.flow import STEP_S
from tieline.sim.microgrid.messages import Message, Order
from tieline.sim.microgrid.network import Complex
from tieline.sim.microgrid.scenario import Islanding
from tieline.sim.microgrid.swing import NOMINAL_HZ, Excursion, Machine, is_shed, separate
from tieline.sim.microgrid.telling import METER_S, ROOM_S, Scene

Floats = NDArray[np.float64]

#: Share of the voltage that is missing at first, for a deficit of everything; and how fast it comes back.
_SAG: Final = 0.36
_REGULATOR_S: Final = 3.0
#: How fast the frequency joins the grid's when the breaker closes.
_JOIN_S: Final = 0.8
#: For so long, and so often, the control room sends new set points after a separation.
_STEERING_S: Final = 30.0
_STEERING_EVERY_S: Final = 1.0
#: Time between two looks at the voltage for the meters' reports.
_LOOK_S: Final = 0.05
#: A relay sees a loss of mains after this time.
_DETECTION_S: Final = 0.15


@dataclass(frozen=True, slots=True)
class Island:
    """One stretch of time in which the microgrid is alone, and the moments after it."""

    begin_s: float
    back_s: float
    deficit: float
    excursion: Excursion
    #: The nodes whose load each stage of shedding cuts off.
    stages: tuple[tuple[int, ...], ...]

    @property
    def end_s(self) -> float:
        """When nothing of it is left."""
        return self.back_s + 20 * _JOIN_S

    def hertz(self, times: Floats, outside: Floats) -> Floats:
        """The frequency, given that of the grid outside."""
        alone = self.excursion.at(times - self.begin_s)
        last = float(self.excursion.hertz[-1])
        joining = outside + (last - outside) * np.exp(-np.maximum(times - self.back_s, 0.0) / _JOIN_S)
        inside = np.where(times < self.back_s, alone + (outside - NOMINAL_HZ) / 4, joining)
        return np.where(times < self.begin_s, outside, inside)

    def voltage_factor(self, times: Floats) -> Floats:
        """By what the voltage of every node is multiplied."""
        since = times - self.begin_s
        sag = _SAG * self.deficit * np.exp(-np.maximum(since, 0.0) / _REGULATOR_S)
        return np.where((since < 0) | (times >= self.back_s), 1.0, 1.0 - sag)

    def shed(self, times: Floats, power: Complex) -> None:
        """Take the power of nodes that are cut off out of readings, in place."""
        for stage, nodes in enumerate(self.stages):
            off = is_shed(self.excursion, stage, times - self.begin_s) & (times < self.back_s)
            for node in nodes:
                power[off, node] = 0.0


def tell_island(scene: Scene, event: Islanding, machine: Machine | None = None) -> tuple[Island, list[Message]]:
    """A separation: the relay at the connection to the grid trips, the control room steers, and it ends."""
    used = Machine() if machine is None else machine
    excursion = separate(used, deficit=event.deficit, duration_s=event.duration_s, load_steps=event.load_steps)
    back_s = event.at_s + event.duration_s
    island = Island(event.at_s, back_s, event.deficit, excursion, _stages(scene, event.at_s, used))
    said = [
        scene.acted(event.at_s + _DETECTION_S, "pcc", "trip", "81R"),
        scene.order(event.at_s + _DETECTION_S + ROOM_S, "pcc", "open"),
        scene.order(back_s - ROOM_S, "pcc", "close"),
        scene.acted(back_s, "pcc", "reclose", "25"),
        *_shedding(scene, island),
        *_steering(scene, island),
        *_sagging(scene, island),
    ]
    return island, said


def _stages(scene: Scene, at_s: float, machine: Machine) -> tuple[tuple[int, ...], ...]:
    """Consumers for each stage of shedding, together about its share of the load; the small ones go first."""
    _voltage, power = scene.flow.between(int(at_s // STEP_S), 1)
    drawn = np.maximum(-power[0].real, 0.0)
    consumers = [int(node) for node in np.argsort(drawn, kind="stable") if drawn[node] > 0]
    stages: list[tuple[int, ...]] = []
    for _ in machine.shed_hz:
        chosen: list[int] = []
        while consumers and drawn[chosen].sum() < machine.shed_share * drawn.sum():
            chosen.append(consumers.pop(0))
        stages.append(tuple(chosen))
    return tuple(stages)


def _shedding(scene: Scene, island: Island) -> list[Message]:
    names, begin = scene.network.nodes, island.begin_s
    changes = [("shed", when, stage) for when, stage in island.excursion.shed]
    changes += [("restore", when, stage) for when, stage in island.excursion.restored]
    # What is still off when the grid is back is restored then.
    off = len(island.excursion.shed) - len(island.excursion.restored)
    changes += [("restore", island.back_s - begin + 1.0, stage) for stage in range(off)]
    said = []
    for action, when, stage in changes:
        order: Order = "shed" if action == "shed" else "restore"
        said += [scene.order(begin + when, f"load-{names[node]}", order) for node in island.stages[stage]]
    return said


def _steering(scene: Scene, island: Island) -> list[Message]:
    """Set points for the grid-forming unit while the frequency moves; kW, by its part of the load."""
    _voltage, power = scene.flow.between(int(island.begin_s // STEP_S), 1)
    load_kw = -float(np.minimum(power[0].real, 0.0).sum())
    length_s = min(_STEERING_S, island.back_s - island.begin_s)
    moments = np.arange(_DETECTION_S + 2 * ROOM_S, length_s, _STEERING_EVERY_S)
    generation = island.excursion.generation
    places = (moments / (island.back_s - island.begin_s) * (len(generation) - 1)).astype(int)
    return [
        scene.order(island.begin_s + float(when), "former", "setpoint", load_kw * float(generation[at]))
        for when, at in zip(moments, places, strict=True)
    ]


def _sagging(scene: Scene, island: Island) -> list[Message]:
    """Each meter reports how long its voltage was below nine tenths, and how low it got."""
    times = np.arange(island.begin_s, island.back_s, _LOOK_S)
    factors = island.voltage_factor(times)
    said = []
    for node, volts in enumerate(scene.volts(island.begin_s)):
        low = float(volts) * factors < 0.9 * NOMINAL_V
        if low.any():
            end_s = float(times[low][-1]) + _LOOK_S
            residual = float(volts) * float(factors.min())
            name = scene.network.nodes[node]
            report = incident(name, begin_s=island.begin_s, end_s=end_s, residual_v=residual)
            assert report is not None  # it went below the limit
            said.append(scene.say(report, sent_s=end_s + METER_S, client=scene.meter(node)))
    return said
