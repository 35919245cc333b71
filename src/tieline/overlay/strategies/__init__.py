"""By which links a destination is reached: one protocol, and every strategy by its name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from tieline.overlay.membership import Membership
from tieline.overlay.strategies.flood import Flood
from tieline.overlay.strategies.path import Path
from tieline.overlay.strategies.strategy import Strategy

STRATEGIES: Final[Mapping[str, Callable[[Membership], Strategy]]] = {Path.name: Path, Flood.name: Flood}
