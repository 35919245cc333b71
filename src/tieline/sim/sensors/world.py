"""What is the same for all protocols: where sensors are, how sinks move, what is subscribed to and what happens.

Everything is drawn from the seed before the first slot, so that two protocols meet the very same world.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from tieline.match.box import Box
from tieline.match.cover.interests import Interest
from tieline.sim.sensors.parameters import Parameters

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]
Longs = NDArray[np.int64]

#: The event type of all boxes.
_TYPE: Final = "reading"


class World:
    """A drawn network and its load."""

    def __init__(self, parameters: Parameters, seed: int, *, seconds: float | None = None) -> None:
        self.parameters: Final = parameters
        self.seed: Final = seed
        #: How long it exists, settling and draining included.
        self.seconds: Final = math.ceil(
            seconds if seconds is not None else parameters.settle_s + parameters.duration_s + parameters.drain_s
        )
        # one stream for each thing that is drawn: more sinks do not move the sensors
        field, paths, wishes, happenings = (np.random.default_rng([seed, part]) for part in range(4))
        self.positions: Floats = _in_disc(field, parameters.nodes, parameters.radius_m)
        #: By second and sink.
        self.paths: Floats = _waypoints(paths, parameters, self.seconds + 1)
        #: Whether a sensor can sense a topic.
        self.senses: NDArray[np.bool_] = self._sensing(field)
        self._draw_interests(wishes)
        self._draw_events(happenings, until=self.seconds if seconds is not None else self.seconds - parameters.drain_s)

    def _sensing(self, field: np.random.Generator) -> NDArray[np.bool_]:
        centres = _in_disc(field, self.parameters.topics, self.parameters.radius_m)
        distances = np.linalg.norm(self.positions[:, None] - centres[None], axis=2)
        senses = distances <= self.parameters.sensing_m
        # a topic that nobody is near enough to is sensed by the nearest
        senses[distances.argmin(axis=0), np.arange(self.parameters.topics)] = True
        return np.asarray(senses, dtype=np.bool_)

    def _draw_interests(self, wishes: np.random.Generator) -> None:
        parameters = self.parameters
        changes = int(self.seconds / parameters.change_s)
        count = parameters.sinks * (parameters.subscriptions + changes)
        self.interest_topic: Ints = wishes.integers(parameters.topics, size=count, dtype=np.int32)
        centre = wishes.random((count, parameters.attributes))
        width = wishes.uniform(parameters.narrowest, parameters.widest, (count, 1))
        self.interest_lo: Floats = centre - width / 2
        self.interest_hi: Floats = centre + width / 2
        #: By id; ids of one sink follow each other.
        self.interests: list[Interest] = [
            Interest(f"t{topic}", _TYPE, Box(tuple(lo), tuple(hi)))
            for topic, lo, hi in zip(
                self.interest_topic.tolist(), self.interest_lo.tolist(), self.interest_hi.tolist(), strict=True
            )
        ]
        per_sink = parameters.subscriptions + changes
        #: Second, sink, the interest that goes, and the one that comes.
        self.changes: list[tuple[int, int, int, int]] = []
        for sink in range(parameters.sinks):
            first = sink * per_sink
            # not all in the same second
            offset = wishes.random()
            for number in range(changes):
                second = int((number + offset) * parameters.change_s) + 1
                self.changes.append((second, sink, first + number, first + number + parameters.subscriptions))
        self.changes.sort()

    def _draw_events(self, happenings: np.random.Generator, until: float) -> None:
        parameters = self.parameters
        duration = max(0.0, until - parameters.settle_s)
        count = round(parameters.events_per_100s * duration / 100.0)
        moments = np.sort(happenings.random(count)) * duration + parameters.settle_s
        topics = happenings.integers(parameters.topics, size=count, dtype=np.int32)
        values = happenings.random((count, parameters.attributes))
        draws = happenings.random(count)
        places = np.empty((count, parameters.witnesses), np.int32)
        near = cKDTree(self.positions)
        able = [np.flatnonzero(self.senses[:, topic]) for topic in range(parameters.topics)]
        for number, (topic, draw) in enumerate(zip(topics.tolist(), draws.tolist(), strict=True)):
            place = able[topic][int(draw * len(able[topic]))]
            places[number] = np.atleast_1d(near.query(self.positions[place], k=parameters.witnesses)[1])
        repeat = parameters.witnesses
        #: Reports, one for each witness, in the order of time.
        self.event_second: Floats = np.repeat(moments, repeat)
        self.event_topic: Ints = np.repeat(topics, repeat)
        self.event_values: Floats = np.repeat(values, repeat, axis=0)
        self.event_node: Ints = places.reshape(-1)
        #: Which reports are of the same happening.
        self.happening: Ints = np.repeat(np.arange(count, dtype=np.int32), repeat)

    def held_at_first(self, sink: int) -> range:
        """The interests that a sink begins with."""
        per_sink = len(self.interests) // self.parameters.sinks
        return range(sink * per_sink, sink * per_sink + self.parameters.subscriptions)

    def matching(self, event: int) -> frozenset[int]:
        """All interests, held or not, that want an event."""
        candidates = np.flatnonzero(self.interest_topic == self.event_topic[event])
        values = self.event_values[event]
        inside = (self.interest_lo[candidates] <= values) & (values <= self.interest_hi[candidates])
        return frozenset(candidates[inside.all(axis=1)].tolist())


def _in_disc(draw: np.random.Generator, count: int, radius: float) -> Floats:
    distance = radius * np.sqrt(draw.random(count))
    angle = 2 * np.pi * draw.random(count)
    return np.column_stack((distance * np.cos(angle), distance * np.sin(angle)))


def _waypoints(draw: np.random.Generator, parameters: Parameters, seconds: int) -> Floats:
    paths = np.empty((seconds, parameters.sinks, 2))
    for sink in range(parameters.sinks):
        steps: Iterator[Sequence[float]] = _walk(draw, parameters)
        for second in range(seconds):
            paths[second, sink] = next(steps)
    return paths


def _walk(draw: np.random.Generator, parameters: Parameters) -> Iterator[Sequence[float]]:
    """Where a sink is, second by second."""
    place = _in_disc(draw, 1, parameters.radius_m)[0]
    while True:
        goal = _in_disc(draw, 1, parameters.radius_m)[0]
        speed = draw.uniform(parameters.slowest_mps, parameters.fastest_mps)
        steps = max(1, math.ceil(float(np.linalg.norm(goal - place)) / speed))
        for step in range(steps):
            yield place + (goal - place) * (step / steps)
        place = goal
