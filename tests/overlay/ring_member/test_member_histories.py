"""Whole brokers on a ring, through histories by seed; and brokers that do something wrong, which are found."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.kits.check_member import Kind, check_member, run_history
from tieline.overlay.ring.promises import Batch, Taken
from tieline.overlay.ring_member.granting import Granting
from tieline.overlay.ring_member.notes import RingNotes


@pytest.mark.parametrize("kind", Kind)
def test_histories(kind: Kind) -> None:
    found = check_member(kind, range(4))
    assert found.judged > 300
    assert found.crossed > 150
    assert found.late


def test_histories_with_messages_for_everybody() -> None:
    assert check_member(Kind.CALM, range(2), "partitioned").crossed


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("kind", Kind)
def test_many_histories(kind: Kind) -> None:
    check_member(kind, range(4, 60))


def _acknowledges_at_once(patch: pytest.MonkeyPatch) -> None:
    def wait(self: Granting, then: Callable[[], None], now: float) -> bool:
        self.say(now)
        return False

    patch.setattr(Granting, "wait", wait)


def _forgets_what_it_owes(patch: pytest.MonkeyPatch) -> None:
    def owe(self: RingNotes, batch: Batch) -> None:
        """Nothing is noted."""

    patch.setattr(RingNotes, "owe", owe)
    patch.setattr(RingNotes, "settle", owe)


def _forgets_what_it_took(patch: pytest.MonkeyPatch) -> None:
    def take(self: RingNotes, taken: Taken) -> None:
        """Nothing is noted."""

    patch.setattr(RingNotes, "take", take)


@pytest.mark.parametrize(
    ("spoil", "kind"),
    [
        (_acknowledges_at_once, Kind.CALM),
        (_forgets_what_it_owes, Kind.CRASHES),
        (_forgets_what_it_took, Kind.CRASHES),
    ],
)
def test_what_is_wrong_is_found(
    spoil: Callable[[pytest.MonkeyPatch], None], kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    spoil(monkeypatch)
    assert any(run_history(kind, seed).wrong for seed in range(20))
