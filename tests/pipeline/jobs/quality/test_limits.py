"""Limits are round numbers, those of the microgrid example for an island, and refuse nonsense."""

from __future__ import annotations

import pytest

from tieline.pipeline.jobs.quality.limits import CLAUSES, SYSTEMS, Limits, Range


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
def test_each_system_has_two_clauses_for_each_quantity_the_absolute_one_wider(system: str) -> None:
    for quantity in ("voltage", "frequency"):
        normal, extreme = (each for each in CLAUSES if system in each.systems and each.quantity == quantity)
        assert (normal.is_absolute, extreme.is_absolute) == (False, True)
        assert extreme.low_percent <= normal.low_percent
        assert extreme.high_percent >= normal.high_percent


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"nominal_v": 0.0}, "nominal"),
        ({"nominal_v": float("nan")}, "nominal"),
        ({"system": "raft"}, "raft"),
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
