"""Networks as a power flow needs them: impedances between nodes, and what consumes or generates where.

pandapower and SimBench describe the networks; what is taken from them is the admittance matrix, so that a year of
steps can be solved at once (:mod:`tieline.sim.microgrid.flow`).  A network's own power flow is solved both ways when it
is built, and a difference is an error: that keeps every assumption made here honest.

With one ideal voltage outside, the voltages satisfy ``v = idle + Z·conj(s / v)``.  Iterating that from ``idle``
converges in a few rounds for every network that is not close to collapse, and one round for a week of steps is one
matrix product.  A Newton solver needs about 18 ms for each step; this needs microseconds, to the same digits.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any, Final  # Any: pandapower comes without types

import numpy as np
from numpy.typing import NDArray

from tieline.sim.microgrid.extra import Unbuildable, need

Complex = NDArray[np.complex128]

#: Rated photovoltaics in kW that this world adds to the low-voltage network of CIGRE, which comes without any.
_CIGRE_LV_PV: Final = {"R11": 10, "R15": 30, "R16": 30, "R17": 20, "R18": 25, "I2": 60, "C12": 15, "C14": 15, "C17": 15}
#: Profiles by the first letters of a load's name; several are dealt out in turn.  The residential ones are sums over
#: a whole low-voltage network, because a load of CIGRE stands for many households.
_CIGRE_PROFILES: Final = {
    "Load R": ("lv_semiurb4", "lv_rural2", "lv_rural3", "lv_semiurb5", "lv_urban6", "lv_rural1"),
    "Load I": ("G3-A",),
    "Load CI": ("mv_comm", "G4-M"),
    "Load C": ("G0-A", "G4-A", "G2-A", "G1-B"),
}
_SOURCE_PROFILES: Final = {"PV": ("PV1", "PV3", "PV5", "PV8"), "WP": ("WP4",)}
_TOLERANCE: Final = 1e-9
_MOST_ROUNDS: Final = 200


@dataclass(frozen=True, slots=True)
class Element:
    """A load (power below zero) or a source: where it is, what it is rated at, and by which profile it varies."""

    bus: int
    kilowatts: float
    kilovars: float
    #: Columns of the profiles for active and reactive power; None for constant power.
    active: str | None
    reactive: str | None


@dataclass(frozen=True, slots=True)
class PowerNetwork:
    """One network; arrays over all its buses but the one where the grid outside begins."""

    name: str
    nodes: tuple[str, ...]
    #: For each node, what hangs together with it when the grid outside is taken away.
    feeders: tuple[str, ...]
    #: For each node, the position of its bus in the arrays.
    buses: NDArray[np.int64]
    #: Nominal line-to-line voltage of each node's bus.
    kilovolts: NDArray[np.float64]
    #: Per unit of ``base_kw``: what a current at one bus does to the voltage at another.
    impedance: Complex
    #: Per unit: the voltage at each bus while nothing is connected.
    idle: Complex
    #: Per unit: the impedance of the grid outside, which a power flow leaves out and a short circuit does not.
    source: complex
    base_kw: float
    elements: tuple[Element, ...]


def build(name: str) -> PowerNetwork:
    """A network by name: ``cigre_lv``, ``cigre_mv``, or a SimBench code such as ``1-LV-rural1--0-sw``."""
    if name not in ("cigre_lv", "cigre_mv") and re.fullmatch(r"1-\w+-[\w.-]+", name) is None:
        raise Unbuildable(f'there is no network "{name}": cigre_lv, cigre_mv, or a SimBench code: 1-LV-rural1--0-sw.')
    described = need("pandapower.networks")
    if name == "cigre_lv":
        return _reduce(name, _cigre_lv(described), named=False)
    if name == "cigre_mv":
        return _reduce(name, described.create_cigre_network_mv(with_der="all"), named=False)
    try:
        net = need("simbench").get_simbench_net(name)
    except (ValueError, KeyError, IndexError):
        raise Unbuildable(f'SimBench has no network "{name}".') from None
    return _reduce(name, net, named=True)


def grown(network: PowerNetwork, factor: float) -> PowerNetwork:
    """The same network with all loads multiplied; sources stay as they are."""
    elements = (
        replace(each, kilowatts=factor * each.kilowatts, kilovars=factor * each.kilovars)
        if each.kilowatts < 0
        else each
        for each in network.elements
    )
    return replace(network, elements=tuple(elements))


def solve(network: PowerNetwork, power: Complex) -> Complex:
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


def _cigre_lv(described: Any) -> Any:
    power = need("pandapower")
    net = described.create_cigre_network_lv()
    buses = {label: bus for bus, label in net.bus["name"].items()}
    for node, rated in _CIGRE_LV_PV.items():
        power.create_sgen(net, buses[f"Bus {node}"], p_mw=rated / 1_000, q_mvar=0.0, name=f"PV {node}", type="PV")
    return net


def _reduce(name: str, net: Any, *, named: bool) -> PowerNetwork:
    """What is left of a pandapower network when the grid outside is an ideal voltage."""
    need("pandapower").runpp(net, numba=False, calculate_voltage_angles=True)
    inside = net._ppc["internal"]  # noqa: SLF001 - pandapower offers the matrix nowhere else
    if len(inside["pv"]) or len(inside["ref"]) != 1:
        raise Unbuildable(f"{name} has several voltage sources: a network with one grid outside is needed.")
    base_kw = float(inside["baseMVA"]) * 1_000
    places = net._pd2ppc_lookups["bus"]  # noqa: SLF001 - nor these
    slack = int(inside["ref"][0])
    admittance = inside["Ybus"].toarray()
    others = np.flatnonzero(np.arange(len(admittance)) != slack)
    position = {int(place): index for index, place in enumerate(others)}
    impedance = np.linalg.inv(admittance[np.ix_(others, others)])
    elements = _elements(net, position, places, named=named)
    idle = -impedance @ admittance[others, slack] * inside["V"][slack]
    metered = sorted({element.bus for element in elements})
    bus_of = {position[int(places[bus])]: bus for bus in reversed(net.bus.index) if int(places[bus]) in position}
    labels = [str(net.bus.at[bus_of[index], "name"]) for index in metered]
    network = PowerNetwork(
        name=name,
        nodes=_node_names(labels),
        feeders=_feeders(admittance[np.ix_(others, others)], metered, _node_names(labels)),
        buses=np.array(metered),
        kilovolts=np.array([float(net.bus.at[bus_of[index], "vn_kv"]) for index in metered]),
        impedance=impedance,
        idle=idle,
        source=_source(net, base_kw),
        base_kw=base_kw,
        elements=elements,
    )
    _compare(network, inside["V"][others])
    return network


def _elements(net: Any, position: dict[int, int], places: Any, *, named: bool) -> tuple[Element, ...]:
    """Loads and sources; on the bus of the grid outside they would change nothing, and are left out."""
    found: list[Element] = []
    for table, sign in (("load", -1.0), ("sgen", 1.0), ("storage", -1.0)):
        for turn, row in enumerate(net[table].itertuples()):
            place = int(places[row.bus])
            if not row.in_service or place not in position:
                continue
            active, reactive = _profiles_of(table, row, turn, named=named)
            scale = sign * 1_000 * float(row.scaling)
            found.append(Element(position[place], scale * row.p_mw, scale * row.q_mvar, active, reactive))
    return tuple(found)


def _profiles_of(table: str, row: Any, turn: int, *, named: bool) -> tuple[str | None, str | None]:
    if named:
        if table == "storage":
            return None, None
        return (f"{row.profile}_pload", f"{row.profile}_qload") if table == "load" else (row.profile, row.profile)
    if table == "load":
        word = max((word for word in _CIGRE_PROFILES if row.name.startswith(word)), key=len)  # "Load CI", not "Load C"
        choices = _CIGRE_PROFILES[word]
        column = f"{choices[turn % len(choices)]}_pload"
    elif row.type in _SOURCE_PROFILES:
        choices = _SOURCE_PROFILES[row.type]
        column = choices[turn % len(choices)]
    else:
        return None, None
    return column, column  # at a constant power factor, which is what CIGRE states


def _node_names(labels: list[str]) -> tuple[str, ...]:
    """Names that can be a level of a topic."""
    return tuple(re.sub(r"[^A-Za-z0-9_.-]+", "-", label.removeprefix("Bus ")) for label in labels)


def _feeders(admittance: Complex, metered: list[int], names: tuple[str, ...]) -> tuple[str, ...]:
    """Nodes that are connected without the grid outside share a feeder, named after its first node."""
    group = np.arange(len(admittance))
    linked = admittance != 0
    for _ in range(len(admittance)):
        nearest = np.where(linked, group, len(group)).min(axis=1)
        if (nearest == group).all():
            break
        group = nearest
    first: dict[int, str] = {}
    for index, name in zip(metered, names, strict=True):
        first.setdefault(int(group[index]), name)
    return tuple(first[int(group[index])] for index in metered)


def _source(net: Any, base_kw: float) -> complex:
    """The grid outside as an impedance, from its short-circuit power; a strong one where the data say nothing."""
    grid = net.ext_grid.iloc[0]
    power_mva = float(grid.get("s_sc_max_mva", np.nan))
    ratio = float(grid.get("rx_max", np.nan))
    power_mva, ratio = (500.0 if np.isnan(power_mva) else power_mva), (0.1 if np.isnan(ratio) else ratio)
    return complex(base_kw / 1_000 / power_mva * complex(ratio, 1) / abs(complex(ratio, 1)))


def _compare(network: PowerNetwork, solved: Complex) -> None:
    power = np.zeros((1, len(network.idle)), complex)
    for element in network.elements:
        power[0, element.bus] += complex(element.kilowatts, element.kilovars) / network.base_kw
    if not np.allclose(solve(network, power)[0], solved, atol=1e-6):
        raise Unbuildable(
            f"{network.name} holds something besides lines, transformers and loads: it is solved otherwise."
        )
