"""Requests take turns: at once as long as there are few, no faster than the pace beyond that, and only who is there."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from tieline.net.http import pace
from tieline.net.http.pace import Pace, Scope, hang_up


class Clock(asyncio.SelectorEventLoop):
    """A loop whose time passes only while it waits for timers, and then at once."""

    now = 1_000.0

    def time(self) -> float:
        return self.now

    def _run_once(self) -> None:
        if not self._ready and self._scheduled:  # type: ignore[attr-defined]
            self.now = max(self.now, self._scheduled[0].when())  # type: ignore[attr-defined]
        super()._run_once()  # type: ignore[misc]


Run = Callable[[Callable[[Clock], Coroutine[Any, Any, None]]], None]


@pytest.fixture(name="run")
def _run(monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a story in a time of its own."""

    def run(story: Callable[[Clock], Coroutine[Any, Any, None]]) -> None:
        clock = Clock()
        monkeypatch.setattr(pace, "monotonic", clock.time)
        with asyncio.Runner(loop_factory=lambda: clock) as runner:
            runner.run(story(clock))

    return run


async def served(kept: Pace, clock: Clock, times: list[float], scope: Scope | None = None) -> None:
    if await kept.turn({} if scope is None else scope):
        times.append(clock.now - 1_000.0)


def test_a_few_go_at_once_and_the_others_one_by_one(run: Run) -> None:
    times: list[float] = []

    async def story(clock: Clock) -> None:
        kept = Pace(100.0, burst=5)
        await asyncio.gather(*(served(kept, clock, times) for _ in range(8)))

    run(story)
    assert times == pytest.approx([0, 0, 0, 0, 0, 0.01, 0.02, 0.03])


def test_a_pause_gives_back_what_it_may_and_no_more(run: Run) -> None:
    times: list[float] = []

    async def story(clock: Clock) -> None:
        kept = Pace(100.0, burst=2)
        await asyncio.gather(*(served(kept, clock, times) for _ in range(4)))
        clock.now = 1_100.0
        await asyncio.gather(*(served(kept, clock, times) for _ in range(3)))

    run(story)
    assert times == pytest.approx([0, 0, 0.01, 0.02, 100, 100, 100.01])


def test_whoever_hangs_up_takes_nobodys_turn(run: Run) -> None:
    times: list[float] = []

    async def story(clock: Clock) -> None:
        kept = Pace(100.0, burst=1)
        asked: list[Scope] = [{} for _ in range(1_000)]
        waiting = [asyncio.ensure_future(served(kept, clock, times, scope)) for scope in asked]
        await asyncio.sleep(0.015)
        assert len(kept) == 998
        for scope in asked[:-1]:
            hang_up(scope)
        await asyncio.gather(*waiting)
        assert not len(kept), "nothing is left of them"
        await served(kept, clock, times)

    run(story)
    assert times == pytest.approx([0, 0.01, 0.02, 0.03]), "two before they left, who stayed, and who came after"


def test_hanging_up_without_a_place_is_nothing(run: Run) -> None:
    async def story(_clock: Clock) -> None:
        kept, scope = Pace(100.0, burst=1), dict[str, Any]()
        hang_up(None)
        assert await kept.turn(scope)
        hang_up(scope)
        assert await kept.turn(scope)
        hang_up(scope)

    run(story)
