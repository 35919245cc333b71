"""From which event type the page draws the grid, and that its zones are those of the reports."""

from __future__ import annotations

from urllib.parse import unquote

import pytest

from tieline.conf.schema import Attribute, Event
from tieline.net.page.grid import NOMINAL_HZ, NOMINAL_V, ZONES, grid

VOLTS, HERTZ = Attribute("voltage"), Attribute("frequency", path="f")
READING = Event(topic="microgrid/+/+/reading", attributes=(VOLTS, HERTZ))


def test_the_first_type_with_both_values() -> None:
    found = grid({"other": Event(topic="x", attributes=(VOLTS,)), "reading": READING})
    assert found is not None
    assert (found["event"], found["filter"], found["node_level"]) == ("reading", "microgrid/+/+/reading", 2)
    assert found["paths"] == {"voltage": "voltage", "frequency": "f"}
    (where,) = found["where"]
    assert unquote(where) == "$where/delta(voltage)>1 or delta(frequency)>0.02/microgrid/+/+/reading"
    assert where.count("/") == 5 and "+" not in where.split("/")[1]


def test_units_tell_what_names_do_not() -> None:
    found = grid({"e": Event(topic="a/+", attributes=(Attribute("u", unit="V"), Attribute("f", unit="Hz")))})
    assert found is not None and found["attributes"] == {"voltage": "u", "frequency": "f"}


@pytest.mark.parametrize(
    "event",
    [
        Event(topic="a", attributes=(VOLTS,)),
        Event(topic="a", payload="cbor", attributes=(VOLTS, HERTZ)),
        Event(topic="a", attributes=(Attribute("voltage", "category"), HERTZ)),
    ],
)
def test_without_both_in_json_there_is_no_grid(event: Event) -> None:
    assert grid({"e": event}) is None


@pytest.mark.parametrize("system", ["island", "interconnected"])
def test_the_zones_are_those_of_the_reports(system: str) -> None:
    limits = pytest.importorskip("tieline.pipeline.jobs.quality.limits")
    standard = limits.Limits(nominal_v=NOMINAL_V, nominal_hz=NOMINAL_HZ, system=system)
    for quantity in ("voltage", "frequency"):
        assert ZONES[system]["normal"][quantity] == pytest.approx(tuple(standard.normal(quantity)))
        assert ZONES[system]["tolerated"][quantity] == pytest.approx(tuple(standard.extreme(quantity)))
