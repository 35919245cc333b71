"""What a publication takes among brokers that know each other, and with topics, beside counting by hand."""

from __future__ import annotations

from random import Random

from tieline.match.box import Box
from tieline.overlay.ring.events import Event, RingSubscription
from tieline.sim.ring import known
from tieline.sim.ring.network import Links, random_links

#: A square with a tail: 0 - 1 - 2 - 3 - 0, and 4 behind 2.
_SQUARE = Links(
    {0: {1: 0.1, 3: 0.4}, 1: {0: 0.1, 2: 0.1}, 2: {1: 0.1, 3: 0.1, 4: 0.1}, 3: {0: 0.4, 2: 0.1}, 4: {2: 0.1}}
)


def test_a_square_with_a_tail_by_hand() -> None:
    by_path = known.path(_SQUARE, 0, [2, 3, 4], 100)
    # over 1 to 2, and from there to both: four links, of which the first two have three destinations
    assert by_path == known.Crossing(messages=4, bytes=4 * 154 + 2 * 2 * 3, links=3, last_s=by_path.last_s)
    assert abs(by_path.last_s - 0.3) < 1e-9
    # the tree of 0 is the same, and leads from 3 to 0 over 2 and 1
    assert known.tree(_SQUARE, 3, [0], 100).messages == 3
    # five links both ways, but not back to where it came from
    assert known.flood(_SQUARE, 0, [4], 100).messages == 10 - 4


def test_a_copy_for_each_link_and_no_more_links_than_brokers() -> None:
    graph = random_links(40, Random(1))
    for source in range(5):
        others = [broker for broker in range(40) if broker != source]
        for count in (known.path, known.tree):
            assert count(graph, source, others, 10).messages == 39
        assert known.flood(graph, source, others, 10).messages > 39


def test_each_constraint_costs_an_answer_and_a_message_for_whoever_has_matched() -> None:
    def box(x: float, y: float) -> list[RingSubscription]:
        return [RingSubscription("#", "t", Box((0.0, 0.0), (x, y)))]

    subscriptions = [box(1.0, 1.0), box(1.0, 0.1), box(0.1, 1.0), []]
    event = Event("a", b"", "t", (0.5, 0.5))
    assert [known.messages_by_topics(subscriptions, event, count, 3) for count in (0, 1, 2)] == [3, 3 + 6, 3 + 6 + 4]
