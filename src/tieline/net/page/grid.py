"""The event type from which the page draws the grid: one with a voltage and a frequency in JSON.

The zones are those of EN 50160 for supplies of 230 V and 50 Hz, as the reports of the pipeline have them (a test
compares both): where values are normal, and what the standard tolerates for a while.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final  # Any: values of JSON
from urllib.parse import quote

if TYPE_CHECKING:
    from tieline.conf.schema import Attribute, Event

NOMINAL_V: Final = 230.0
NOMINAL_HZ: Final = 50.0
ZONES: Final[dict[str, dict[str, dict[str, tuple[float, float]]]]] = {
    "island": {
        "normal": {"voltage": (207.0, 253.0), "frequency": (49.0, 51.0)},
        "tolerated": {"voltage": (195.5, 253.0), "frequency": (42.5, 57.5)},
    },
    "interconnected": {
        "normal": {"voltage": (207.0, 253.0), "frequency": (49.5, 50.5)},
        "tolerated": {"voltage": (195.5, 253.0), "frequency": (47.0, 52.0)},
    },
}
#: Changes that are worth a dot: smaller ones would be messages that nobody sees.
_WORTH_V: Final = 1
_WORTH_HZ: Final = 0.02


def grid(events: Mapping[str, Event]) -> dict[str, Any] | None:
    """What the page has to subscribe to; None where no event type has both values."""
    for name, event in events.items():
        volts, hertz = _attribute(event, "voltage", "V"), _attribute(event, "frequency", "Hz")
        if event.payload != "json" or volts is None or hertz is None:
            continue
        condition = f"delta({volts.name})>{_WORTH_V} or delta({hertz.name})>{_WORTH_HZ}"
        return {
            "event": name,
            "filter": event.topic,
            "where": [f"$where/{quote(condition, safe='()._')}/{event.topic}"],
            "attributes": {"voltage": volts.name, "frequency": hertz.name},
            "paths": {"voltage": volts.place, "frequency": hertz.place},
            "node_level": _node_level(event.topic),
            "nominal_v": NOMINAL_V,
            "nominal_hz": NOMINAL_HZ,
            "zones": ZONES,
        }
    return None


def _attribute(event: Event, name: str, unit: str) -> Attribute | None:
    """The attribute of this name, else the first one in this unit."""
    numbers = [each for each in event.attributes if each.kind == "number"]
    return next((each for each in numbers if each.name == name), None) or next(
        (each for each in numbers if each.unit == unit), None
    )


def _node_level(filter_: str) -> int | None:
    """The level of the topic that tells nodes apart: the last that the filter leaves open."""
    levels = filter_.split("/")
    open_ = [number for number, level in enumerate(levels) if level in {"+", "#"}]
    return open_[-1] if open_ else None
