"""Dice, energy and death, for the compiled loop: whatever costs energy passes through here.

A sensor that cannot pay in full pays what it has and dies: what is spent and what is left add up to what was given.
"""

from __future__ import annotations

from tieline.compiling import compiled
from tieline.sim.sensors.air import DIED, IDLE, Air, Rules
from tieline.sim.sensors.world import Longs


@compiled
def throw(dice: Longs) -> float:
    """A number from 0 to 1: L'Ecuyer's combined generator, whose products fit into 64 bits in any language."""
    first = 40014 * int(dice[0]) % 2147483563
    second = 40692 * int(dice[1]) % 2147483399
    dice[0] = first
    dice[1] = second
    return ((first - second) % 2147483562) / 2147483562.0


@compiled
def charge(air: Air, node: int, joules: float, account: int, now: int) -> bool:
    """Take energy from a sensor: whether it still lives."""
    left = air.left[node]
    if left > joules:
        air.left[node] = left - joules
        air.spent[node, account] += joules
        return True
    air.spent[node, account] += left
    air.left[node] = 0.0
    if air.alive[node]:
        air.alive[node] = 0
        air.died[node] = now
        air.counters[DIED] += air.length[node]
        air.length[node] = 0
    return False


@compiled
def idle(air: Air, rules: Rules, joules: float, now: int) -> None:
    """What it costs all sensors to exist for a while."""
    for node in range(rules.sensors):
        if air.alive[node]:
            charge(air, node, joules, IDLE, now)


@compiled
def sending(rules: Rules, bits: float, distance2: float) -> float:
    """What it costs to send so far, by the first-order model; distances are squared."""
    if distance2 < rules.crossover2:
        return bits * (rules.electronics + rules.amplifier * distance2)
    return bits * (rules.electronics + rules.multipath * distance2 * distance2)
