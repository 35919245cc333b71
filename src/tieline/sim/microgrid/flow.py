"""Power flow for many steps at once, and the nodes' voltages and powers on a grid of 15 minutes.

With one ideal voltage outside, the voltages satisfy ``v = idle + Z·conj(s / v)``.  Iterating that from ``idle``
converges in a few rounds for every network that is not close to collapse, and one round for a week of steps is one
matrix product.  A Newton solver needs about 18 ms for each step; this needs microseconds, to the same digits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tieline.sim.microgrid.extra import Unbuildable
from tieline.sim.microgrid.network import Complex, Element, Network
from tieline.sim.microgrid.profiles import read_profiles, rows_at

Floats = NDArray[np.float64]

#: Steps solved together and kept: a day.
_CHUNK: Final = 96
_MOST_CHUNKS: Final = 16
_TOLERANCE: Final = 1e-9
_MOST_ROUNDS: Final = 200


def solve(network: Network, power: Complex) -> Complex:
    """Voltages per unit for each row of injected powers per unit; both have one column for each bus."""
    voltage = np.broadcast_to(network.idle, power.shape)
    transposed = network.impedance.T
    for _ in range(_MOST_ROUNDS):
        improved = network.idle + np.conj(power / voltage) @ transposed
        change = float(np.abs(improved - voltage).max(initial=0.0))
        voltage = improved
        if change < _TOLERANCE:
            return voltage
    raise Unbuildable(f"the power flow of {network.name} does not converge: it is loaded beyond what its lines carry.")


class Flow:
    """What a network's nodes do at each step of 15 minutes, solved when it is asked for and then remembered."""

    def __init__(self, network: Network) -> None:
        self._network = network
        columns = {name for each in network.elements for name in (each.active, each.reactive) if name is not None}
        self._profiles = read_profiles(columns)
        if not network.name.startswith("1-"):
            # A load of CIGRE is a peak; a profile of SimBench peaks at its own rated power, alone among many.
            self._profiles = {name: values / values.max() for name, values in self._profiles.items()}
        self._chunks: dict[int, tuple[Complex, Complex]] = {}

    def between(self, first: int, count: int) -> tuple[Floats, Complex]:
        """For ``count`` steps since 1970: per unit voltages and injected powers (kW, kvar) of the nodes."""
        chunks = range(first // _CHUNK, (first + count - 1) // _CHUNK + 1)
        voltage, power = (np.concatenate(parts) for parts in zip(*map(self._chunk, chunks), strict=True))
        start = first - chunks.start * _CHUNK
        return np.abs(voltage[start : start + count]), power[start : start + count]

    def offered(self, first: int, count: int) -> Floats:
        """For ``count`` steps since 1970: kW that the sources of each node could feed in."""
        injected = self._injected(first, count, [each for each in self._network.elements if each.kilowatts > 0])
        return injected[:, self._network.buses].real

    def _chunk(self, number: int) -> tuple[Complex, Complex]:
        known = self._chunks.get(number)
        if known is None:
            power = self._injected(number * _CHUNK, _CHUNK, self._network.elements)
            voltage = solve(self._network, power / self._network.base_kw)
            nodes = self._network.buses
            known = self._chunks[number] = (voltage[:, nodes], power[:, nodes])
            if len(self._chunks) > _MOST_CHUNKS:
                del self._chunks[next(iter(self._chunks))]
        return known

    def _injected(self, first: int, count: int, elements: Sequence[Element]) -> Complex:
        rows = rows_at(first, count)
        power = np.zeros((count, len(self._network.idle)), complex)
        for element in elements:
            power[:, element.bus] += element.kilowatts * self._share(element.active, rows)
            power[:, element.bus] += 1j * element.kilovars * self._share(element.reactive, rows)
        return power

    def _share(self, name: str | None, rows: NDArray[np.int64]) -> Floats | float:
        return 1.0 if name is None else self._profiles[name][rows]


def sensitivity(network: Network) -> tuple[Floats, Floats]:
    """Per unit voltage at each node for a kW, and for a kvar, more injected at each node, near nominal voltage."""
    among = network.impedance[np.ix_(network.buses, network.buses)] / network.base_kw
    return among.real, among.imag
