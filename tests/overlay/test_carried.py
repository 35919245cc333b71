"""What came from other brokers: how long it was under way, over how many links, and how much of it there was."""

from __future__ import annotations

from tests.overlay.test_node import _joined
from tieline.core.account import WAIT_BUCKETS
from tieline.overlay.carried import Carried
from tieline.overlay.frames.frame import Data, lane_of, place


def _data(age_s: float, path: bytes, *, level: int = 1, messages: int = 1) -> Data:
    payloads = tuple(b"x" for _ in range(messages))
    return Data(lane_of(level, True, 0), 1, 7, {2: place(1, 7)}, payloads, born=100.0 - age_s, path=path)


def test_ages_and_hops_are_summed_by_broker_and_level_until_they_are_taken() -> None:
    carried = Carried()
    carried.add(_data(0.0, b"\x01"), 100.0)
    carried.add(_data(0.003, b"\x01\x03", messages=5), 100.0)
    carried.add(_data(-1.0, b"\x01"), 100.0)
    carried.add(_data(1e9, bytes([1]) * 200, level=3), 100.0)
    low, high = carried.take({1: "east"})
    assert (low["broker"], low["level"], low["count"], low["ages_ms"], low["hops"]) == (
        "east", 1, 7, {1: 2, 4: 5}, {1: 2, 2: 5},
    )  # fmt: skip
    assert (high["ages_ms"], high["hops"]) == ({1 << WAIT_BUCKETS - 1: 1}, {15: 1})
    assert carried.take({1: "east"}) == []


def test_what_is_published_at_one_broker_is_told_at_the_other() -> None:
    pair = _joined()
    pair.publish(b"one", b"two")
    pair.run(0.2)
    (told,) = pair.nodes[2].carrier.taker.carried.take(pair.nodes[2].directory.names)
    assert (told["broker"], told["count"], told["hops"]) == ("b1", 2, {1: 2})
    assert pair.nodes[1].carrier.taker.carried.take(pair.nodes[1].directory.names) == []
