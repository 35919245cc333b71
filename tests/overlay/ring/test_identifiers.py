"""Places on the ring against brute force: arcs hold everybody once, and fingers are those that the paper's ring has."""

from __future__ import annotations

from random import Random

import pytest

from tieline.overlay.ring.identifiers import (
    AROUND,
    BITS,
    finger_towards,
    first_from,
    identifier_at,
    identifier_of,
    starts,
    way,
)


def _rings() -> list[list[int]]:
    random = Random(7)
    rings = [sorted({random.randrange(AROUND) for _ in range(count)}) for count in (1, 2, 3, 5, 17, 60)]
    near = random.randrange(AROUND)
    return [*rings, sorted({(near + step) % AROUND for step in range(9)}), [0, 1, AROUND - 1], [0, AROUND // 2]]


def _walk(ring: list[int], start: int) -> int:
    """The first broker from a place on, step by step."""
    return min(ring, key=lambda identifier: way(start, identifier))


def _fingers_of(ring: list[int], identifier: int) -> list[int]:
    """The fingers of a broker, the nearest first, each once."""
    found = dict.fromkeys(ring[first_from(ring, start)] for start in starts(identifier))
    found.pop(identifier, None)
    return list(found)


def test_the_way_goes_around() -> None:
    assert way(5, 9) == 4
    assert way(9, 5) == AROUND - 4


def test_a_finger_is_the_first_broker_at_a_distance_that_doubles() -> None:
    for ring in _rings():
        for identifier in ring:
            wanted = dict.fromkeys(_walk(ring, (identifier + (1 << power)) % AROUND) for power in range(BITS))
            wanted.pop(identifier, None)
            assert _fingers_of(ring, identifier) == list(wanted)


def test_the_arcs_of_a_brokers_fingers_hold_everybody_else_once() -> None:
    for ring in _rings():
        for identifier in ring:
            fingers = _fingers_of(ring, identifier)
            for other in set(ring) - {identifier}:
                before = [finger for finger in fingers if way(identifier, finger) <= way(identifier, other)]
                assert ring[finger_towards(ring, identifier, other)] == before[-1]


def test_hand_overs_come_to_everybody_and_each_leaves_less_than_half_of_the_way() -> None:
    for ring in _rings():
        for start in ring:
            for target in set(ring) - {start}:
                at, hops = start, 0
                while at != target:
                    on = ring[finger_towards(ring, at, target)]
                    assert on == target or way(on, target) < way(at, target) / 2 + 1
                    at, hops = on, hops + 1
                assert hops <= BITS


def test_nobody_is_in_an_arc_of_its_own() -> None:
    with pytest.raises(ValueError, match="own fingers"):
        finger_towards([3, 9], 3, 3)


def test_the_successor_is_one_finger_and_the_others_are_looked_for_behind_it() -> None:
    ring = _rings()[5]
    for identifier in ring:
        successor = ring[first_from(ring, (identifier + 1) % AROUND)]
        behind = [_walk(ring, start) for start in starts(identifier, way(identifier, successor))]
        found = dict.fromkeys((successor, *behind))
        found.pop(identifier, None)
        assert list(found) == _fingers_of(ring, identifier)


def test_names_are_spread_and_stay_where_they_are() -> None:
    assert identifier_of("a") == identifier_of("a")
    places = [identifier_of(f"broker-{number}") for number in range(4_000)]
    assert len(set(places)) == 4_000
    quarters = [sum(place >> BITS - 2 == quarter for place in places) for quarter in range(4)]
    assert all(900 < count < 1_100 for count in quarters)


def test_along_the_curve_keys_decide_and_names_tell_equal_ones_apart() -> None:
    places = [identifier_at(key, 6, name) for key in range(64) for name in ("a", "b")]
    assert [place >> BITS - 6 for place in places] == [key for key in range(64) for _ in range(2)]
    assert len(set(places)) == 128
    assert all(0 <= place < AROUND for place in places)
    fine = identifier_at((1 << 48) - 1, 48, "a")
    assert fine >> BITS - 40 == (1 << 40) - 1
