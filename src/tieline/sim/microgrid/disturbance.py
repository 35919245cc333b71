"""How what happens is felt at the nodes: stretches of time with less (or more) voltage, and the meters' verdicts.

A meter calls it an interruption below 5 % of nominal voltage, a dip below 90 %, a swell above 110 %, and reports it
when it is over (EN 50160, IEC 61000-4-30).

What a short circuit does to every node follows from the impedances between them.  A fault with impedance ``Zf`` at node
``k`` leaves ``1 - Z[i,k] / (Z[k,k] + Zf)`` of the voltage at node ``i``: the classical calculation with the bus
impedance matrix, here with the grid outside as an impedance common to all nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tieline.sim.microgrid.messages import Deviation, Incident
from tieline.sim.microgrid.network import Complex, PowerNetwork

Floats = NDArray[np.float64]

NOMINAL_V: Final = 230.0
#: What is left on a feeder without supply: nothing but what its neighbours induce.
RESIDUE: Final = 0.002


@dataclass(frozen=True, slots=True)
class Disturbance:
    """From ``begin_s`` to ``end_s`` a node has ``factor`` of its voltage; the power follows if it is cut off."""

    node: int
    begin_s: float
    end_s: float
    factor: float
    is_cut_off: bool = False


def apply(disturbances: Sequence[Disturbance], times: Floats, step_s: float, voltage: Floats, power: Complex) -> None:
    """Change readings in place; a disturbance shorter than a step counts by its share of the step.

    ``times`` are the ends of the intervals over which a meter takes its mean.
    """
    for each in disturbances:
        first, last = np.searchsorted(times, [each.begin_s, each.end_s + step_s])
        ends = times[first:last]
        lost = np.minimum(ends, each.end_s) - np.maximum(ends - step_s, each.begin_s)
        share = np.clip(lost / step_s, 0.0, 1.0)
        voltage[first:last, each.node] *= 1.0 - share * (1.0 - each.factor)
        if each.is_cut_off:
            power[first:last, each.node] *= 1.0 - share


def verdict(residual_v: float) -> Deviation | None:
    """What a meter calls a voltage that went so far; None while it is within 10 % of nominal."""
    if residual_v < 0.05 * NOMINAL_V:
        return "interruption"
    if residual_v < 0.9 * NOMINAL_V:
        return "dip"
    return "swell" if residual_v > 1.1 * NOMINAL_V else None


def incident(node: str, *, begin_s: float, end_s: float, residual_v: float) -> Incident | None:
    """A meter's report, if there is something to report."""
    kind = verdict(residual_v)
    if kind is None:
        return None
    return Incident(round(begin_s, 3), node, kind, round(residual_v, 2), round(end_s - begin_s, 3))


def left_by_fault(network: PowerNetwork, node: int, resistance_ohm: float) -> tuple[NDArray[np.float64], float]:
    """The share of its voltage that each node keeps while the fault lasts, and the current of the fault in A."""
    between = network.impedance[np.ix_(network.buses, network.buses)] + network.source
    kilovolts = float(network.kilovolts[node])
    one_ohm = network.base_kw / 1_000 / kilovolts**2
    loop = between[node, node] + resistance_ohm * one_ohm
    current = network.base_kw / (np.sqrt(3) * kilovolts) / abs(loop)
    return np.abs(1 - between[:, node] / loop), float(current)
