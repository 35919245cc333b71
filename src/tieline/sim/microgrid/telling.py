"""Who says what when something happens on a feeder: meters, protection devices, the control room."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tieline.sim.microgrid.disturbance import RESIDUE, Disturbance, incident, left_by_fault
from tieline.sim.microgrid.flow import STEP_S, PowerFlow
from tieline.sim.microgrid.messages import Action, Command, FaultReport, Message, Order, Protection, Report, message_of
from tieline.sim.microgrid.network import PowerNetwork
from tieline.sim.microgrid.scenario import DAY_S, Fault, Upset

Floats = NDArray[np.float64]

#: One per unit, phase to neutral: every node is read on this scale, whatever its own voltage is.
UNIT_V: Final = 400.0 / 3**0.5
#: Which clients speak for the devices.
PROTECTION: Final = "protection"
CONTROL: Final = "control"
#: How long devices take: a meter to close its report, a relay to speak of a fault, the control room to react.
METER_S: Final = 0.05
RELAY_S: Final = 0.01
ROOM_S: Final = 0.2


@dataclass(frozen=True, slots=True)
class Scene:
    """The grid, its network and its flow, which everything that happens refers to."""

    grid: str
    network: PowerNetwork
    flow: PowerFlow

    def volts(self, at_s: float) -> Floats:
        """Undisturbed voltages of all nodes at a moment."""
        first = int(at_s // STEP_S)
        voltage, _power = self.flow.between(first, 2)
        part = at_s / STEP_S - first
        volts: Floats = UNIT_V * ((1 - part) * voltage[0] + part * voltage[1])
        return volts

    def meter(self, node: int) -> str:
        """The client that speaks for a node's meter."""
        return f"meters-{self.network.feeders[node]}"

    def say(self, report: Report, *, sent_s: float, client: str) -> Message:
        """A report as a message of this microgrid."""
        return message_of(self.grid, report, sent_s=sent_s, client=client)

    def acted(self, at_s: float, device: str, action: Action, element: str) -> Message:
        """A protection device says what it did."""
        return self.say(Protection(round(at_s, 3), device, action, element), sent_s=at_s + RELAY_S, client=PROTECTION)

    def order(self, at_s: float, device: str, action: Order, value: float = 0.0) -> Message:
        """The control room orders something."""
        return self.say(Command(round(at_s, 3), device, action, round(value, 2)), sent_s=at_s, client=CONTROL)

    def metered(self, felt: Iterable[Disturbance], volts: Floats) -> Iterator[Message]:
        """The meters' reports of disturbances, for nodes that had these voltages before."""
        for each in felt:
            name = self.network.nodes[each.node]
            residual = float(volts[each.node]) * each.factor
            report = incident(name, begin_s=each.begin_s, end_s=each.end_s, residual_v=residual)
            if report is not None:
                yield self.say(report, sent_s=each.end_s + METER_S, client=self.meter(each.node))


def tell_upset(scene: Scene, upset: Upset) -> tuple[list[Disturbance], list[Message]]:
    """The voltage changes for a moment, everywhere or at one node, and the meters that notice say so."""
    names = scene.network.nodes
    nodes = range(len(names)) if upset.node is None else [names.index(upset.node)]
    end_s = upset.at_s + upset.duration_s
    felt = [Disturbance(node, upset.at_s, end_s, upset.factor) for node in nodes]
    return felt, list(scene.metered(felt, scene.volts(upset.at_s)))


def tell_fault(scene: Scene, fault: Fault) -> tuple[list[Disturbance], list[Message]]:
    """A short circuit dips every node, until the breaker of its feeder trips and leaves that feeder without supply."""
    network = scene.network
    place = network.nodes.index(fault.node)
    feeder = network.feeders[place]
    breaker = f"breaker-{feeder}"
    left, current = left_by_fault(network, place, fault.resistance_ohm)
    volts = scene.volts(fault.at_s)
    report = FaultReport(round(fault.at_s, 3), fault.node, fault.kind, round(current, 1))
    said = [scene.say(report, sent_s=fault.at_s + RELAY_S, client=PROTECTION)]
    trip_s = fault.at_s + fault.clearing_s
    back_s = trip_s + fault.dead_s
    said += [scene.acted(trip_s, breaker, "trip", "50"), scene.acted(back_s, breaker, "reclose", "79")]
    shorts = [(fault.at_s, trip_s)]
    if fault.repair_s is not None:
        again_s = back_s + fault.clearing_s
        shorts.append((back_s, again_s))
        back_s = again_s + fault.repair_s
        said += [scene.acted(again_s, breaker, "trip", "50"), scene.acted(again_s, breaker, "lockout", "86")]
        said += [scene.order(again_s + ROOM_S, breaker, "open"), scene.order(back_s, breaker, "close")]
    felt = [
        Disturbance(node, begin_s, end_s, float(left[node]))
        for begin_s, end_s in shorts
        for node in range(len(network.nodes))
        if network.feeders[node] != feeder
    ]
    # The meters of the feeder see one interruption: what the fault left them before the trip is part of it.
    cut = [
        Disturbance(node, fault.at_s, back_s, RESIDUE, is_cut_off=True)
        for node in range(len(network.nodes))
        if network.feeders[node] == feeder
    ]
    return felt + cut, [*said, *scene.metered(felt + cut, volts)]


def dispatch(scene: Scene, day: int) -> Iterator[Message]:
    """Every quarter of an hour the control room tells each source what it may feed in."""
    nodes = scene.network.nodes
    steps = DAY_S // STEP_S
    offered = scene.flow.offered(day * steps, steps)
    sources = np.flatnonzero(offered.any(axis=0))
    for step, row in enumerate(offered, day * steps):
        for number, node in enumerate(sources):
            moment = step * STEP_S + 1.0 + 0.1 * number
            yield scene.order(moment, f"source-{nodes[node]}", "setpoint", float(row[node]))
