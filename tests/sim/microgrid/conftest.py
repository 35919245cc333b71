"""One microgrid for all tests: its network is built once, and a day of it is solved once."""

from __future__ import annotations

import pytest

from tieline.sim.microgrid import Fault, Islanding, World
from tieline.sim.microgrid.scenario import QUIET

#: A Monday in winter, at midnight.
START_S = 1_794_787_200.0


def quiet(seed: int = 7, *, start: float = START_S, **wishes: object) -> World:
    """A world in which nothing happens by itself."""
    return World(seed, "cigre_lv", start, **{"rates": QUIET, **wishes})  # type: ignore[arg-type]


@pytest.fixture(name="calm", scope="session")
def _calm() -> World:
    return quiet()


@pytest.fixture(name="eventful", scope="session")
def _eventful() -> World:
    """Alone from the tenth minute for three minutes; a fault on the residential feeder after half an hour."""
    script = (Islanding(at_s=START_S + 600), Fault(at_s=START_S + 1_800.4, node="R16"))
    return quiet(script=script)
