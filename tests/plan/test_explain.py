from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from tests.plan.worlds import small
from tieline.plan.arrays import TOLERANCE, arrays
from tieline.plan.explain import explain
from tieline.plan.flaws import Flawed
from tieline.plan.generate.testset import paper, tiny
from tieline.plan.instance import Instance
from tieline.plan.routes import load, trees
from tieline.plan.solve import solve


def test_every_unmet_request_is_explained_by_the_smallest_cut() -> None:
    """The cut separates, and no smaller set of full links does; checked by trying all smaller sets."""
    explained = 0
    for seed in range(120):
        instance = small(seed, most_requests=6)
        plan = solve(instance)
        for topic, subscriber in plan.unmet_requests():
            explanation = explain(instance, plan, topic=topic, subscriber=subscriber)
            cut = [frozenset((link.a, link.b)) for link in explanation.links]
            full = full_links(instance, plan.routes, topic)
            everything = set(full)
            assert set(cut) <= everything
            is_joined = joined(instance, topic, subscriber, everything)
            if explanation.reason == "open":
                assert is_joined
                continue
            assert not joined(instance, topic, subscriber, set(cut))
            assert explanation.reason == ("saturated" if cut else "unreachable")
            for fewer in combinations(full, max(0, len(cut) - 1)):
                if cut:
                    assert joined(instance, topic, subscriber, set(fewer))
            for link in explanation.links:
                named = f"{link.a} - {link.b}"
                assert named in explanation.sentence
                assert link.load <= link.capacity + 1e-9
            explained += bool(cut)
    assert explained >= 20


def full_links(instance: Instance, routes: object, topic: str) -> list[frozenset[str]]:
    """Links without room for a topic that does not use them."""
    numbers = arrays(instance)
    planned = trees(numbers, routes)  # type: ignore[arg-type]
    number = [each.id for each in instance.topics].index(topic)
    room = numbers.capacity * (1 + TOLERANCE) - load(numbers, planned)
    own = {arc >> 1 for arc in planned.entering[number].values()}
    places = [link for link in np.flatnonzero(room < numbers.rate[number]).tolist() if link not in own]
    return [frozenset((instance.links[link].a, instance.links[link].b)) for link in places]


def joined(instance: Instance, name: str, subscriber: str, closed: set[frozenset[str]]) -> bool:
    """Whether a way leads from the topic's source to the subscriber over brokers and links that are not closed."""
    topic = next(each for each in instance.topics if each.id == name)
    brokers = {node.id for node in instance.nodes if node.is_broker}
    reached, stack = {topic.source}, [topic.source]
    while stack:
        node = stack.pop()
        if node != topic.source and node not in brokers:
            continue
        for link in instance.links:
            if node in (link.a, link.b) and frozenset((link.a, link.b)) not in closed:
                there = link.b if node == link.a else link.a
                if there not in reached:
                    reached.add(there)
                    stack.append(there)
    return subscriber in reached


def test_the_topics_that_fill_a_link_are_named() -> None:
    instance = paper("res5", seed=1, tightness=1.0)
    plan = solve(instance, method="lns", iterations=500)
    topic, subscriber = plan.unmet_requests()[0]
    explanation = explain(instance, plan, topic=topic, subscriber=subscriber)
    assert explanation.reason == "saturated"
    rates = {each.id: each.rate for each in instance.topics}
    for link in explanation.links:
        assert sum(rates[name] for name in link.topics) == pytest.approx(link.load)
        assert topic not in link.topics


def test_a_served_request_needs_no_excuse() -> None:
    instance = tiny()
    explanation = explain(instance, solve(instance), topic="1", subscriber="3")
    assert explanation.reason == "served"
    assert "over 2 links" in explanation.sentence


def test_unknown_requests_are_named() -> None:
    instance = tiny()
    plan = solve(instance)
    for arguments, sentence in (
        ({"topic": "9", "subscriber": "3"}, 'there is no topic "9"'),
        ({"topic": "1", "subscriber": "4"}, 'topic "1" has no subscriber "4"'),
        ({"topic": "1", "subscriber": "3", "source": "0"}, 'there is no topic "1" of "0"'),
    ):
        with pytest.raises(Flawed, match=sentence):
            explain(instance, plan, **arguments)
