"""Histories by seed of regions behind gateways: nothing is lost or doubled, all comes in order, the kit notices."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

import pytest

from tests.kits.check_regions import Kind, check_regions, run_history
from tests.kits.interpreted import replaces_methods
from tieline.overlay.interests.sparing import Sparing
from tieline.overlay.interests.supplement import Supplement
from tieline.overlay.receivers.turns import Turns
from tieline.overlay.regions.bridge import Bridge
from tieline.overlay.regions.gateway import Gateway


@pytest.mark.parametrize("kind", Kind)
def test_everybody_gets_what_was_published_in_any_region(kind: Kind) -> None:
    total = check_regions(kind, range(5))
    assert total.judged > 400
    assert total.crossed > 150
    assert total.late > 0 or kind is not Kind.CALM
    assert total.stalled > 0 or kind is not Kind.FULL
    assert (total.spared > 0 and total.supplemented > 0) or kind is not Kind.DECLARED


@pytest.mark.slow
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("kind", Kind)
def test_a_thousand_histories(kind: Kind) -> None:
    check_regions(kind, range(1_000))


def _echoes_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A gateway echoes what it has heard before its other side knows."""
    monkeypatch.setattr(Bridge, "_holds_echo", lambda *_: False)


def _acknowledges_before_it_owes(monkeypatch: pytest.MonkeyPatch) -> None:
    """How far the one side has come is committed, and what the other owes by that in the next batch."""

    batches = count()

    def wrong(self: Gateway) -> None:
        self.inside.seal()
        if next(batches) % 4 == 0:
            self.outside.seal()

    monkeypatch.setattr(Gateway, "_seal", wrong)


def _all_take_their_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each gateway of a region carries everything."""
    monkeypatch.setattr(Turns, "choose", lambda _self, wanted, _publisher: wanted)


def _believes_whoever_goes_by_something_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody is taken to want more than it says."""
    monkeypatch.setattr(Supplement, "_is_unaware", lambda *_: False)


def _withdraws_before_others_know(monkeypatch: pytest.MonkeyPatch) -> None:
    """What meets no declaration is withdrawn while marks say that it would be told."""
    monkeypatch.setattr(Sparing, "_mark", lambda self, _marks, now: self._await(frozenset(), now))


@replaces_methods
@pytest.mark.parametrize(
    ("kind", "spoil"),
    [
        (Kind.CALM, _echoes_at_once),
        (Kind.CRASHES, _acknowledges_before_it_owes),
        (Kind.SEVERAL, _all_take_their_turns),
        (Kind.DECLARED, _believes_whoever_goes_by_something_else),
        (Kind.DECLARED, _withdraws_before_others_know),
    ],
)
def test_the_kit_notices(
    kind: Kind, spoil: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    spoil(monkeypatch)
    assert any(run_history(kind, seed).wrong for seed in range(20))
