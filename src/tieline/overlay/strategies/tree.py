"""One tree over all brokers, elected by link state and repaired when links come or go.

Theory of operation
-------------------
The covering paper sends messages along a tree of brokers.  Here every broker computes the tree of least cost over the
links that it knows of; links of equal cost are taken by the names of their ends, so that brokers with the same view
elect the same tree.  A link that dies changes the view, and with it the tree: that is the repair.

For a while brokers may believe in different trees.  A hop whose tree leads back to where a frame has been takes the
shortest way that does not, and counts a detour.  Trees known at each hop lost messages in seven of ten histories with
faults; here the destinations stay in the frame and the ends acknowledge, so that a wrong tree costs a longer way only.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import ClassVar

from tieline.overlay.counts import Counts
from tieline.overlay.frames.frame import Data
from tieline.overlay.membership import Membership
from tieline.overlay.strategies.path import Path


class Tree:
    """One copy for each destination, along the elected tree."""

    name: ClassVar[str] = "tree"
    is_single: ClassVar[bool] = True
    has_stages: ClassVar[bool] = False

    def __init__(self, membership: Membership, counts: Counts) -> None:
        self._membership = membership
        self._counts = counts
        self._detour = Path(membership, counts)
        #: The view that the tree was elected by.
        self._view = -1
        #: By destination, the neighbour on the tree that leads there.
        self._towards: dict[int, int] = {}
        #: Those of our neighbours that the tree joins us with.
        self._branches: tuple[int, ...] = ()

    def next_brokers(self, destination: int, path: bytes, data: Data | None = None) -> Sequence[int]:
        self._elect()
        peer = self._towards.get(destination, 0)
        # whoever sends something beside the tree does not go by it, and may be on the way that the tree would take
        if peer and peer not in path and (not path or path[-1] in self._branches):
            return (peer,)
        others = self._detour.next_brokers(destination, path)
        self._counts.detours += len(others)
        return others

    def stage_of(self, data: Data, destinations: Collection[int]) -> int:
        return 0

    def admits(self, data: Data) -> bool:
        return True

    @property
    def branches(self) -> tuple[int, ...]:
        """The neighbours on the tree."""
        self._elect()
        return self._branches

    def _elect(self) -> None:
        if self._view == self._membership.view:
            return
        self._view = self._membership.view
        tree = spanning_tree(self._membership)
        broker = self._membership.broker
        self._branches = tuple(sorted(tree.get(broker, ())))
        self._towards = {}
        for branch in self._branches:
            front = [(branch, broker)]
            while front:
                found, before = front.pop()
                self._towards[found] = branch
                front += ((other, found) for other in tree[found] if other != before)


def spanning_tree(membership: Membership) -> dict[int, set[int]]:
    """By broker, its neighbours on the tree of least cost; of several islands each has a tree of its own."""
    islands = {broker: broker for broker in membership.states}

    def island_of(broker: int) -> int:
        while islands[broker] != broker:
            islands[broker] = broker = islands[islands[broker]]
        return broker

    tree: dict[int, set[int]] = {}
    for _cost, one, other in membership.links():
        here, there = island_of(one), island_of(other)
        if here != there:
            islands[here] = there
            tree.setdefault(one, set()).add(other)
            tree.setdefault(other, set()).add(one)
    return tree
