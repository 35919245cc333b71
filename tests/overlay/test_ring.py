"""From finger to finger over links: everybody is reached once, and no view can make a frame go around for ever."""

from __future__ import annotations

from random import Random

from tests.overlay.test_tree import _random_links, _seen_by
from tieline.overlay.counts import Counts
from tieline.overlay.frames.frame import Data, lane_of
from tieline.overlay.membership import Membership
from tieline.overlay.ring.identifiers import identifier_of, way
from tieline.overlay.strategies.path import Path
from tieline.overlay.strategies.ring import Ring
from tieline.overlay.strategies.strategy import Strategy

_NAMES = {number: f"broker {number}" for number in range(1, 12)}


def _views(random: Random) -> dict[int, Membership]:
    brokers = random.randint(4, 11)
    links = _random_links(random, brokers)
    views = {}
    for number in range(1, brokers + 1):
        views[number] = _seen_by(number, links, brokers)
        views[number].names = _NAMES
    return views


def _carry(ways: dict[int, Strategy], origin: int, destinations: set[int]) -> tuple[list[int], list[tuple[int, int]]]:
    """Who got a message, as often as they did, and the stages that copies have begun, as a carrier would have it."""
    first = Data(lane_of(1, True, 0), origin, 0, dict.fromkeys(destinations, 1), (b"",), born=0.0)
    waiting, got, stages = [(origin, first)], [], []
    while waiting:
        at, data = waiting.pop()
        assert at not in data.path
        assert ways[at].admits(data)
        copies: dict[int, dict[int, int]] = {}
        for destination, place in data.destinations.items():
            if destination == at:
                got.append(at)
                continue
            [peer] = ways[at].next_brokers(destination, data.path, data)
            copies.setdefault(peer, {})[destination] = place
        for peer, those in copies.items():
            copy = data.to(those, data.path + bytes((at,)))
            copy.stage = ways[at].stage_of(data, those)
            if copy.stage and len(copy.path) == 1:
                stages.append((at, copy.stage))
            waiting.append((peer, copy))
    return got, stages


def _is_on_the_way(origin: int, stage: tuple[int, int]) -> bool:
    start, *hops = (identifier_of(_NAMES[each]) for each in (origin, *stage))
    return way(start, hops[0]) < way(start, hops[1])


def test_everybody_is_reached_once_and_each_stage_leads_on_along_the_ring() -> None:
    begun = 0
    for seed in range(40):
        random = Random(f"ring {seed}")
        views = _views(random)
        ways: dict[int, Strategy] = {number: Ring(view, Counts()) for number, view in views.items()}
        for origin in views:
            others = sorted(views.keys() - {origin})
            wanted = set(random.sample(others, random.randint(1, len(others))))
            got, stages = _carry(ways, origin, wanted)
            assert sorted(got) == sorted(wanted)
            assert all(_is_on_the_way(origin, stage) for stage in stages)
            begun += len(stages)
    assert begun > 300


def test_where_some_go_the_shortest_way_everybody_is_reached_all_the_same() -> None:
    # the way back over a broker of the path may end blind: that is the carrier's to try again
    reached = blind = 0
    for seed in range(40):
        random = Random(f"mixed {seed}")
        views = _views(random)
        ways: dict[int, Strategy] = {
            number: random.choice((Ring, Path))(view, Counts()) for number, view in views.items()
        }
        for origin in views:
            try:
                got, _stages = _carry(ways, origin, views.keys() - {origin})
            except ValueError:
                blind += 1
                continue
            assert sorted(got) == sorted(views.keys() - {origin})
            reached += 1
    assert reached > 20 * blind


def test_whoever_asks_for_no_frame_gets_the_shortest_way_and_one_beyond_the_ring_nobodys_finger() -> None:
    view = _views(Random(3))[1]
    ring, path = Ring(view, Counts()), Path(view, Counts())
    assert all(ring.next_brokers(other, b"") == path.next_brokers(other, b"") for other in view.reachable)
    assert ring.finger(99) == ring.finger(1) == 0


def test_a_finger_that_cannot_be_reached_is_passed_by_and_counted() -> None:
    view, counts = _views(Random(3))[1], Counts()
    ring = Ring(view, counts)
    others = sorted(view.reachable)
    destination = next(other for other in others if ring.finger(other) not in (0, other))
    data = Data(lane_of(1, True, 0), 1, 0, {destination: 1}, (b"",), born=0.0)
    data.stage = ring.finger(destination)
    on_the_way = bytes([peer for peer in view.neighbours if peer != destination])
    shortest = tuple(Path(view, Counts()).next_brokers(destination, on_the_way))
    assert tuple(ring.next_brokers(destination, on_the_way, data)) == shortest
    assert counts.detours <= 1
