"""Requests take turns: at once as long as there are few, and no faster than the pace beyond that."""

from __future__ import annotations

import asyncio

import pytest

from tieline.net.http import pace
from tieline.net.http.pace import Pace


@pytest.fixture(name="slept")
def _slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long each turn waited, while no time passes."""
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    monkeypatch.setattr(pace, "monotonic", lambda: 1_000.0)
    return waits


def test_a_few_go_at_once_and_the_others_one_by_one(slept: list[float]) -> None:
    async def all_of_them() -> None:
        kept = Pace(100.0, burst=5)
        for _ in range(8):
            await kept.turn()

    asyncio.run(all_of_them())
    assert slept == pytest.approx([0.01, 0.02, 0.03])


def test_a_pause_gives_back_what_it_may_and_no_more(slept: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    async def all_of_them() -> None:
        kept = Pace(100.0, burst=2)
        for _ in range(4):
            await kept.turn()
        monkeypatch.setattr(pace, "monotonic", lambda: 2_000.0)
        for _ in range(3):
            await kept.turn()

    asyncio.run(all_of_them())
    assert slept == pytest.approx([0.01, 0.02, 0.01])
