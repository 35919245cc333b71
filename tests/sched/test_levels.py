from __future__ import annotations

import pytest

from tieline.sched.levels import DEFAULTS, LEVELS, URGENT, Rules


def test_there_is_a_class_for_every_level() -> None:
    assert [traffic.level for traffic in DEFAULTS] == list(range(LEVELS))
    assert DEFAULTS[URGENT].name == "urgent"


@pytest.mark.parametrize("floor", [-0.1, 0.51, 1.0])
def test_a_floor_is_at_most_a_half(floor: float) -> None:
    with pytest.raises(ValueError, match=r"between 0 and 0\.5"):
        Rules(floor=floor)


def test_rules_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ValueError, match="cannot be taken along"):
        Rules(inheritance=-1)
    low, normal, important, urgent = DEFAULTS
    with pytest.raises(ValueError, match="in this order"):
        Rules(classes=(urgent, important, normal, low))
