"""What a short circuit does to every node, from the impedances between them.

A fault with impedance ``Zf`` at node ``k`` leaves ``1 - Z[i,k] / (Z[k,k] + Zf)`` of the voltage at node ``i``: the
classical calculation with the bus impedance matrix, here with the grid outside as an impedance common to all nodes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tieline.sim.microgrid.network import Network


def left_by_fault(network: Network, node: int, resistance_ohm: float) -> tuple[NDArray[np.float64], float]:
    """The share of its voltage that each node keeps while the fault lasts, and the current of the fault in A."""
    between = network.impedance[np.ix_(network.buses, network.buses)] + network.source
    kilovolts = float(network.kilovolts[node])
    one_ohm = network.base_kw / 1_000 / kilovolts**2
    loop = between[node, node] + resistance_ohm * one_ohm
    current = network.base_kw / (np.sqrt(3) * kilovolts) / abs(loop)
    return np.abs(1 - between[:, node] / loop), float(current)
