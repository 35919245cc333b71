"""The zones of the voltage/frequency plane of EN 50160 for an island of 230 V and 50 Hz, said in two ways.

Once as the conditions of content subscriptions, for the broker; once as plain comparisons, to know what it should have
delivered.  Zone 1 is normal, zone 2 tolerated for a while, zone 3 never.
"""

from __future__ import annotations

from typing import Final

import msgspec

#: Voltage and frequency: what is normal, and what is tolerated.
NORMAL: Final = ((207.0, 253.0), (49.0, 51.0))
TOLERATED: Final = ((195.5, 253.0), (42.5, 57.5))

_READINGS: Final = "microgrid/+/+/reading"
_IS_TOLERATED: Final = "195.5 <= voltage <= 253 and 42.5 <= frequency <= 57.5"

#: What a subscriber to each zone asks for.  Any client can spell it; the first two put the condition in front of the
#: filter, which works with every filter, the third behind it.
FILTERS: Final = {
    1: f"$where/207 <= voltage <= 253 and 49 <= frequency <= 51/{_READINGS}",
    2: f"$where/{_IS_TOLERATED} and (voltage < 207 or frequency < 49 or frequency > 51)/{_READINGS}",
    3: f"{_READINGS}?voltage < 195.5 or voltage > 253 or frequency < 42.5 or frequency > 57.5",
}


class Reading(msgspec.Struct):
    """What a meter says, as far as zones go."""

    node: str
    voltage: float
    frequency: float | None


def zone_of(voltage: float, frequency: float | None) -> int | None:
    """1, 2 or 3; None if nothing is known of the frequency and the voltage alone does not tell."""
    if _is_outside(voltage, TOLERATED[0]) or (frequency is not None and _is_outside(frequency, TOLERATED[1])):
        return 3
    if frequency is None:
        return None
    is_normal = not _is_outside(voltage, NORMAL[0]) and not _is_outside(frequency, NORMAL[1])
    return 1 if is_normal else 2


def _is_outside(value: float, bounds: tuple[float, float]) -> bool:
    return value < bounds[0] or value > bounds[1]
