"""The queues of nodes, for the compiled loop: what gives way when one is full."""

from __future__ import annotations

from tieline.compiling import compiled
from tieline.sim.sensors.air import (
    DATA,
    DESTINATION,
    EVENT,
    FIELDS,
    FLAGS,
    FULL,
    KIND,
    PAST_HOME,
    RANK,
    REPLACED,
    TAG,
    TO_SINKS,
    TRIES,
    WORD,
    Air,
    Rules,
)
from tieline.sim.sensors.world import Ints, Longs


@compiled
def enqueue(air: Air, rules: Rules, node: int, frame: Ints, mask: Longs) -> None:
    """Put a frame last; in a full queue the one with the highest rank gives way, or is not taken."""
    length = air.length[node]
    rank = frame[RANK]
    if rules.ranks_by_way:
        rank = _way(air, rules, node, frame, mask)
    if length > 0 and _joined(air, node, frame, mask):
        return
    capacity = air.queue.shape[1]
    if length == capacity:
        worst = capacity
        highest = rank
        for place in range(1, capacity):  # the first one may be on the air
            if air.queue[node, place, RANK] > highest:
                worst = place
                highest = air.queue[node, place, RANK]
        if worst == capacity:
            air.counters[FULL] += 1
            return
        remove(air, node, worst)
        air.counters[REPLACED] += 1
        length -= 1
    for number in range(FIELDS):
        air.queue[node, length, number] = frame[number]
    air.queue[node, length, RANK] = rank
    air.queue[node, length, TRIES] = 0
    for word in range(len(mask)):
        air.mask[node, length, word] = mask[word]
    air.length[node] = length + 1


@compiled
def remove(air: Air, node: int, place: int) -> None:
    """Take a frame out; those behind it move up."""
    last = air.length[node] - 1
    for each in range(place, last):
        for number in range(FIELDS):
            air.queue[node, each, number] = air.queue[node, each + 1, number]
        for word in range(air.mask.shape[2]):
            air.mask[node, each, word] = air.mask[node, each + 1, word]
    air.length[node] = last


@compiled
def _joined(air: Air, node: int, frame: Ints, mask: Longs) -> bool:
    """Whether a copy of the event waits here, on the way to sinks too, and now carries these sinks as well."""
    if frame[DESTINATION] != TO_SINKS or frame[KIND] != DATA:
        return False
    for place in range(air.length[node]):
        queued = air.queue[node, place]
        if (
            queued[DESTINATION] == TO_SINKS
            and queued[EVENT] == frame[EVENT]
            and queued[TAG] == frame[TAG]
            and queued[FLAGS] == frame[FLAGS]
        ):
            for word in range(len(mask)):
                air.mask[node, place, word] |= mask[word]
            return True
    return False


@compiled
def _way(air: Air, rules: Rules, node: int, frame: Ints, mask: Longs) -> int:
    """How many hops a frame has to go, to the farthest of its sinks."""
    destination = frame[DESTINATION]
    if destination >= 0:
        row = air.row[destination] if destination < rules.sensors else -1
        return air.hops[row, node] if row >= 0 and node < rules.sensors else 0
    if destination != TO_SINKS or node >= rules.sensors:
        return 0
    longest = 0
    for sink in range(rules.sinks):
        if mask[sink // WORD] >> (sink % WORD) & 1:
            goal = air.pointer[sink] if frame[FLAGS] & PAST_HOME else air.home[sink]
            row = air.row[goal]
            if row >= 0:
                longest = max(longest, air.hops[row, node])
    return longest
