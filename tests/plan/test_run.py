from __future__ import annotations

import math
import time

import pytest

from tieline.plan.run import Improving, Progress, Run


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


def test_a_part_has_what_is_left_and_tells_in_the_seconds_of_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.perf_counter()
    monkeypatch.setattr(time, "perf_counter", lambda: now)
    told: list[Progress] = []
    whole = Run(seconds=100.0, iterations=7, seed=3, listener=told.append, began=now - 40.0)
    part = whole.part(iterations=5, seed=4)
    assert part.seconds == pytest.approx(60.0)
    assert (part.iterations, part.seed, part.done) == (5, 4, 0)
    assert part.elapsed <= 0.0, "it begins now, while the clock stands still"
    part.tell("search", objective=2.0, unmet=1, bound=1.0)
    assert told[0].seconds == pytest.approx(40.0)
    assert (told[0].doing, told[0].objective, told[0].unmet, told[0].bound) == ("search", 2.0, 1, 1.0)
    assert whole.part().iterations is None, "iterations are those of one part"


def test_whichever_is_spent_first_ends_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "perf_counter", lambda: 2_000.0)
    endless = Run()
    assert (endless.left, endless.spent, endless.must_end, endless.is_spent) == (None, 0.0, False, False)
    counted = Run(seconds=1000.0, iterations=4, done=3, began=2_000.0)
    assert counted.spent == pytest.approx(0.75)
    counted.done = 4
    assert counted.is_spent
    assert not counted.must_end, "whoever does not count iterations may go on"
    assert Run(iterations=0).is_spent
    late = Run(seconds=0.0, began=1_999.0)
    assert late.must_end
    assert late.is_spent
    # what was spent on compiling does not count
    assert Run(seconds=1000.0, began=500.0, uncounted=1000.0).left == 500.0


def test_somebody_may_end_a_run_and_all_its_parts() -> None:
    asked: list[bool] = []
    run = Run(seconds=1000.0, stop=lambda: bool(asked))
    part = run.part(seconds=500.0)
    before = (part.must_end, part.is_spent)
    asked.append(True)
    assert before == (False, False)
    assert (part.must_end, part.is_spent) == (True, True)
    assert not run.stopped_by(lambda: False).must_end
    assert run.heard_by(None).stop is run.stop
