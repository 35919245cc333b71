"""What a subscriber asks for its low classes: timeout, time period and distribution frequency.

They come as user properties of a SUBSCRIBE, hold for the whole session from then on, and are clamped to what the
configuration allows: shorter wishes would let one subscriber's bulk hold up its own urgent messages and cost the broker
work.  A property that cannot be read is ignored.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite

from tieline.conf.schema import Priority, seconds
from tieline.sched.levels import Patience

_UNITS = ("us", "ms", "s", "m", "h")
#: Longer is as good as never.
_LONGEST_S = 86_400.0


def asked_patience(
    settings: Priority, properties: Sequence[tuple[str, str]], before: Patience | None = None
) -> Patience | None:
    """What the properties ask for, within the configured bounds; what they leave out stays as it was before."""
    wishes = dict(properties)
    period_s = _duration(wishes.get("period"))
    timeout_s = _duration(wishes.get("timeout"))
    frequency = _number(wishes.get("frequency"))
    if period_s is None and timeout_s is None and frequency is None:
        return before
    before = before or Patience(period_s=seconds(settings.period), frequency=settings.frequency)
    return Patience(
        period_s=before.period_s if period_s is None else max(seconds(settings.period_min), period_s),
        frequency=before.frequency if frequency is None else min(settings.frequency_max, int(frequency)),
        timeout_s=before.timeout_s if timeout_s is None else max(seconds(settings.timeout_min), timeout_s),
    )


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if isfinite(number) and number >= 0 else None


def _duration(text: str | None) -> float | None:
    """Seconds, with or without a unit."""
    if text is None:
        return None
    for unit in _UNITS:
        if text.endswith(unit) and (unit != "s" or not text.endswith(("us", "ms"))):
            number = _number(text.removesuffix(unit))
            return None if number is None else min(_LONGEST_S, seconds(f"{number:f}{unit}"))
    number = _number(text)
    return None if number is None else min(_LONGEST_S, number)
