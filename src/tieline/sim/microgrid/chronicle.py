"""The story of the microgrid: everything that happens, what the nodes feel of it, and who says what about it.

A day's happenings depend on the seed and the day alone, so that any stretch of time can be asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from operator import attrgetter
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tieline.sim.microgrid.disturbance import Disturbance
from tieline.sim.microgrid.extra import Unbuildable
from tieline.sim.microgrid.islanding import Island, tell_island
from tieline.sim.microgrid.messages import Message
from tieline.sim.microgrid.scenario import DAY_S, Fault, Happening, Islanding, Rates, Upset, draw_day
from tieline.sim.microgrid.telling import Scene, dispatch, tell_fault, tell_upset

Floats = NDArray[np.float64]

#: Nothing that begins is felt or spoken of for longer than this.
_LONGEST_S: Final = 2 * 3_600


@dataclass(frozen=True, slots=True)
class Page:
    """One day: what was felt, what was said in the order of time, and when the microgrid was alone."""

    disturbances: tuple[Disturbance, ...]
    messages: tuple[Message, ...]
    islands: tuple[Island, ...]


class Chronicle:
    """Happenings by the day on which they begin."""

    def __init__(self, scene: Scene, *, seed: int, rates: Rates, script: Sequence[Happening]) -> None:
        self._scene = scene
        self._seed = seed
        self._rates = rates
        self._script = tuple(script)
        for each in script:
            node = None if isinstance(each, Islanding) else each.node
            if node is not None and node not in scene.network.nodes:
                known = ", ".join(scene.network.nodes)
                raise Unbuildable(f'{scene.network.name} has no node "{node}": it has {known}.')
        self._page = lru_cache(maxsize=8)(self._write)

    def disturbances(self, begin_s: float, end_s: float) -> Iterator[Disturbance]:
        """What is felt between two moments."""
        for page in self._pages(begin_s, end_s):
            yield from (each for each in page.disturbances if each.end_s > begin_s and each.begin_s < end_s)

    def messages(self, begin_s: float, end_s: float) -> list[Message]:
        """What is said from one moment until, and without, another, in the order of time."""
        all_said = chain.from_iterable(page.messages for page in self._pages(begin_s, end_s))
        return sorted((each for each in all_said if begin_s <= each.sent_s < end_s), key=attrgetter("sent_s"))

    def islands(self, begin_s: float, end_s: float) -> list[Island]:
        """When the microgrid is alone between two moments."""
        pages = self._pages(begin_s, end_s)
        return [each for page in pages for each in page.islands if each.end_s > begin_s and each.begin_s < end_s]

    def _pages(self, begin_s: float, end_s: float) -> Iterable[Page]:
        return map(self._page, range(int((begin_s - _LONGEST_S) // DAY_S), int(end_s // DAY_S) + 1))

    def _write(self, day: int) -> Page:
        scene = self._scene
        happenings = list(draw_day(day, seed=self._seed, rates=self._rates, nodes=scene.network.nodes))
        happenings += [each for each in self._script if each.at_s // DAY_S == day]
        disturbances: list[Disturbance] = []
        messages = list(dispatch(scene, day))
        islands: list[Island] = []
        for each in _apart(happenings):
            match each:
                case Islanding():
                    island, said = tell_island(scene, each)
                    islands.append(island)
                    messages += said
                case Fault():
                    felt, said = tell_fault(scene, each)
                    disturbances += felt
                    messages += said
                case Upset():
                    felt, said = tell_upset(scene, each)
                    disturbances += felt
                    messages += said
        return Page(tuple(disturbances), tuple(sorted(messages, key=attrgetter("sent_s"))), tuple(islands))


def _apart(happenings: list[Happening]) -> Iterator[Happening]:
    """Happenings in the order of time, without separations while the microgrid is alone already."""
    alone_until = 0.0
    for each in sorted(happenings, key=attrgetter("at_s")):
        if isinstance(each, Islanding):
            if each.at_s < alone_until:
                continue
            alone_until = each.at_s + each.duration_s + 60.0
        yield each
