"""The protocols by name, each behind the same interface."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tieline.sim.sensors.outcome import Outcome
from tieline.sim.sensors.parameters import Parameters
from tieline.sim.sensors.protocols.bounds import Central, Flooding
from tieline.sim.sensors.protocols.cetp import Cetp
from tieline.sim.sensors.protocols.psm import Psm
from tieline.sim.sensors.protocols.rpcp.backbone import Style
from tieline.sim.sensors.protocols.rpcp.protocol import Rpcp
from tieline.sim.sensors.simulation import Protocol, Simulation
from tieline.sim.sensors.world import World

_STYLES: Final = {
    "rpcp-literal": Style(forwarding="literal"),
    "rpcp-literal-direct": Style(forwarding="literal", backbone="direct"),
    "rpcp-filter": Style(),
    "rpcp-filter-direct": Style(backbone="direct"),
    "rpcp-filter-optimal": Style(covering="optimal"),
    "rpcp-filter-uncovered": Style(covering="none"),
    "rpcp-filter-fusion": Style(fuses=True),
    "rpcp-filter-still": Style(rotates=False),
    "rpcp-peer": Style(forwarding="peer"),
    "rpcp-peer-optimal": Style(forwarding="peer", covering="optimal"),
    "rpcp-peer-uncovered": Style(forwarding="peer", covering="none"),
    "rpcp-peer-advertised": Style(forwarding="peer", advertises=True),
}


def _rpcp(style: Style) -> Callable[[Simulation], Protocol]:
    return lambda run: Rpcp(run, style)


#: How each is made.
PROTOCOLS: Final[dict[str, Callable[[Simulation], Protocol]]] = {
    **{name: _rpcp(style) for name, style in _STYLES.items()},
    "psm": Psm,
    "cetp": Cetp,
    "cetp-rotating": lambda run: Cetp(run, rotates=True),
    "cetp-carry": lambda run: Cetp(run, carries=True),
    "flooding": Flooding,
    "central": Central,
}


def simulation(name: str, world: World) -> Simulation:
    """A protocol in a world, ready to run."""
    return Simulation(world, PROTOCOLS[name], ranks_by_way=name == "psm")


def simulate(name: str, parameters: Parameters, seed: int, *, until_dead_s: float | None = None) -> Outcome:
    """One run; with ``until_dead_s``, until the network has died or so many seconds are over."""
    world = World(parameters, seed, seconds=until_dead_s)
    return simulation(name, world).run(until_dead=until_dead_s is not None)
