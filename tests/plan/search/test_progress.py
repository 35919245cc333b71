from __future__ import annotations

import math

from tieline.plan.search.progress import Improving, Progress


def word(objective: float, unmet: int, bound: float) -> Progress:
    return Progress(doing="search", seconds=1.0, objective=objective, unmet=unmet, bound=bound)


def test_what_is_passed_on_never_gets_worse() -> None:
    told: list[Progress] = []
    improving = Improving(told.append)
    for each in (word(math.inf, 9, -math.inf), word(50, 1, 10), word(60, 0, 20), word(40, 0, 15)):
        improving(each)
    assert [(each.objective, each.unmet, each.bound) for each in told] == [
        (math.inf, 9, -math.inf),
        (50, 1, 10),
        (50, 1, 20),
        (40, 0, 20),
    ]
