"""Limits are round numbers, those of the microgrid example for an island, and refuse nonsense."""

from __future__ import annotations

import pytest

from tieline.pipeline.jobs.quality.clauses import SYSTEMS, System
from tieline.pipeline.jobs.quality.limits import Limits, Range


def test_an_island_has_the_zones_of_the_microgrid_example() -> None:
    limits = Limits(system="island")
    assert limits.normal("voltage") == Range(207.0, 253.0)
    assert limits.extreme("voltage") == Range(195.5, 253.0)
    assert limits.normal("frequency") == Range(49.0, 51.0)
    assert limits.extreme("frequency") == Range(42.5, 57.5)


def test_an_interconnected_system_is_narrower() -> None:
    limits = Limits()
    assert limits.normal("frequency") == Range(49.5, 50.5)
    assert limits.extreme("frequency") == Range(47.0, 52.0)


@pytest.mark.parametrize("system", SYSTEMS)
def test_the_absolute_range_of_each_quantity_is_the_wider_one(system: System) -> None:
    limits = Limits(system=system)
    for quantity in ("voltage", "frequency"):
        normal, extreme = limits.normal(quantity), limits.extreme(quantity)
        assert normal != extreme
        assert extreme.low <= normal.low and extreme.high >= normal.high


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"nominal_v": 0.0}, "nominal"),
        ({"nominal_v": float("nan")}, "nominal"),
        ({"system": "raft"}, "raft"),
        ({"edition": "2031"}, "2031"),
        ({"signal_hz": 50.0}, "100 to 10000 Hz"),
        ({"flagged": "drop"}, "drop"),
        ({"every_s": 0.0}, "seconds between"),
        ({"least_samples": 0.0}, "samples"),
        ({"least_coverage": 1.1}, "coverage"),
        ({"time_zone": "Mars/Olympus"}, "Mars/Olympus"),
        ({"time_zone": "../etc"}, "time zone"),
    ],
)
def test_nonsense_is_refused_with_its_name(wrong: dict[str, object], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Limits(**wrong)  # type: ignore[arg-type]
