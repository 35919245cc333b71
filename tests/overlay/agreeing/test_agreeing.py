"""Rounds: brokers that know their own links and clients find ways that fit, all by the same word, or none."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise

import pytest

from tests.overlay.agreeing.world import World
from tieline.overlay.agreeing.protocol import Offer, Offers, TopicFacts
from tieline.overlay.agreeing.words import Begin, put_word, read_word
from tieline.overlay.frames.fields import BadFrame
from tieline.overlay.frames.frame import Notice, Topic
from tieline.overlay.plans import PlanError

_SQUARE = {("a", "b"): 1_000.0, ("b", "c"): 1_000.0, ("a", "d"): 1_000.0, ("c", "d"): 1_000.0}


def _agreed(world: World, by: str = "a", epoch: int = 7) -> None:
    world.brokers[by].begin(epoch, 1.0, 30.0, 0.1, world.now)
    world.run(45.0)


def test_topics_that_do_not_fit_together_take_different_ways() -> None:
    """Either way around the square has room for one of the topics; shortest ways would put both on the same links."""
    for seed in range(10):
        world = World(_SQUARE, seed=seed)
        world.publishes("a", "x", 600)
        world.publishes("a", "y", 600)
        world.wants("c", "x", "+")
        _agreed(world)
        assert world.in_force == dict.fromkeys("abcd", 7)
        ways = [world.way("a", topic, "c") for topic in ("x", "y")]
        assert sorted(ways) == [["a", "b", "c"], ["a", "d", "c"]], f"seed {seed}"


def test_no_link_is_promised_more_than_it_carries() -> None:
    """Also where not everything fits: what is left out has no way, and its broker says so."""
    world = World({**_SQUARE, ("b", "d"): None}, seed=3)
    rates = {}
    for number, origin in enumerate("abcdabcd"):
        rates[origin, f"t{number}"] = 300.0 + 40 * number
        world.publishes(origin, f"t{number}", 300 + 40 * number)
    for name in "abcd":
        world.wants(name, "#")
    _agreed(world)
    loads: defaultdict[frozenset[str], float] = defaultdict(float)
    served = 0
    for (origin, topic), rate in rates.items():
        ways = [world.way(origin, topic, name) for name in "abcd" if name != origin]
        served += sum(way[-1] != origin for way in ways)
        for hop in {hop for way in ways for hop in pairwise(way)}:
            loads[frozenset(hop)] += rate
    assert all(load <= 900 for ends, load in loads.items() if ends != {"b", "d"})
    progress = [broker.progress for broker in world.brokers.values()]
    assert sum(each.requests for each in progress) == 24
    assert sum(each.requests - each.unserved for each in progress) == served
    assert 0 < served < 24


def test_each_end_may_say_what_the_link_carries() -> None:
    world = World({("a", "b"): 1_000.0}, seed=1)
    world.brokers["b"].capacity = lambda _peer: 500.0
    world.publishes("a", "x", 600)
    world.wants("b", "x")
    _agreed(world)
    assert world.brokers["b"].progress.unserved == 1
    # both ends have counted it: what is given to the link is no more than the lesser one says
    assert max(world.pieces[name].paces[other] for name, other in (("a", "b"), ("b", "a"))) <= 500.0


def test_a_link_that_is_lost_ends_the_round_everywhere() -> None:
    world = World(_SQUARE)
    world.publishes("a", "x", 600)
    world.wants("c", "x")
    world.brokers["a"].begin(7, 1.0, 30.0, 0.1, world.now)
    world.run(10.0)
    assert {broker.progress.state for broker in world.brokers.values()} == {"agreeing"}
    world.cut("c", "d")
    world.run(60.0)
    assert not world.pieces and not world.in_force
    assert {broker.progress.state for broker in world.brokers.values()} == {"abandoned"}
    _agreed(world, epoch=8)
    assert world.way("a", "x", "c") == ["a", "b", "c"]


def test_of_two_rounds_the_later_one_goes_on() -> None:
    world = World(_SQUARE)
    world.brokers["a"].begin(7, 1.0, 30.0, 0.1, world.now)
    world.brokers["c"].begin(9, 1.0, 30.0, 0.1, world.now)
    world.run(60.0)
    assert world.in_force == dict.fromkeys("abcd", 9)


def test_who_cannot_take_part_says_so_to_all() -> None:
    world = World(_SQUARE)
    world.counted["c"].trouble = "it goes by flood"
    _agreed(world)
    assert not world.in_force
    assert world.brokers["a"].progress.why == "c: it goes by flood"
    with pytest.raises(PlanError, match="is under way"):
        world.brokers["a"].begin(8, 1.0, 30.0, 0.1, world.now)
        world.brokers["a"].begin(9, 1.0, 30.0, 0.1, world.now)


def test_a_peer_with_rights_is_neither_asked_nor_heard() -> None:
    world = World({("a", "b"): 1_000.0, ("b", "z"): 1_000.0}, ends=("z",))
    world.publishes("a", "x", 600)
    world.wants("b", "x")
    world.wants("z", "x")
    _agreed(world)
    assert world.in_force == {"a": 7, "b": 7}
    word = put_word(99, Begin(("a", "b", "z"), 1.0, 1.0, 0.1, None))
    world.brokers["b"].heard(Notice(Topic.AGREEING, world.number["z"], world.number["b"], word), world.now)
    assert world.brokers["b"].progress.epoch == 7
    assert world.brokers["b"].progress.ignored == 1


def test_what_nobody_has_named_is_not_offered() -> None:
    world = World({("a", "b"): 1_000.0})
    world.brokers["a"].begin(7, 1.0, 30.0, 0.1, world.now)
    world.run(10.0)
    offer = Offer(5, 0.0, 0.0, TopicFacts(1.0, 1.0, None), (0,))
    notice = Notice(Topic.AGREEING, world.number["a"], world.number["b"], put_word(7, Offers((offer,))))
    world.brokers["b"].heard(notice, world.now)
    assert world.brokers["b"].progress.ignored == 1


@pytest.mark.parametrize("body", [b"", b"\xc1", put_word(7, Begin(("a", "b"), 1.0, 1.0, 0.1, None))[:-1]])
def test_what_cannot_be_read_is_a_bad_frame(body: bytes) -> None:
    with pytest.raises(BadFrame):
        read_word(body)
