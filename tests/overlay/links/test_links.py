"""The queue of one link: urgent first, and a floor for whoever waits below."""

from __future__ import annotations

from itertools import pairwise

from tieline.overlay.counts import Counts
from tieline.overlay.frames.frame import Data, Kind, lane_of, read_numbered
from tieline.overlay.frames.inbox import Inbox
from tieline.overlay.links.links import Link
from tieline.overlay.links.patience import Patience


def _data(level: int, size: int = 100) -> Data:
    return Data(lane_of(level, True, 0), 1, 7, {2: 1 << 16}, (bytes(size),), born=0.0, path=b"\x01")


def _sent(link: Link, frames: int) -> list[int]:
    """The levels of the next frames."""
    levels = []
    for _ in range(frames):
        parts: list[bytes] = []
        link.fill(parts, 1, 0.0)
        for kind, body in Inbox().take(b"".join(parts)):
            assert kind is Kind.DATA
            number, item = read_numbered(kind, body, 0.0)
            levels.append(item.level)
            link.acknowledged(number)
    return levels


def test_the_most_urgent_goes_first_and_whoever_waits_below_has_a_floor() -> None:
    link = Link(2, Patience(), Counts())
    for _ in range(400):
        link.offer(_data(3), 0.0)
    for level in (0, 1):
        for _ in range(40):
            link.offer(_data(level), 0.0)
    levels = _sent(link, 360)
    assert levels[:8] == [3] * 8
    # a tenth for both, by their weights of 1 and 2, and evenly
    for level, least, most in ((0, 10, 14), (1, 20, 28)):
        assert least <= levels.count(level) <= most
        places = [at for at, found in enumerate(levels) if found == level]
        assert all(360 // most // 2 <= later - sooner <= 2 * 360 // least for sooner, later in pairwise(places))
    assert levels.count(3) >= 320


def test_nothing_is_saved_up_by_a_level_that_does_not_wait() -> None:
    link = Link(2, Patience(), Counts())
    for _ in range(100):
        link.offer(_data(3), 0.0)
    assert _sent(link, 60) == [3] * 60
    link.offer(_data(0), 0.0)
    assert 8 <= _sent(link, 12).index(0) <= 10


def test_what_is_long_waits_longer_for_its_floor() -> None:
    link = Link(2, Patience(), Counts())
    for _ in range(200):
        link.offer(_data(3, 100), 0.0)
    link.offer(_data(1, 500), 0.0)
    levels = _sent(link, 120)
    assert 35 <= levels.index(1) <= 60
