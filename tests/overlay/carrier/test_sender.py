"""What is sent again goes under its own number, and what is on its way by another link is not sent twice."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import cast

import pytest

from tests.kits.interpreted import replaces_methods
from tieline.core.timers import Timers
from tieline.overlay.carrier.credit import WAIT
from tieline.overlay.carrier.durable import Ends, Journal, Renewed
from tieline.overlay.carrier.ends import Limits, Surroundings
from tieline.overlay.carrier.incarnations import Incarnations
from tieline.overlay.carrier.sender import Sender
from tieline.overlay.counts import Counts
from tieline.overlay.frames.frame import Data, Planned, lane_of, place
from tieline.overlay.membership import Membership

_HERE, _THERE = 1, 2
_LANE = lane_of(0, True, 0)
_COUNT = 300


class _Safe:
    """A journal on which everything is safe at once."""

    def note(self, _fact: object, then: Callable[[float], None] | None = None) -> None:
        if then is not None:
            then(0.0)


class _Hop:
    """Two links, one for the topics of each plan number; the first has no room where it is told so."""

    def __init__(self, refused: set[int], *, is_granted: bool = False) -> None:
        self.is_granted = is_granted
        ends = Ends()
        ends.apply([Renewed(_THERE, 22, 5)])
        self.incarnations = Incarnations(_HERE, 1, ends)
        self.came: dict[int, list[bytes]] = {}
        self.refused = refused
        membership = cast("Membership", SimpleNamespace(reachable={_THERE}))
        around = Surroundings(
            broker=_HERE, ends=ends, membership=membership, incarnations=self.incarnations, timers=Timers(),
            journal=cast("Journal", _Safe()), counts=Counts(), limits=Limits(),
        )  # fmt: skip
        self.sender = Sender(around, self._forward, lambda _destination, data: _link(data), _nothing)
        self.sender.go_by(lambda payload: Planned(1, payload[0]))

    def where(self, number: int) -> int:
        return place(number, self.incarnations.tags[_THERE])

    def number(self, where: int) -> int:
        return next(number for number in range(1, _COUNT + 1) if self.where(number) == where)

    def _forward(self, data: Data, now: float) -> None:
        first = self.number(data.destinations[_THERE])
        if _link(data) == 1 and first in self.refused:
            self.refused = {each for each in self.refused if each != first}
            self.sender.limit(_THERE, _LANE, self.where(first), WAIT, now)
            if self.is_granted:  # the link has room again before its word has come back
                self.sender.limit(_THERE, _LANE, self.where(first), 1 << 20, now)
            return
        for number, payload in enumerate(data.payloads, first):
            self.came.setdefault(number, []).append(payload)


def _nothing(_destination: int, _lane: int) -> tuple[Data, ...]:
    """Every link has sent what it was given, and the neighbour has it."""
    return ()


def _link(data: Data) -> int:
    assert data.planned is not None
    return data.planned.topic


@replaces_methods
@pytest.mark.parametrize("is_granted", [False, True])
@pytest.mark.parametrize("refused", [{5}, {101}, {5, 101}, {5, 41, 121}, {9, 21, 45}])
def test_behind_a_full_link_everything_keeps_its_number(refused: set[int], *, is_granted: bool) -> None:
    """A batch of which a part was taken back, and then the next one went under the numbers of the first: some
    messages came twice and others never."""
    hop = _Hop({min(refused)})
    payloads = [bytes((1 + number // 2 % 2,)) + b"%d" % number + bytes(400) for number in range(_COUNT)]
    for payload in payloads:
        assert hop.sender.publish(_LANE, (payload,), frozenset({_THERE}), 0.0)
    hop.refused, hop.is_granted = refused - {min(refused)}, is_granted
    for number in sorted(refused):
        hop.sender.limit(_THERE, _LANE, hop.where(number), 1 << 20, 1.0)
    assert not hop.refused
    assert sorted(hop.came) == [*range(1, _COUNT + 1)]
    for number, came in hop.came.items():
        assert set(came) == {payloads[number - 1]}, number


@replaces_methods
def test_what_went_another_way_than_over_the_full_link_is_not_sent_again() -> None:
    hop = _Hop(set())
    payloads = [bytes((1 + number % 2,)) + b"%d" % number for number in range(40)]
    for payload in payloads:
        assert hop.sender.publish(_LANE, (payload,), frozenset({_THERE}), 0.0)
    assert all(len(came) == 1 for came in hop.came.values()) and len(hop.came) == 40
    # by word of a broker on the way: link 1 had no room from number 11 on
    hop.sender.limit(_THERE, _LANE, hop.where(11), WAIT, 1.0)
    hop.sender.limit(_THERE, _LANE, hop.where(11), 1 << 20, 2.0)
    twice = {number for number, came in hop.came.items() if len(came) == 2}
    assert twice == {number for number in range(11, 41) if payloads[number - 1][0] == 1}
    # and after all the other link had no room either: then everything from there on goes again
    hop.sender.limit(_THERE, _LANE, hop.where(12), WAIT, 3.0)
    hop.sender.limit(_THERE, _LANE, hop.where(12), 1 << 20, 4.0)
    assert len(hop.came[12]) == 2 and len(hop.came[11]) == 2
