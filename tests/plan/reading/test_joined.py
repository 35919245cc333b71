"""Links as joined brokers tell them: the lesser capacity, the dearer cost, half of the shortest round trip."""

from __future__ import annotations

import math

import msgspec

from tieline.plan.instance import UNLIMITED, Instance, Link, Node, Topic
from tieline.plan.reading.joined import NetAnswer, as_it_is, joined_backbone, with_links


def _answer(name: str, own: list[tuple[str, float | None, float]], *, is_up: bool = True) -> NetAnswer:
    """What a broker says that has these links: peer, capacity in bits, round trip."""
    return msgspec.convert(
        {
            "name": name,
            "strategy": "path",
            "brokers": [{"name": each, "is_reachable": each != "d"} for each in ("c", "a", "d")],
            "links": [
                {"ends": ["a", "b"], "costs": [2, 5], "is_up": True, "is_own": True},
                {"ends": ["b", "c"], "costs": [1, None], "is_up": is_up},
            ],
            "own": [{"peer": peer, "capacity": bits, "least_round_trip_s": trip} for peer, bits, trip in own],
        },
        NetAnswer,
    )


def test_both_ends_are_heard() -> None:
    answers = {
        "a": _answer("a", [("b", 8_000.0, 0.04)]),
        "b": _answer("b", [("a", 4_000.0, 0.02), ("c", None, 0.0)]),
        "c": _answer("c", [("b", None, 0.0)]),
    }
    found = joined_backbone(answers, capacity=UNLIMITED, in_bytes=True)
    assert found.links == (
        Link(a="a", b="b", capacity=500.0, cost=5.0, latency=0.01),
        Link(a="b", b="c", capacity=math.inf, cost=1.0, latency=0.0),
    )
    assert [node.id for node in found.brokers] == ["a", "b", "c"]
    in_messages = joined_backbone(answers, capacity=7.0, in_bytes=False)
    assert [link.capacity for link in in_messages.links] == [7.0, 7.0]
    assert answers["a"].reachable == ["a", "c"]


def test_links_that_are_down_or_lead_to_the_silent_are_left_out() -> None:
    down = {name: _answer(name, [], is_up=False) for name in "abc"}
    assert [(link.a, link.b) for link in joined_backbone(down, capacity=1.0, in_bytes=True).links] == [("a", "b")]
    silent = {name: _answer(name, []) for name in "bc"}
    assert [(link.a, link.b) for link in joined_backbone(silent, capacity=1.0, in_bytes=True).links] == [("b", "c")]


def test_an_instance_is_held_against_what_runs() -> None:
    instance = Instance(
        name="three",
        nodes=(*(Node(id=name, roles=("broker",)) for name in "abc"), Node(id="p", roles=("publisher",))),
        links=(
            Link(a="b", b="a", capacity=900.0, cost=1.0),
            Link(a="a", b="c", capacity=900.0, cost=1.0),
            Link(a="p", b="a", capacity=50.0, cost=0.0),
        ),
        topics=(Topic(id="t", source="p", rate=1.0, subscribers=("b",)),),
    )
    running = joined_backbone(
        {name: _answer(name, [("b", 8_000.0, 0.0)]) for name in "ab"}, capacity=1.0, in_bytes=True
    )
    assert [(link.a, link.b, link.capacity) for link in as_it_is(instance, running).links] == [
        ("b", "a", 900.0),
        ("p", "a", 50.0),
    ]
    assert [(link.a, link.b, link.capacity) for link in with_links(instance, running).links] == [
        ("p", "a", 50.0),
        ("a", "b", 1_000.0),
    ]
