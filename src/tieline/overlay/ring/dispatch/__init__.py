"""Ways of sending a publication on around the ring: one protocol, and every way by its name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from tieline.overlay.ring.dispatch.arcs import Arcs
from tieline.overlay.ring.dispatch.circulation import Circulation, LiteralCirculation
from tieline.overlay.ring.dispatch.multicast import Duplicating, Partitioned
from tieline.overlay.ring.dispatch.protocol import Dispatch

#: ``arcs`` is the default; the others are the paper's, and what it compares with.
DISPATCHES: Final[Mapping[str, Callable[[], Dispatch]]] = {
    each.name: each for each in (Arcs, Circulation, LiteralCirculation, Duplicating, Partitioned)
}
