"""Clusters of sensors: who belongs to which, who may be its head, and the tree that joins the heads.

Membership is fixed, because sensors do not move; a cluster shrinks as its members die, and is dead without any.  The
tree has the fewest links from the core, which is the living cluster nearest the middle of the field; two clusters can
be joined if some of their living members hear each other.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
from scipy.cluster.vq import kmeans2

from tieline.sim.sensors.radio import Radio
from tieline.sim.sensors.world import Floats, World

#: How much less a member at the rim is worth as a head than one in the middle with as much energy.
_RIM: Final = 0.3
#: A head stays until another member is better by this share: each change costs a table.
_BETTER: Final = 1.05


class Clusters:
    """The clusters of one network, and the tree over those that live."""

    def __init__(self, world: World, radio: Radio) -> None:
        self._radio: Final = radio
        wanted = min(world.parameters.clusters, world.parameters.nodes)
        draw = np.random.default_rng([world.seed, 7])
        centres, label = kmeans2(world.positions, wanted, iter=20, minit="++", seed=draw, missing="warn")
        used, label = np.unique(label, return_inverse=True)
        #: The cluster of each sensor.
        self.of: Final[list[int]] = label.tolist()
        self.centre: Final[Floats] = centres[used]
        #: The sensors of each cluster, dead ones included.
        self.members: Final = [np.flatnonzero(label == cluster) for cluster in range(len(used))]
        offset = np.linalg.norm(world.positions - self.centre[label], axis=1)
        rim = np.array([offset[members].max(initial=1e-9) for members in self.members])
        self._worth = 1.0 - _RIM * offset / np.maximum(rim[label], 1e-9)
        #: The head of each cluster, -1 if it is dead.
        self.head: Final = [self.candidate(cluster) for cluster in range(len(used))]
        #: The cluster above each one, -1 for the core and for those that are cut off or dead.
        self.parent: list[int] = []
        self.core = -1
        radio.air.scope[: radio.sensors] = label
        self.repair()

    def __len__(self) -> int:
        return len(self.members)

    def candidate(self, cluster: int) -> int:
        """The living member that is best by residual energy and centrality, the head if it is hardly worse."""
        members = self.members[cluster]
        worth = self._radio.air.left[members] * self._worth[members]
        best = int(worth.argmax())
        if worth[best] <= 0.0:
            return -1
        now = self.head[cluster] if hasattr(self, "head") else -1
        if now >= 0 and self._radio.is_alive(now):
            of_head = self._radio.left(now) * float(self._worth[now])
            if worth[best] <= of_head * _BETTER:
                return now
        return int(members[best])

    def living(self) -> Iterator[int]:
        """The clusters that have a living member."""
        alive = self._radio.air.alive
        return (cluster for cluster, members in enumerate(self.members) if alive[members].any())

    def repair(self) -> dict[int, tuple[int, int]]:
        """Build the tree again over those that live: the clusters whose parent changed, with the old and the new."""
        near = self._adjacent()
        living = set(self.living())
        parent = [-1] * len(self)
        distance = np.linalg.norm(self.centre, axis=1)
        before = self.parent or parent
        self.core = min(living, key=lambda cluster: distance[cluster], default=-1)
        level = [self.core] if living else []
        reached = set(level)
        while level:
            found = sorted({other for cluster in level for other in near[cluster]} & living - reached)
            for cluster in found:
                above = [one for one in level if one in near[cluster]]
                # a link that exists stays
                parent[cluster] = (
                    before[cluster]
                    if before[cluster] in above
                    else min(above, key=lambda one: float(np.linalg.norm(self.centre[one] - self.centre[cluster])))
                )
            reached.update(found)
            level = found
        changed = {
            cluster: (old, new) for cluster, (old, new) in enumerate(zip(before, parent, strict=True)) if old != new
        }
        self.parent = parent
        return changed

    def children(self, cluster: int) -> list[int]:
        """The clusters directly below one."""
        return [other for other, parent in enumerate(self.parent) if parent == cluster]

    def beside(self, cluster: int) -> list[int]:
        """All that one is joined to: the cluster above it first."""
        above = self.parent[cluster]
        return ([above] if above >= 0 else []) + self.children(cluster)

    def _adjacent(self) -> list[set[int]]:
        """For each cluster those with a living member in reach of a living member of it."""
        air = self._radio.air
        senders = np.repeat(np.arange(self._radio.sensors), np.diff(air.neighbour_start))
        both = (air.alive[senders] & air.alive[air.neighbour]).astype(bool)
        label = np.asarray(self.of)
        near: list[set[int]] = [set() for _ in self.members]
        pairs = np.unique(np.column_stack((label[senders[both]], label[air.neighbour[both]])), axis=0)
        for one, other in pairs.tolist():
            if one != other:
                near[one].add(other)
        return near
