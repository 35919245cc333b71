"""Errands are short: whoever says more in one than a broker does is not read on."""

from __future__ import annotations

import pytest

from tieline.overlay.frames.fields import BadFrame
from tieline.overlay.sessions.errands import (
    MOST_BYTES,
    MOST_ENTRIES,
    MOST_IDS,
    MOST_LANES,
    MOST_SUBSCRIPTIONS,
    Errand,
    Homes,
    Invite,
    Mark,
    Ready,
    State,
    Subscriptions,
    put_errand,
    read_errand,
)


def _homes(count: int) -> Homes:
    return Homes(True, [(bytes(16), 1, 1)] * count)


def _invitations(count: int) -> Invite:
    return Invite([("c", None, 1)] * count)


def _subscriptions(count: int) -> Subscriptions:
    return Subscriptions("c", 1, [("a/+", 1, 0, ())] * count)


def _state(count: int) -> State:
    return State("c", 1, None, 60, None, tuple(range(count)), 0)


def _mark(count: int) -> Mark:
    return Mark("c", 1, dict.fromkeys(range(count), 1))


@pytest.mark.parametrize(
    ("most", "enough", "too_much"),
    [
        (MOST_ENTRIES, _homes(MOST_ENTRIES), _homes(MOST_ENTRIES + 1)),
        (MOST_ENTRIES, _invitations(MOST_ENTRIES), _invitations(MOST_ENTRIES + 1)),
        (MOST_SUBSCRIPTIONS, _subscriptions(MOST_SUBSCRIPTIONS), _subscriptions(MOST_SUBSCRIPTIONS + 1)),
        (MOST_IDS, _state(MOST_IDS), _state(MOST_IDS + 1)),
        (MOST_LANES, _mark(MOST_LANES), _mark(MOST_LANES + 1)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_an_errand_speaks_of_so_many_things_at_most(most: int, enough: Errand, too_much: Errand) -> None:
    assert read_errand(put_errand(enough, b"rest")) == (enough, b"rest")
    with pytest.raises(BadFrame, match=f"{most + 1} entries"):
        read_errand(put_errand(too_much))


def test_one_that_is_too_long_is_not_even_decoded() -> None:
    with pytest.raises(BadFrame, match=r"Ready: \d+ bytes"):
        read_errand(put_errand(Ready("c" * MOST_BYTES, 1)))
