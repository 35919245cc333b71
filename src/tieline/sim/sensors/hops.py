"""One frame, one hop, for the compiled loop: where it goes next, who pays, who hears it, and what is left of it."""

from __future__ import annotations

from tieline.compiling import compiled
from tieline.sim.sensors.air import (
    BOOSTED,
    CONTROL,
    DATA,
    DESTINATION,
    EVENT,
    FLAGS,
    GAVE_UP,
    KIND,
    NO_ROUTE,
    PAST_HOME,
    RECEIVE_CONTROL,
    RECEIVE_DATA,
    REFERENCE,
    SCOPE,
    SEND_CONTROL,
    SEND_DATA,
    SENT_CONTROL,
    SENT_DATA,
    SINK_GONE,
    SOURCE,
    TAG,
    TO_SINKS,
    TRIES,
    TWICE,
    WORD,
    Air,
    Rules,
)
from tieline.sim.sensors.batteries import charge, sending, throw
from tieline.sim.sensors.queues import enqueue, remove
from tieline.sim.sensors.world import Floats, Ints, Longs


@compiled
def distance2(position: Floats, one: int, other: int) -> float:
    """The square of the distance of two nodes."""
    x = position[one, 0] - position[other, 0]
    y = position[one, 1] - position[other, 1]
    return float(x * x + y * y)


@compiled
def _pay_to_send(air: Air, rules: Rules, node: int, kind: int, apart: float, now: int) -> bool:
    bits = rules.data_bits if kind == DATA else rules.control_bits
    air.counters[SENT_DATA if kind == DATA else SENT_CONTROL] += 1
    if node >= rules.sensors:
        return True
    return charge(air, node, sending(rules, bits, apart), SEND_DATA if kind == DATA else SEND_CONTROL, now)


@compiled
def _pay_to_receive(air: Air, rules: Rules, node: int, kind: int, now: int) -> bool:
    if node >= rules.sensors:
        return True
    bits = rules.data_bits if kind == DATA else rules.control_bits
    return charge(air, node, bits * rules.electronics, RECEIVE_DATA if kind == DATA else RECEIVE_CONTROL, now)


@compiled
def send_to_all(air: Air, rules: Rules, node: int, now: int) -> None:
    """Send the first frame to whoever is in reach; each repeats it once, if it is in the frame's scope."""
    frame = air.queue[node, 0].copy()
    remove(air, node, 0)
    air.seen[node, frame[REFERENCE] % air.seen.shape[1]] = frame[REFERENCE]
    if not _pay_to_send(air, rules, node, frame[KIND], rules.range2, now):
        return
    if node < rules.sensors:
        for place in range(air.neighbour_start[node], air.neighbour_start[node + 1]):
            _hear(air, rules, air.neighbour[place], frame, now)
    else:
        for other in range(rules.sensors):
            if distance2(air.position, node, other) <= rules.range2:
                _hear(air, rules, other, frame, now)
    if frame[KIND] == DATA:
        for sink in range(rules.sinks):
            is_near = distance2(air.position, node, rules.sensors + sink) <= rules.range2
            if is_near and throw(air.dice) >= rules.loss:
                _deliver(air, sink, frame[EVENT], now)


@compiled
def _hear(air: Air, rules: Rules, node: int, frame: Ints, now: int) -> None:
    """A frame that is for everybody reaches a sensor, or does not."""
    if not air.alive[node] or (frame[SCOPE] >= 0 and air.scope[node] != frame[SCOPE]):
        return
    if not _pay_to_receive(air, rules, node, frame[KIND], now) or throw(air.dice) < rules.loss:
        return
    place = frame[REFERENCE] % air.seen.shape[1]
    if air.seen[node, place] == frame[REFERENCE]:
        return
    air.seen[node, place] = frame[REFERENCE]
    if frame[KIND] == CONTROL and frame[TAG] >= 0:
        air.heard[frame[TAG], node] = frame[REFERENCE]
    enqueue(air, rules, node, frame, air.no_sinks)


@compiled
def _deliver(air: Air, sink: int, event: int, now: int) -> None:
    """A sink has an event; it keeps the first copy."""
    if air.received[event, sink] < 0:
        air.received[event, sink] = now
    else:
        air.counters[TWICE] += 1


@compiled
def send_to_one(air: Air, rules: Rules, node: int, now: int, arrived: int) -> int:
    """Send the first frame to its next hop; the number of arrivals so far."""
    frame = air.queue[node, 0]
    mask = air.mask[node, 0]
    hop, flags, is_last = _next(air, rules, node, frame, mask, now)
    if hop < 0:
        return arrived  # the sinks that are out of reach have been taken off, or the frame is gone
    group = _group(air, rules, node, frame, mask, hop, flags, now) if frame[DESTINATION] == TO_SINKS else mask.copy()
    apart = distance2(air.position, node, hop)
    if not _pay_to_send(air, rules, node, frame[KIND], apart, now):
        return arrived
    frame = air.queue[node, 0]
    is_heard = bool(air.alive[hop]) and (hop < rules.sensors or apart <= rules.range2)
    is_heard = is_heard and _pay_to_receive(air, rules, hop, frame[KIND], now) and throw(air.dice) >= rules.loss
    if not is_heard:
        frame[TRIES] += 1
        if frame[TRIES] > rules.retries:
            air.counters[GAVE_UP] += 1
            _take_off(air, node, mask, group)
        return arrived
    if is_last:
        if hop >= rules.sensors and frame[KIND] == DATA:
            _deliver(air, hop - rules.sensors, frame[EVENT], now)
        if frame[DESTINATION] >= 0:
            arrival = air.arrivals[arrived]
            arrival[0] = hop
            arrival[1] = frame[TAG]
            arrival[2] = frame[EVENT]
            arrival[3] = frame[REFERENCE]
            arrival[4] = frame[SOURCE]
            arrived += 1
    else:
        copy = frame.copy()
        copy[FLAGS] = flags
        enqueue(air, rules, hop, copy, group)
    _take_off(air, node, mask, group)
    return arrived


@compiled
def _take_off(air: Air, node: int, mask: Longs, group: Longs) -> None:
    """The first frame is done for a group of sinks; without any left, or if it had none, it leaves the queue."""
    is_empty = True
    for word in range(len(mask)):
        mask[word] &= ~group[word]
        if mask[word] != 0:
            is_empty = False
    air.queue[node, 0, TRIES] = 0
    if is_empty:
        remove(air, node, 0)


@compiled
def _next(air: Air, rules: Rules, node: int, frame: Ints, mask: Longs, now: int) -> tuple[int, int, bool]:
    """The next hop of the first frame, the flags it travels with, and whether it is for that node; -1 if there is none.

    What cannot be sent is taken out of the queue, and counted.
    """
    destination = int(frame[DESTINATION])
    if destination == TO_SINKS or destination >= rules.sensors:
        sink = destination - rules.sensors if destination >= 0 else _first(mask)
        hop, flags, is_gone = _towards_sink(air, rules, node, sink, int(frame[FLAGS]), now)
        if hop < 0:
            air.counters[SINK_GONE if is_gone else NO_ROUTE] += 1
            if destination >= 0:
                remove(air, node, 0)
            else:
                mask[sink // WORD] &= ~(1 << (sink % WORD))
                if _first(mask) < 0:
                    remove(air, node, 0)
        return int(hop), int(flags), hop == rules.sensors + sink
    if node >= rules.sensors:
        hop = air.access[node - rules.sensors]
    elif frame[FLAGS] & BOOSTED:
        hop = destination
    else:
        hop = _look_up(air, destination, node, now)
    if hop < 0:
        air.counters[NO_ROUTE] += 1
        remove(air, node, 0)
    return int(hop), int(frame[FLAGS]), hop == destination


@compiled
def _look_up(air: Air, destination: int, node: int, now: int) -> int:
    row = air.row[destination]
    if row < 0:
        return -1
    air.row_used[row] = now
    return int(air.next_hop[row, node])


@compiled
def _towards_sink(air: Air, rules: Rules, node: int, sink: int, flags: int, now: int) -> tuple[int, int, bool]:
    """The next hop to a sink: itself if it is in reach, else towards where it is said to be."""
    if node >= rules.sensors:
        return int(air.access[node - rules.sensors]), flags, False
    if distance2(air.position, node, rules.sensors + sink) <= rules.range2:
        return rules.sensors + sink, flags, False
    if node == air.home[sink]:
        flags |= PAST_HOME
    goal = air.pointer[sink] if flags & PAST_HOME else air.home[sink]
    if goal == node:
        return -1, flags, True
    return _look_up(air, int(goal), node, now), flags, False


@compiled
def _first(mask: Longs) -> int:
    """The first sink of a mask, -1 if there is none."""
    for word in range(len(mask)):
        if mask[word] != 0:
            for bit in range(WORD):
                if mask[word] >> bit & 1:
                    return word * WORD + bit
    return -1


@compiled
def _group(  # a compiled function gets arrays and numbers, not an object that has them
    air: Air, rules: Rules, node: int, frame: Ints, mask: Longs, hop: int, flags: int, now: int
) -> Longs:
    """The sinks of a mask that this hop serves with these flags."""
    group = mask.copy()
    group[:] = 0
    if hop >= rules.sensors:
        sink = hop - rules.sensors
        group[sink // WORD] = 1 << (sink % WORD)
        return group
    for sink in range(rules.sinks):
        if mask[sink // WORD] >> (sink % WORD) & 1:
            other, its_flags, _ = _towards_sink(air, rules, node, sink, int(frame[FLAGS]), now)
            if other == hop and its_flags == flags:
                group[sink // WORD] |= 1 << (sink % WORD)
    return group
