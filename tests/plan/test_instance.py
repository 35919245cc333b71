from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.plan.worlds import small
from tieline.instance_document import SubscriptionDocument
from tieline.plan.flaws import Flawed, checked
from tieline.plan.generate.testset import paper, tiny
from tieline.plan.instance import Instance, Link, Node
from tieline.plan.reading.document import expanded, parse, read, render, write


def document() -> dict[str, Any]:
    return {
        "format": "tieline-instance-1",
        "name": "house",
        "nodes": [
            {"id": "b1", "roles": ["broker"], "max_connections": 3},
            {"id": "b2", "roles": ["broker"], "max_connections": "none"},
            {"id": "meter", "roles": ["publisher"]},
            {"id": "screen", "roles": ["subscriber"], "at": [0.5, 1]},
        ],
        "links": [
            {"a": "meter", "b": "b1", "capacity": "none", "cost": 1},
            {"a": "b1", "b": "b2", "capacity": 10, "cost": 2.5, "latency": 3},
            {"a": "b2", "b": "screen", "capacity": 4, "cost": 1},
        ],
        "topics": [
            {
                "id": "power/kitchen",
                "source": "meter",
                "rate": 2,
                "subscribers": ["screen"],
                "class": 3,
                "max_latency": 9,
            }
        ],
    }


def broken(change: dict[str, Any], *path: Any) -> str:
    """What the reader says when the element at a path is changed."""
    value = document()
    target: Any = value
    for step in path:
        target = target[step]
    target.update(change)
    with pytest.raises(Flawed) as caught:
        parse(json.dumps(value))
    return str(caught.value)


def test_a_document_is_read_as_it_is_written(tmp_path: Path) -> None:
    instance = parse(json.dumps(document()))
    assert instance.topics[0].level == 3
    assert instance.links[0].capacity == float("inf")
    assert instance.nodes[0].max_connections == 3
    assert instance.nodes[1].max_connections is None
    write(instance, tmp_path / "house.json")
    assert read(tmp_path / "house.json") == instance


@given(st.integers(0, 10_000), st.booleans())
def test_writing_and_reading_changes_nothing(seed: int, limits: bool) -> None:
    instance = small(seed, limits=limits)
    assert parse(render(instance)) == instance


@pytest.mark.parametrize(
    ("change", "path", "sentence"),
    [
        ({"capacity": -1}, ("links", 1), "link 1 (b1 - b2): capacity is negative"),
        ({"capacity": "all"}, ("links", 1), "link 1 (b1 - b2): capacity: "),
        ({"b": "b9"}, ("links", 1), 'link 1 (b1 - b9): there is no node "b9"'),
        ({"b": "b1"}, ("links", 1), "link 1 (b1 - b1): it leads from a node to itself"),
        ({"a": "screen", "b": "b2"}, ("links", 0), "link 2 (b2 - screen): link 0 joins the same two nodes"),
        ({"cost": -2}, ("links", 0), "link 0 (meter - b1): cost is negative"),
        ({"colour": "red"}, ("links", 0), 'link 0 (meter - b1): Object contains unknown field "colour"'),
        ({"roles": []}, ("nodes", 1), "node 1 (b2): it has no role"),
        ({"roles": ["king"]}, ("nodes", 1), "node 1 (b2): roles"),
        ({"id": "b1"}, ("nodes", 1), "node 1 (b1): another node has the same id"),
        ({"max_connections": -1}, ("nodes", 2), "node 2 (meter): max_connections is negative"),
        ({"rate": -1}, ("topics", 0), "topic 0 (power/kitchen): rate is negative"),
        ({"class": 4}, ("topics", 0), "topic 0 (power/kitchen): class is 4"),
        ({"source": "b1"}, ("topics", 0), 'its source "b1" does not have the role publisher'),
        ({"source": "x"}, ("topics", 0), 'there is no node "x" to be its source'),
        ({"subscribers": ["b1"]}, ("topics", 0), '"b1" does not have the role subscriber'),
        ({"subscribers": ["screen", "screen"]}, ("topics", 0), 'the subscriber "screen" is written twice'),
        ({"unmet_cost": -5}, (), "the instance: unmet_cost is negative"),
        ({"n_max": 0}, (), "the instance: n_max is less than 1"),
        ({"format": "other"}, (), 'its "format" is not "tieline-instance-1"'),
        ({"name": 5}, (), "the instance: name"),
    ],
)
def test_a_mistake_is_named(change: dict[str, Any], path: tuple[Any, ...], sentence: str) -> None:
    assert sentence in broken(change, *path)


def test_what_is_no_json_is_said_to_be_none(tmp_path: Path) -> None:
    with pytest.raises(Flawed, match="this is not JSON"):
        parse("{")
    with pytest.raises(Flawed, match="No such file"):
        read(tmp_path / "nothing.json")


def test_two_publishers_may_use_one_name() -> None:
    instance = parse(json.dumps(document()))
    other = msgspec.structs.replace(instance.topics[0], source="second")
    twice = msgspec.structs.replace(
        instance,
        nodes=(*instance.nodes, Node(id="second", roles=("publisher",))),
        links=(*instance.links, Link(a="second", b="b1", capacity=1.0, cost=1.0)),
        topics=(instance.topics[0], other),
    )
    assert checked(twice) == twice
    with pytest.raises(Flawed, match="topic 0 has the same id and source"):
        checked(msgspec.structs.replace(twice, topics=(other, other)))


def test_wildcards_become_subscribers() -> None:
    value = document()
    value["nodes"][2]["roles"].append("subscriber")
    value["topics"].append({"id": "power/cellar", "source": "meter", "rate": 1})
    value["topics"].append({"id": "$SYS/load", "source": "meter", "rate": 1})
    value["subscriptions"] = [
        {"node": "screen", "filter": "power/+"},
        {"node": "screen", "filter": "#"},
        {"node": "meter", "filter": "power/#"},
    ]
    found = {topic.id: topic.subscribers for topic in parse(json.dumps(value)).topics}
    assert found == {"power/kitchen": ("screen",), "power/cellar": ("screen",), "$SYS/load": ()}


@pytest.mark.parametrize(
    ("subscription", "sentence"),
    [
        (SubscriptionDocument(node="9", filter="#"), 'subscription 0 (9 - #): there is no node "9"'),
        (SubscriptionDocument(node="3", filter="a/#/b"), 'subscription 0 (3 - a/#/b): "a/#/b" is no topic filter'),
    ],
)
def test_a_bad_subscription_is_named(subscription: SubscriptionDocument, sentence: str) -> None:
    with pytest.raises(Flawed) as caught:
        expanded(tiny(), [subscription])
    assert sentence in str(caught.value)


def test_an_instance_says_how_large_it_is() -> None:
    assert repr(paper("res7", seed=3)) == "Instance('res7-s3-b2', 71 nodes, 156 links, 31 topics, 62 requests)"
    assert isinstance(tiny(), Instance)
