"""Histories by seed of whole brokers: one member over all brokers gets each message, and the kit notices where not."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.kits.check_groups import Kind, check_groups, run_history
from tests.kits.interpreted import replaces_methods
from tieline.core.message import Item
from tieline.core.outbound.named import NamedDelivery, Naming
from tieline.core.receiver import Grant
from tieline.core.routing.groups import Group
from tieline.core.routing.route import Route
from tieline.overlay.carrier.sender import Sender


@pytest.mark.parametrize("kind", Kind)
def test_each_message_comes_to_one_member_of_all_brokers(kind: Kind) -> None:
    total = check_groups(kind, range(4))
    assert total.judged > 150
    assert total.handed_on > 0 or kind is Kind.CALM
    assert total.reassigned > 0 or kind is not Kind.DEAD


@pytest.mark.slow
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("kind", Kind)
def test_a_thousand_histories(kind: Kind) -> None:
    check_groups(kind, range(1_000))


def _gives_unnamed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker gives messages to all its groups, whoever was picked."""
    deliver = NamedDelivery.deliver

    def wrong(self: NamedDelivery, item: Item, route: Route, naming: Naming, now: float) -> int:
        shares = tuple(group.share for group in route.groups if group.members)
        return deliver(self, item, route, naming._replace(shares=shares), now)

    monkeypatch.setattr(NamedDelivery, "deliver", wrong)


def _picks_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every broker with members is picked."""
    pick = Group.pick

    def wrong(self: Group, item: Item) -> Grant | None:
        picked = pick(self, item)
        for other in (self.brokers or {}).values():
            if picked is not None and other is not picked:
                other.receiver.offer(item, other, 0.0)
        return picked

    monkeypatch.setattr(Group, "pick", wrong)


def _hands_nothing_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever was picked and has no member keeps quiet."""
    monkeypatch.setattr(Group, "pick_elsewhere", lambda *_: None)


def _gives_to_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """What came for groups alone is given to others too."""
    deliver = NamedDelivery.deliver

    def wrong(self: NamedDelivery, item: Item, route: Route, naming: Naming, now: float) -> int:
        return deliver(self, item, route, naming._replace(is_plain=True), now)

    monkeypatch.setattr(NamedDelivery, "deliver", wrong)


def _owes_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was given to others is owed to the dead broker as before."""
    monkeypatch.setattr(Sender, "replace", lambda *_: None)


@replaces_methods
@pytest.mark.parametrize(
    ("mutate", "kind", "begin"),
    [
        (_gives_unnamed, Kind.CALM, 0),
        (_picks_all, Kind.CALM, 0),
        (_hands_nothing_on, Kind.CHURN, 0),
        (_hands_nothing_on, Kind.TYPES, 0),
        (_gives_to_all, Kind.CHURN, 0),
        (_owes_twice, Kind.DEAD, 12),
    ],
)
def test_the_kit_notices(
    mutate: Callable[[pytest.MonkeyPatch], None], kind: Kind, begin: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    mutate(monkeypatch)
    assert any(run_history(kind, seed).wrong for seed in range(begin, begin + 12))
