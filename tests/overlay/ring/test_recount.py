"""What a broker of a ring asks for is added up anew when some of it is no more, and then it is what is asked for."""

from __future__ import annotations

from random import Random

import pytest

from tests.kits.ring_world import SETTINGS, RingHistory
from tieline.overlay.ring import node as module
from tieline.overlay.ring.events import RingSubscription
from tieline.overlay.ring.summary import NOTHING


def _nothing(_now: float, _is_echoed: bool) -> None:
    """Nobody waits for it."""


@pytest.mark.parametrize("portion", [1, 500])
@pytest.mark.parametrize("seed", range(10))
def test_in_the_end_nothing_is_asked_for_that_is_not(seed: int, portion: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PORTION", portion)
    random = Random(seed)
    world = RingHistory(random)
    node = world.start("a", None).node
    assert node is not None
    asked: list[RingSubscription] = []
    for _ in range(60):
        if asked and random.random() < 0.5:
            node.unsubscribe(asked.pop(random.randrange(len(asked))), world.clock.now)
        else:
            asked.append(RingSubscription(f"t/{random.randrange(5)}"))
            node.subscribe(asked[-1], _nothing, world.clock.now)
        wanted = {each.filter for each in asked}
        assert wanted <= node.own.filters, "it is never too little"
        world.clock.run_for(random.choice((0.0, 0.001, 0.3, 1.0)))
    world.clock.run_for(3 * SETTINGS.shrink_s)
    assert node.own.filters == {each.filter for each in asked}
    for each in asked:
        node.unsubscribe(each, world.clock.now)
    world.clock.run_for(3 * SETTINGS.shrink_s)
    assert node.own == NOTHING
