"""What the nodes of a network do at each step of 15 minutes: the powers of their profiles, and the voltages they make.

What the nodes consume and generate are the profiles of SimBench, a year in steps of 15 minutes, read from its installed
files.  The data are SimBench's (Open Database License 1.0, https://simbench.de).  Only the columns that somebody uses
are read: the whole file has 160 columns and takes ten times as long.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import Any, Final  # Any: pyarrow comes without types

import numpy as np
from numpy.typing import NDArray

from tieline.sim.microgrid.extra import Unbuildable, data_of, need
from tieline.sim.microgrid.network import Complex, Element, PowerNetwork, solve

#: Seconds between two values.
STEP_S: Final = 900
#: 52 whole weeks of the 366 days that there are, so that a Monday stays a Monday when the year begins again.
_ROWS: Final = 52 * 7 * 96
#: 2016-01-01T00:00Z, where the profiles begin.
_FIRST_S: Final = 1_451_606_400
_FOLDER: Final = "networks/1-complete_data-mixed-all-0-sw"
_FILES: Final = ("LoadProfile.csv", "RESProfile.csv")


def rows_at(first: int, count: int) -> NDArray[np.int64]:
    """The rows of a profile for ``count`` steps from the ``first``, in steps of 15 minutes since 1970.

    The year is repeated; within it weekdays are right and the season is, to about a fortnight.
    """
    return (np.arange(first, first + count) - _FIRST_S // STEP_S) % _ROWS


def read_profiles(names: Collection[str]) -> dict[str, NDArray[np.float64]]:
    """The named profiles, relative to the rated power of what they belong to."""
    return dict(_read(tuple(sorted(set(names)))))


@lru_cache(maxsize=4)
def _read(names: tuple[str, ...]) -> tuple[tuple[str, NDArray[np.float64]], ...]:
    csv: Any = need("pyarrow.csv")
    folder = data_of("simbench") / _FOLDER
    found: list[tuple[str, NDArray[np.float64]]] = []
    for file in _FILES:
        with (folder / file).open(encoding="utf-8") as lines:
            columns = lines.readline().rstrip("\n").split(";")
        wanted = [name for name in names if name in columns]
        if not wanted:
            continue
        table = csv.read_csv(
            folder / file,
            parse_options=csv.ParseOptions(delimiter=";"),
            convert_options=csv.ConvertOptions(include_columns=wanted),
        )
        found += [(name, table[name].to_numpy()[:_ROWS]) for name in wanted]
    missing = set(names).difference(name for name, _values in found)
    if missing:
        raise Unbuildable(f"SimBench has no profile called {', '.join(sorted(missing))}.")
    return tuple(found)


Floats = NDArray[np.float64]

#: Steps solved together and kept: a day.
_CHUNK: Final = 96
_MOST_CHUNKS: Final = 16


class PowerFlow:
    """What a network's nodes do at each step of 15 minutes, solved when it is asked for and then remembered."""

    def __init__(self, network: PowerNetwork) -> None:
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


def sensitivity(network: PowerNetwork) -> tuple[Floats, Floats]:
    """Per unit voltage at each node for a kW, and for a kvar, more injected at each node, near nominal voltage."""
    among = network.impedance[np.ix_(network.buses, network.buses)] / network.base_kw
    return among.real, among.imag
