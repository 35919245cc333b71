"""The compiled loop: nodes that do not disturb each other send at the same time, and frames move hop by hop.

Theory of operation
-------------------
Time is in slots of a control frame; a data frame takes four.  Whenever a frame ends, whoever has one waiting takes part
in a draw, in a random order: a node may begin if nobody nearer than the interference distance is sending or was drawn
before it.  Between two ends nothing changes, so the loop jumps from end to end.  A frame to
one receiver is repeated until it gets through or its repetitions are used up; one to everybody is sent once, and each
neighbour hears it or not.  Frames to several sinks are one frame with a mask until their ways part: it is sent once for
those sinks that share the next hop.  Frames that reach the node they are for leave the loop for the protocol; the loop
returns in the slot in which that happens.

Acknowledgements are part of the airtime and cost no energy of their own; who is not addressed sleeps.
"""

from __future__ import annotations

from tieline.compiling import compiled
from tieline.sim.sensors.air import BOOSTED, BORN, DATA, DESTINATION, EXPIRED, FLAGS, KIND, TO_ALL, Air, Rules
from tieline.sim.sensors.batteries import throw
from tieline.sim.sensors.hops import distance2, send_to_all, send_to_one
from tieline.sim.sensors.queues import enqueue, remove


@compiled
def run_slots(air: Air, rules: Rules, now: int, until: int, outgoing: int) -> tuple[int, int]:
    """Run until something arrives or the time is over: the slot that it is then, and how many frames arrived."""
    for number in range(outgoing):
        node = air.outbox_node[number]
        if air.alive[node]:
            enqueue(air, rules, node, air.outbox[number], air.outbox_mask[number])
    slot = now
    while slot < until:
        arrived = _end(air, rules, slot)
        if arrived > 0:
            return slot, arrived
        if not _begin(air, rules, slot):
            return until, 0
        following = until
        for place in range(air.sending[0]):
            following = min(following, int(air.ends[air.sending[place + 1]]))
        slot = following
    return until, 0


@compiled
def _end(air: Air, rules: Rules, now: int) -> int:
    """The frames that end now get where they go, or do not; how many have arrived at the node that they are for."""
    kept = 0
    arrived = 0
    for place in range(air.sending[0]):
        node = air.sending[place + 1]
        if air.ends[node] > now:
            kept += 1
            air.sending[kept] = node
            continue
        air.ends[node] = 0
        if air.length[node] > 0:  # else it has died meanwhile
            if air.queue[node, 0, DESTINATION] == TO_ALL:
                send_to_all(air, rules, node, now)
            else:
                arrived = send_to_one(air, rules, node, now, arrived)
    air.sending[0] = kept
    return arrived


@compiled
def _begin(air: Air, rules: Rules, now: int) -> bool:
    """Draw who begins to send; whether anybody is sending now."""
    ready = 0
    for node in range(len(air.length)):
        while air.length[node] > 0 and air.ends[node] == 0 and now - air.queue[node, 0, BORN] > rules.expiry:
            air.counters[EXPIRED] += 1
            remove(air, node, 0)
        if air.length[node] > 0 and air.ends[node] == 0:
            air.scratch[ready] = node
            ready += 1
    count = int(air.sending[0])
    for place in range(ready):
        other = place + int(throw(air.dice) * (ready - place))
        node = air.scratch[other]
        air.scratch[other] = air.scratch[place]
        reach = _disturbed(air, rules, node)
        is_free = True
        for earlier in range(count):
            sender = air.sending[earlier + 1]
            if distance2(air.position, node, sender) < max(reach, _disturbed(air, rules, sender)):
                is_free = False
                break
        if is_free:
            count += 1
            air.sending[count] = node
            air.ends[node] = now + (4 if air.queue[node, 0, KIND] == DATA else 1)
    air.sending[0] = count
    return count > 0


@compiled
def _disturbed(air: Air, rules: Rules, node: int) -> float:
    """The square of the distance in which nobody else may send while this node sends its first frame."""
    frame = air.queue[node, 0]
    if frame[FLAGS] & BOOSTED and frame[DESTINATION] >= 0:
        return max(rules.interference2, 4.0 * distance2(air.position, node, frame[DESTINATION]))
    return rules.interference2
