"""The medium as protocols use it: frames go out to a node, to sinks or to everybody, and come in where they are for.

It alone spends energy, and it owns all arrays.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

import numpy as np

from tieline.sim.sensors import air as layout
from tieline.sim.sensors.air import BOOSTED, CONTROL, DATA, TO_ALL, TO_SINKS, WORD, Air, Rules
from tieline.sim.sensors.batteries import charge, idle
from tieline.sim.sensors.routes import find_all_ways, find_ways, neighbours
from tieline.sim.sensors.slots import run_slots
from tieline.sim.sensors.world import Floats, Ints, World

#: Destinations that ways are kept for; those that nobody asked for long make room.
_ROWS: Final = 1200


class Arrival(NamedTuple):
    """A frame that has reached the node that it is for."""

    node: int
    tag: int
    event: int
    reference: int
    source: int


class Radio:
    """All nodes, what they have left, and what is on its way."""

    def __init__(self, world: World, *, ranks_by_way: bool = False) -> None:
        parameters = world.parameters
        self.parameters: Final = parameters
        self.rules: Final[Rules] = layout.make_rules(parameters, ranks_by_way=ranks_by_way)
        rows = min(parameters.nodes, _ROWS)
        self.air: Final[Air] = layout.make_air(
            parameters,
            world.positions,
            neighbours(world.positions, parameters.range_m),
            events=len(world.event_second),
            seed=world.seed,
            rows=rows,
        )
        #: The slot that comes next.
        self.now = 0
        self._outgoing = 0
        self._free_rows = list(range(rows - 1, -1, -1))
        self._floods = 0
        self._match_j = parameters.matching_nj * 1e-9 * parameters.data_bits

    # --- nodes

    @property
    def sensors(self) -> int:
        return self.rules.sensors

    def is_alive(self, node: int) -> bool:
        return bool(self.air.alive[node])

    def left(self, node: int) -> float:
        """The energy of a sensor, in joules."""
        return float(self.air.left[node])

    def move_sinks(self, positions: Floats) -> None:
        self.air.position[self.sensors :] = positions

    def nearest(self, sink: int) -> int:
        """The living sensor nearest to a sink, -1 if none is in reach."""
        offset = self.air.position[: self.sensors] - self.air.position[self.sensors + sink]
        distance2 = np.where(self.air.alive[: self.sensors], (offset**2).sum(axis=1), np.inf)
        node = int(distance2.argmin())
        return node if distance2[node] <= self.rules.range2 else -1

    def reaches(self, node: int, sink: int, share: float = 1.0) -> bool:
        """Whether a sink is within a share of the reach of a sensor that lives."""
        offset = self.air.position[node] - self.air.position[self.sensors + sink]
        return self.is_alive(node) and float(offset @ offset) <= self.rules.range2 * share * share

    # --- sending

    def send(  # what a frame has is what one may say of it
        self, source: int, destination: int, tag: int, reference: int = -1, *, event: int = -1, boosted: bool = False,
        rank: int = 0, origin: int = -1,
    ) -> None:  # fmt: skip
        """Send a frame to a node: data if it carries an event, else control.

        ``origin`` is the node that the receiver takes for its source, where that is another one.
        """
        if destination < self.sensors:
            self._know_way(destination)
        frame = self._frame(source)
        frame[:] = (
            CONTROL if event < 0 else DATA, event, destination, tag, reference, rank, self.now, 0,
            BOOSTED if boosted else 0, source if origin < 0 else origin, -1,
        )  # fmt: skip

    def send_control_about(self, source: int, destination: int, tag: int, event: int, *, rank: int = 0) -> None:
        """Send a control frame that speaks of an event and does not carry it."""
        if destination < self.sensors:
            self._know_way(destination)
        frame = self._frame(source)
        frame[:] = (CONTROL, event, destination, tag, -1, rank, self.now, 0, 0, source, -1)

    def send_to_sinks(self, source: int, event: int, sinks: Iterable[int], tag: int = 0) -> None:
        """Send an event to some sinks, each over the place where it is said to be."""
        mask = self.air.outbox_mask
        frame = self._frame(source)
        place = self._outgoing - 1
        for sink in sinks:
            mask[place, sink // WORD] |= 1 << (sink % WORD)
        frame[:] = (DATA, event, TO_SINKS, tag, -1, 0, self.now, 0, 0, source, -1)

    def flood(self, source: int, *, event: int = -1, tag: int = -1, scope: int = -1) -> int:
        """Send to everybody, or to all of one cluster; the number of the flood."""
        self._floods += 1
        frame = self._frame(source)
        kind = CONTROL if event < 0 else DATA
        frame[:] = (kind, event, TO_ALL, tag, self._floods, 0, self.now, 0, 0, source, scope)
        return self._floods

    def _frame(self, source: int) -> Ints:
        if self._outgoing == len(self.air.outbox_node):
            self._flush()
        place = self._outgoing
        self._outgoing += 1
        self.air.outbox_node[place] = source
        self.air.outbox_mask[place] = 0
        frame: Ints = self.air.outbox[place]
        return frame

    def _flush(self) -> None:
        run_slots(self.air, self.rules, self.now, self.now, self._outgoing)
        self._outgoing = 0

    # --- sinks

    def set_access(self, sink: int, node: int) -> None:
        """The sensor over which a sink itself sends."""
        self.air.access[sink] = node

    def set_home(self, sink: int, node: int) -> None:
        """Where frames for a sink are sent from now on."""
        self._know_way(node)
        self.air.home[sink] = self.air.pointer[sink] = node

    def set_pointer(self, sink: int, node: int) -> None:
        """Where frames for a sink go on to from where they are sent."""
        self._know_way(node)
        self.air.pointer[sink] = node

    # --- time

    def run(self, until: int) -> Iterator[Arrival]:
        """Run to a slot, or to the first one in which frames arrive, and give those."""
        outgoing, self._outgoing = self._outgoing, 0
        self.now, arrived = run_slots(self.air, self.rules, self.now, until, outgoing)
        return map(Arrival._make, self.air.arrivals[:arrived].tolist())

    def idle(self, seconds: float) -> None:
        """What it costs all sensors to exist for a while."""
        idle(self.air, self.rules, self.parameters.idle_mw * 1e-3 * seconds, self.now)

    def match(self, node: int) -> None:
        """What it costs a broker to match an event."""
        charge(self.air, node, self._match_j, layout.MATCH, self.now)

    # --- ways

    def refresh_ways(self) -> None:
        """Look for all ways anew, and forget those that nobody asked for in three expiries."""
        limit = self.now - 3 * self.rules.expiry
        known = np.flatnonzero(self.air.row >= 0)
        kept = {int(node) for node in (*self.air.home.tolist(), *self.air.pointer.tolist())}
        for node in known.tolist():
            row = int(self.air.row[node])
            if self.air.row_used[row] < limit and node not in kept:
                self.air.row[node] = -1
                self._free_rows.append(row)
        find_all_ways(self.air, self.rules)

    def hops(self, source: int, destination: int) -> int:
        """How far a sensor is from another, -1 if no way leads there."""
        if source == destination:
            return 0
        self._know_way(destination)
        return int(self.air.hops[self.air.row[destination], source])

    def _know_way(self, destination: int) -> None:
        if self.air.row[destination] >= 0:
            return
        if not self._free_rows:
            raise RuntimeError(f"more than {len(self.air.next_hop)} destinations are in use at once")
        row = self._free_rows.pop()
        self.air.row[destination] = row
        self.air.row_used[row] = self.now
        find_ways(self.air, destination, row)
