"""What settings are measured in: limits, durations and levels, and what they become inside the broker.

A limit is a number or ``"none"``; zero always means zero.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

NoLimit = Literal["none"]
Count = Annotated[int, Meta(ge=0)]
Limit = Count | NoLimit
Seconds = Annotated[float, Meta(ge=0)]
Rate = Annotated[float, Meta(gt=0)]
PacketBytes = Annotated[int, Meta(ge=16, le=268_435_460)]

#: What "none" becomes inside the broker: larger than any count or size it will ever compare with.
UNLIMITED = 1 << 62


def bound(limit: Limit) -> int:
    """The number that a limit compares with."""
    return UNLIMITED if limit == "none" else limit


Level = Annotated[int, Meta(ge=0, le=3)]
#: Seconds as a number, or a number with its unit.
Duration = Annotated[float, Meta(ge=0)] | Annotated[str, Meta(pattern=r"^[0-9]+(\.[0-9]+)?(us|ms|s|m|h)$")]

#: The same, or "none".
Age = Annotated[float, Meta(ge=0)] | Annotated[str, Meta(pattern=r"^([0-9]+(\.[0-9]+)?(us|ms|s|m|h)|none)$")]

_UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}


def seconds(duration: Duration) -> float:
    """A duration in seconds."""
    if isinstance(duration, str):
        number = duration.rstrip("usmh")
        return float(number) * _UNITS[duration[len(number) :]]
    return duration
