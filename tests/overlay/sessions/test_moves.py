"""Histories of whole brokers between which clients move: nothing lost, nothing doubled, nothing out of order."""

from __future__ import annotations

import pytest

from tests.kits.check_moves import Kind, check_moves, run_history
from tests.kits.interpreted import replaces_methods
from tieline.overlay.sessions.arrivals import Arrivals
from tieline.overlay.sessions.errands import Mark
from tieline.overlay.sessions.passage import Passage


@pytest.mark.parametrize("kind", list(Kind))
def test_clients_find_their_sessions_at_any_broker(kind: Kind) -> None:
    moves, deliveries = check_moves(kind, range(3))
    assert moves > 15
    assert deliveries > 150


@pytest.mark.slow
@pytest.mark.parametrize("kind", list(Kind))
def test_clients_find_their_sessions_in_hundreds_of_histories(kind: Kind) -> None:
    check_moves(kind, range(3, 150))


@replaces_methods
def test_the_kit_notices_when_the_new_home_takes_what_precedes_its_mark(monkeypatch: pytest.MonkeyPatch) -> None:
    real = Arrivals.mark

    def forget(self: Arrivals, errand: Mark, source: int, now: float) -> None:
        real(self, errand._replace(lanes={}), source, now)

    monkeypatch.setattr(Arrivals, "mark", forget)
    assert _some_are_wrong()


@replaces_methods
def test_the_kit_notices_when_nothing_is_held_for_the_tail(monkeypatch: pytest.MonkeyPatch) -> None:
    real = Passage.judge

    def hurry(self: Passage, origin: int, lane: int, number: int) -> int:
        self.is_open = True
        return real(self, origin, lane, number)

    monkeypatch.setattr(Passage, "judge", hurry)
    assert _some_are_wrong()


def _some_are_wrong() -> bool:
    return any(run_history(Kind.CALM, seed).is_wrong for seed in range(20))
