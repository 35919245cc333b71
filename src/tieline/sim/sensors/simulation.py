"""One protocol in one world: the seconds pass, sinks move and change their minds, events happen, nodes die.

Each second sinks move and attach to the living sensor nearest to them once theirs is out of reach, all sensors pay for
having existed, and the protocol hears of what it could notice.  In between the medium runs from arrival to arrival.
What a sink wants is judged when an event happens; whether the network knows of it by then is the protocol's business.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Final
from typing import Protocol as Interface

import numpy as np

from tieline.sim.sensors.outcome import Outcome
from tieline.sim.sensors.radio import Arrival, Radio
from tieline.sim.sensors.world import World

#: A sink keeps its sensor while that is this share of the reach away at most.
_KEEPS: Final = 0.85
#: The network has died when half of the sensors have, and this share of what was wanted is lost.
_LOSS: Final = 0.5
_WINDOW_S: Final = 20
#: Frames that a sender may be ahead of its pace.
_AHEAD: Final = 6


class Protocol(Interface):
    """Carries events from the sensors to the sinks that want them, in one simulation.

    Every protocol answers the same questions by the same names, in the order in which they are asked.
    """

    def setup(self) -> None:
        """Begin: sinks hold their first interests, and nobody knows of them."""

    def tick(self, second: int) -> None:
        """Another second begins: what is due every so many seconds is done now."""

    def subscribe(self, sink: int, interest: int) -> None:
        """A sink wants something more."""

    def unsubscribe(self, sink: int, interest: int) -> None:
        """A sink does not want something any more."""

    def attach(self, sink: int) -> None:
        """A sink has moved and is attached to another sensor."""

    def publish(self, event: int, node: int) -> None:
        """A sensor has sensed something."""

    def receive(self, arrival: Arrival) -> None:
        """A frame has reached the node that it is for."""

    def died(self, nodes: set[int]) -> None:
        """These sensors have died in the last second."""

    def table_sizes(self) -> dict[int, int]:
        """Entries of each table that knows of subscriptions, by the number of its holder."""
        ...


class Simulation:
    """A world, a medium and a protocol; what protocols may ask of them."""

    def __init__(self, world: World, protocol: Callable[[Simulation], Protocol], *, ranks_by_way: bool = False) -> None:
        self.world: Final = world
        self.parameters: Final = world.parameters
        self.radio: Final = Radio(world, ranks_by_way=ranks_by_way)
        #: The interests that each sink holds now.
        self.holds: Final = [set(world.held_at_first(sink)) for sink in range(world.parameters.sinks)]
        #: The sensor that each sink is attached to, -1 if none is in reach.
        self.access: Final = [-1] * world.parameters.sinks
        #: By event, once it has happened: all interests that want it.
        self.matching: dict[int, frozenset[int]] = {}
        #: By event: the sinks that wanted it.
        self.wanted: dict[int, list[int]] = {}
        self._timers: list[tuple[int, int, Callable[[], None]]] = []
        self._alarms = 0
        #: By second: how many sensors live.
        self.living: list[int] = []
        self._dead: set[int] = set()
        self.radio.move_sinks(world.paths[0])
        for sink in range(world.parameters.sinks):
            self._attach(sink)
        self.protocol: Final[Protocol] = protocol(self)

    @property
    def now(self) -> int:
        """The slot that comes next."""
        return self.radio.now

    @property
    def seconds(self) -> float:
        return self.radio.now / self.parameters.slots_per_s

    def after(self, slots: int, action: Callable[[], None]) -> None:
        """Do something so many slots from now, but never in the slot that is going on."""
        self._alarms += 1
        heapq.heappush(self._timers, (self.now + max(1, slots), self._alarms, action))

    def event_topic(self, event: int) -> int:
        return int(self.world.event_topic[event])

    def run(self, *, until_dead: bool = False) -> Outcome:
        """Run to the end of the world, or until the network has died."""
        world, parameters = self.world, self.parameters
        moments = [parameters.slots(second) for second in world.event_second.tolist()]
        changes = list(reversed(world.changes))
        following = 0
        self.protocol.setup()
        for second in range(world.seconds):
            self._begin_second(second)
            while changes and changes[-1][0] <= second:
                _, sink, old, new = changes.pop()
                self._change(sink, old, new)
            end = parameters.slots(second + 1)
            while self.now < end:
                target = end
                if following < len(moments):
                    target = min(target, max(moments[following], self.now))
                if self._timers:
                    target = min(target, max(self._timers[0][0], self.now))
                for arrival in self.radio.run(target):
                    if self.radio.air.alive[arrival.node]:
                        self.protocol.receive(arrival)
                while self._timers and self._timers[0][0] <= self.now:
                    heapq.heappop(self._timers)[2]()
                while following < len(moments) and moments[following] <= self.now:
                    self._happen(following)
                    following += 1
            if until_dead and second % _WINDOW_S == 0 and self._has_died(following):
                break
        return Outcome.of(world, self.radio, self.wanted, self.living, self.protocol.table_sizes())

    def _begin_second(self, second: int) -> None:
        radio = self.radio
        radio.move_sinks(self.world.paths[second])
        if second:
            radio.idle(1.0)
        if second and second % self.parameters.reroute_s == 0:
            radio.refresh_ways()
        for sink in range(self.parameters.sinks):
            node = self.access[sink]
            if node < 0 or not radio.reaches(node, sink, _KEEPS):
                before = node
                self._attach(sink)
                if second and self.access[sink] >= 0 and self.access[sink] != before:
                    self.protocol.attach(sink)
        alive = radio.air.alive[: radio.sensors]
        self.living.append(int(alive.sum()))
        if self.living[-1] + len(self._dead) < radio.sensors:
            dead = set(np.flatnonzero(alive == 0).tolist()) - self._dead
            self._dead |= dead
            self.protocol.died(dead)
        self.protocol.tick(second)

    def _attach(self, sink: int) -> None:
        self.access[sink] = self.radio.nearest(sink)
        self.radio.set_access(sink, self.access[sink])

    def _change(self, sink: int, old: int, new: int) -> None:
        self.holds[sink].discard(old)
        self.holds[sink].add(new)
        self.protocol.subscribe(sink, new)
        self.protocol.unsubscribe(sink, old)

    def _happen(self, event: int) -> None:
        node = int(self.world.event_node[event])
        if not self.radio.is_alive(node):
            return
        matching = self.world.matching(event)
        self.matching[event] = matching
        self.wanted[event] = [sink for sink, held in enumerate(self.holds) if not held.isdisjoint(matching)]
        self.protocol.publish(event, node)

    def _has_died(self, following: int) -> bool:
        if self.living[-1] * 2 > self.radio.sensors:
            return False
        if not self.living[-1]:
            return True
        # the last window but one: what is on its way is not lost
        until = self.seconds - _WINDOW_S
        window = [
            event for event in range(following)
            if until - _WINDOW_S <= self.world.event_second[event] < until and event in self.wanted
        ]  # fmt: skip
        slots = [int(self.radio.air.received[event, sink]) for event in window for sink in self.wanted[event]]
        return sum(slot >= 0 for slot in slots) < _LOSS * len(slots)


class Pacer:
    """Frames of one sender that come in a burst are spread over time, so that no queue on their way overflows.

    A sender may be some frames ahead of its pace; what exceeds that waits for its turn, in order (the generic cell rate
    algorithm: one number per sender, the slot in which it would be level with its pace).
    """

    def __init__(self, run: Simulation) -> None:
        self._run: Final = run
        self._pace: Final = max(1, run.parameters.slots(run.parameters.hand_over_ms / 1000.0))
        self._level: dict[int, int] = {}

    def put(self, sender: int, frame: Callable[[], None]) -> None:
        """Send a frame now, or when it is its turn."""
        now = self._run.now
        level = max(self._level.get(sender, 0), now)
        self._level[sender] = level + self._pace
        wait = level - _AHEAD * self._pace - now
        if wait <= 0:
            frame()
        else:
            self._run.after(wait, frame)

    def is_level(self, sender: int) -> bool:
        """Whether nothing of a sender waits."""
        return self._level.get(sender, 0) - (_AHEAD + 1) * self._pace <= self._run.now
