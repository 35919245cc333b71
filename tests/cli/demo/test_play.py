"""What the demonstration waits for before it says how it was, and that it does not wait for ever."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from tieline.cli.demo import play
from tieline.cli.demo.planner import Look
from tieline.cli.demo.play import Play, Wishes, steps
from tieline.cli.demo.show import Show

_LOOK = Look(1.0, "applied", "plan 1 is in force at 3 brokers: 5 flows moved", "proven: every limit is kept", 5)
_PASSING = {"carried": 1.0, "waiting": 0.0}


def _status(*epochs: int, after: dict[str, float] | None = _PASSING) -> dict[str, Any]:
    first, *others = ({"name": name, "epoch": epoch} for name, epoch in zip("abc", epochs, strict=True))
    planner = {"applied": {"before": _PASSING, "after": after}}
    return {**first, "others": {said["name"]: said for said in others}, "planner": planner}


class _Planner:
    """Says one thing after another, the last one for ever."""

    def __init__(self, *said: dict[str, Any]) -> None:
        self._said = [*said]

    def status(self) -> dict[str, Any]:
        return self._said.pop(0) if len(self._said) > 1 else self._said[0]


@pytest.fixture(name="made")
def _made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Play:
    monkeypatch.setattr(play, "_LOOK_S", 0.0)
    wishes = Wishes(
        seconds=20.0, seed=1, with_spark=False, with_planner=True, with_page=False, folder=tmp_path,
        report=tmp_path / "report.html",
    )  # fmt: skip
    children: Any = SimpleNamespace(check=lambda: None)
    return Play(wishes, Show(Console(), False, steps()), children)


def _planned(made: Play, *said: dict[str, Any], look: Look | None = _LOOK) -> tuple[bool, dict[str, Any]]:
    planner: Any = _Planner(*said)
    brokers: Any = SimpleNamespace(http="")
    check, status = made._planned(look, planner, brokers)
    return check.is_good, status


def test_a_plan_that_has_not_reached_every_broker_is_waited_for(made: Play) -> None:
    whole = _status(3, 3, 3)
    assert _planned(made, _status(3, 2, 2), _status(3, 3, 2), whole) == (True, whole)


def test_a_comparison_that_has_not_been_left_yet_is_waited_for(made: Play) -> None:
    whole = _status(3, 3, 3)
    assert _planned(made, _status(3, 3, 3, after=None), {**whole, "planner": None}, whole) == (True, whole)


def test_a_broker_that_never_follows_fails_the_claim(made: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(play, "_SETTLED_S", 0.0)
    assert not _planned(made, _status(3, 2, 3))[0]


def test_without_a_plan_there_is_nothing_to_wait_for(made: Play) -> None:
    assert not _planned(made, _status(0, 0, 0), look=None)[0]


def _waited(made: Play, waiting: list[int]) -> list[int]:
    """What is left of what the link would have said, once the planner may begin."""

    def join(look: Callable[[], object], *, until: Callable[[], bool]) -> None:
        look()
        while not until():
            look()

    live: Any = SimpleNamespace(begun=time.monotonic(), join=join)
    brokers: Any = SimpleNamespace(waiting=lambda: waiting.pop(0))
    made._wait_for_waiting(live, brokers)
    return waiting


def test_a_planner_begins_when_something_waits_for_the_thin_link(made: Play) -> None:
    assert _waited(made, [0, play._WAITING - 1, play._WAITING, 7]) == [7]


def test_a_planner_begins_in_the_end_where_nothing_ever_waits(made: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(play, "_FULL_S", 0.0)
    assert _waited(made, [0, 0]) == [0]
