"""Random trees of covering tables, without radio and loss: what is said arrives at once."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import Final

import numpy as np

from tieline.match.box import Box
from tieline.match.cover.interests import Interest
from tieline.sim.sensors.tables import Covering, HeadTable, Telling, link_of_sink

#: Layers of heads; subscriptions of each, or of each at the rim where only those have some.
LAYERS: Final = 5
OWN: Final = 3
_AT_THE_RIM: Final = 12


class Heads:
    """A random tree of heads, each with subscriptions of its own; what is said arrives at once."""

    def __init__(self, draw: np.random.Generator, interests: Sequence[Interest], covering: Covering) -> None:
        #: By head: the one above, -1 for the core; and its layer, 0 for the core.
        self.parent, self.layer = [-1], [0]
        first = 0
        for layer in range(1, LAYERS):
            last = len(self.parent)
            for above in range(first, last):
                for _ in range(int(draw.integers(2, 5))):
                    self.parent.append(above)
                    self.layer.append(layer)
            first = last
        self.tables = [HeadTable(covering, interests) for _ in self.parent]
        for head, above in enumerate(self.parent):
            if above >= 0:
                self.tables[head].open(above, tells=True)
                self.tables[above].open(head, tells=False)

    def subscribe(self, head: int, interest: int) -> None:
        """A sink of a head wants something."""
        sink = link_of_sink(head)
        self.tables[head].open(sink, tells=False)
        self._say(head, self.tables[head].add(sink, interest))

    def _say(self, head: int, tellings: Sequence[Telling]) -> None:
        for link, is_new, interest in tellings:
            above = self.tables[link]
            self._say(link, above.add(head, interest) if is_new else above.cancel(head, interest))

    def below(self) -> list[int]:
        """By head: how many heads there are in its part of the tree, itself included."""
        count = [1] * len(self.parent)
        for head in range(len(self.parent) - 1, 0, -1):
            count[self.parent[head]] += count[head]
        return count

    def examined(self, origin: int) -> int:
        """Entries on the way from a head to the core."""
        total = 0
        while origin >= 0:
            total += len(self.tables[origin])
            origin = self.parent[origin]
        return total


def boxes(draw: np.random.Generator, count: int, widest: float, dimensions: int = 1) -> list[Interest]:
    """Boxes of one topic, from narrow to wide ones at random."""
    width = draw.uniform(widest / 10, widest, (count, dimensions))
    low = draw.random((count, dimensions)) * (1 - width)
    return [
        Interest("air", "reading", Box(tuple(lo), tuple(hi)))
        for lo, hi in zip(low.tolist(), (low + width).tolist(), strict=True)
    ]


def covered_share(interests: Sequence[Interest]) -> float:
    """The share of boxes that another one covers: the covering ratio."""
    found = [one.box for one in interests if one.box is not None]
    low, high = np.array([box.lo for box in found]), np.array([box.hi for box in found])
    covers = np.asarray((low[:, None] <= low[None]).all(axis=2) & (high[:, None] >= high[None]).all(axis=2))
    np.fill_diagonal(covers, val=False)
    return float(covers.any(axis=0).mean())


def grown(
    seed: int, widest: float, covering: Covering, *, order: str = "at random"
) -> tuple[Heads, list[Interest], float]:
    """A tree whose heads have all subscribed, in this order; the interests, and their covering ratio."""
    draw = np.random.default_rng([seed, round(1000 * widest)])
    sizes = Heads(np.random.default_rng(seed), [], covering)
    interests = boxes(draw, OWN * len(sizes.parent), widest)
    heads = Heads(np.random.default_rng(seed), interests, covering)
    turns = draw.permutation(len(interests)).tolist()
    if order != "at random":
        turns.sort(key=lambda one: _width(interests[one]), reverse=order == "wide first")
    for turn in turns:
        heads.subscribe(turn % len(heads.parent), turn)
    return heads, interests, covered_share(interests)


def layers_of_nested(seed: int) -> list[float]:
    """Mean entries by layer where only sinks at the rim subscribe, to thresholds: of two, one covers the other."""
    heads = Heads(np.random.default_rng(seed), [], "optimal")
    rim = [head for head, layer in enumerate(heads.layer) if layer == LAYERS - 1]
    low = np.random.default_rng([seed, 5]).random(_AT_THE_RIM * len(rim))
    thresholds = [Interest("air", "reading", Box((lo,), (1.0,))) for lo in low.tolist()]
    heads = Heads(np.random.default_rng(seed), thresholds, "optimal")
    for number in range(len(thresholds)):
        heads.subscribe(rim[number % len(rim)], number)
    return [
        fmean(len(heads.tables[head]) for head, one in enumerate(heads.layer) if one == layer)
        for layer in range(LAYERS)
    ]


def _width(interest: Interest) -> float:
    assert interest.box is not None
    return interest.box.hi[0] - interest.box.lo[0]


def taken_at_its_word(draw: np.random.Generator) -> tuple[int, int]:
    """Algorithm 2 as it stands: from below up, otherwise down; how many heads there are, and how many it reaches."""
    heads = Heads(draw, [], "none")
    children: list[list[int]] = [[] for _ in heads.parent]
    for head, above in enumerate(heads.parent):
        if above >= 0:
            children[above].append(head)
    origin = int(draw.integers(len(heads.parent)))
    seen = {origin}
    # a sensor is below its head
    line = [(origin, True)]
    while line:
        head, is_from_below = line.pop()
        others = [heads.parent[head]] if is_from_below and heads.parent[head] >= 0 else children[head]
        for other in others:
            if other not in seen:
                seen.add(other)
                line.append((other, other == heads.parent[head]))
    return len(heads.parent), len(seen)
