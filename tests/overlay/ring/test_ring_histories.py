"""Histories by seed: the ring keeps its promises, and the kit notices one that does not."""

from __future__ import annotations

from typing import Any  # Any: what the kit makes a broker of

import pytest

from tests.kits.check_ring import Kind, check_ring, run_history
from tieline.overlay.ring.dispatch.protocol import Onward
from tieline.overlay.ring.node import RingNode


@pytest.mark.parametrize("kind", Kind)
def test_nothing_is_lost_doubled_or_out_of_order(kind: Kind) -> None:
    assert check_ring(RingNode, kind, range(2)) > 100


def test_nor_where_everybody_is_sent_everything() -> None:
    assert check_ring(RingNode, Kind.CRASHES, range(2), "partitioned") > 100


@pytest.mark.slow
@pytest.mark.parametrize("kind", Kind)
def test_a_thousand_histories(kind: Kind) -> None:
    check_ring(RingNode, kind, range(1_000))


def test_a_history_is_its_seed() -> None:
    one, other = (run_history(RingNode, Kind.CRASHES, 3) for _ in range(2))
    assert one == other


# -- brokers that are broken on purpose


def _hasty(*args: Any, **kwargs: Any) -> RingNode:
    """Acknowledges a subscription without waiting for anybody."""
    node = RingNode(*args, **kwargs)
    spread = node.growth.spread

    def at_once(place: int, more: Any, then: Any, now: float) -> None:
        then(now)
        spread(place, more, lambda _now: None, now)

    node.growth.spread = at_once  # type: ignore[method-assign]  # a mutant
    return node


def _forgetful(*args: Any, **kwargs: Any) -> RingNode:
    """Does not remember what it has taken."""
    node = RingNode(*args, **kwargs)
    arrived = node.promises.arrived

    def anew(*given: Any) -> None:
        node.promises.positions.clear()
        arrived(*given)

    node.promises.arrived = anew  # type: ignore[method-assign, assignment]  # a mutant
    return node


def _careless(*args: Any, **kwargs: Any) -> RingNode:
    """Takes a hand-over for settled when it has left."""
    node = RingNode(*args, **kwargs)
    dispatch = node.promises._dispatch

    class Once:
        """Sends everything, and says that there was nothing to wait for."""

        def onward(self, *given: Any) -> Onward:
            for peer, copy in dispatch.onward(*given).copies:
                node._send(peer, copy)
            return Onward([], [])

    node.promises._dispatch = Once()  # type: ignore[assignment]  # a mutant
    return node


@pytest.mark.parametrize(("make", "kind"), [(_hasty, Kind.GUESTS), (_careless, Kind.CRASHES)])
def test_the_kit_notices_what_is_lost(make: Any, kind: Kind) -> None:
    assert any(any("lost" in text for text in run_history(make, kind, seed).wrong) for seed in range(10))


def test_the_kit_notices_what_comes_twice() -> None:
    found = (run_history(_forgetful, Kind.CRASHES, seed).wrong for seed in range(12))
    assert any(any("doubled" in text for text in wrong) for wrong in found)
