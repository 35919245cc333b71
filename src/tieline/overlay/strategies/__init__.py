"""By which links a destination is reached: one protocol, and every strategy by its name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from tieline.overlay.counts import Counts
from tieline.overlay.membership import Membership
from tieline.overlay.strategies.broadcast import Broadcast
from tieline.overlay.strategies.flood import Flood
from tieline.overlay.strategies.path import Path
from tieline.overlay.strategies.ring import Ring
from tieline.overlay.strategies.strategy import Strategy
from tieline.overlay.strategies.tree import Tree

Make = Callable[[Membership, Counts], Strategy]
#: Those that keep every promise, and can be configured; `tieline.conf.overlay.StrategyName` has their names.
STRATEGIES: Final[Mapping[str, Make]] = {each.name: each for each in (Path, Tree, Ring, Flood)}
#: Those that only serve to compare with.
BASELINES: Final[Mapping[str, Make]] = {Broadcast.name: Broadcast}
