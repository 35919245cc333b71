"""Topic filters as settings hold them: whether one is well-formed, and whether two can want the same topic."""

from __future__ import annotations

from itertools import zip_longest


def flaw(filter_: str) -> str | None:
    """What is wrong with a topic filter, as a sentence; None if nothing is."""
    levels = filter_.split("/")
    if not filter_ or any("#" in level and level != "#" for level in levels) or "#" in levels[:-1]:
        return f'"{filter_}" is no topic filter.'
    if any("+" in level and level != "+" for level in levels):
        return f'"{filter_}" is no topic filter: + stands for a whole level.'
    return None


def overlap(one: str, other: str) -> bool:
    """Whether some topic matches both of two well-formed filters."""
    for depth, pair in enumerate(zip_longest(one.split("/"), other.split("/"))):
        if "#" in pair or "+" in pair:
            # a leading wildcard does not match topics that begin with $ [MQTT-4.7.2-1]
            if depth == 0 and any(level is not None and level.startswith("$") for level in pair):
                return False
            if "#" in pair:
                # also where the other filter has just ended: # includes the level above it
                return True
        if None in pair or ("+" not in pair and pair[0] != pair[1]):
            return False
    return True
