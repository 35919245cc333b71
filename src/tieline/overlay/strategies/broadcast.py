"""What the covering paper does with a message, word for word: a baseline to compare with, and no way to run brokers.

A head that has seen a message ignores it; any other passes it on to all its neighbours on the tree, whether or not
somebody behind them wants it.  Nobody acknowledges to the origin.  Where brokers believe in different trees, what was
seen is not passed on again, and is lost; so it is no strategy that can be configured.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import ClassVar

from tieline.overlay.counts import Counts
from tieline.overlay.frames.frame import Data
from tieline.overlay.membership import Membership
from tieline.overlay.strategies.flood import Flood
from tieline.overlay.strategies.tree import Tree


class Broadcast:
    """A copy for every neighbour on the tree, of what was not seen before."""

    name: ClassVar[str] = "broadcast"
    is_single: ClassVar[bool] = False
    has_stages: ClassVar[bool] = False

    def __init__(self, membership: Membership, counts: Counts) -> None:
        self._tree = Tree(membership, counts)
        self._seen = Flood(membership, counts)

    def next_brokers(self, destination: int, path: bytes, data: Data | None = None) -> Sequence[int]:
        return [peer for peer in self._tree.branches if peer not in path]

    def stage_of(self, data: Data, destinations: Collection[int]) -> int:
        return 0

    def admits(self, data: Data) -> bool:
        return self._seen.admits(data)
