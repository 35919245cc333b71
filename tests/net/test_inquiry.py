"""Questions about causes on the management channel: understood or refused with a sentence, answered by the core."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import pytest

from tests.kits.world import World
from tieline.core.account import Drop
from tieline.net.inquiry import MOST_DROPS, InquiryError, answer


def ask(world: World, do: str, **fields: Any) -> dict[str, Any]:
    return answer(world.broker, {"do": do, **fields}, world.now)


@pytest.fixture
def world() -> World:
    world = World(queue_messages=1)
    slow = world.client("slow")
    slow.subscribe("a/#")
    slow.stall()
    publisher = world.client("p")
    for _ in range(3):
        publisher.publish("a/b")
    world.advance(2)
    return world


def test_why(world: World) -> None:
    assert [step["stage"] for step in ask(world, "why", client="slow")["steps"]][:2] == ["client", "served"]
    found = ask(world, "why", client="p", ask="publish", subject="a/b")
    assert any(step["stage"] == "access" and step["outcome"] == "yes" for step in found["steps"])
    found = ask(world, "why", client="slow", ask="subscribe", subject="a/b")
    assert any(step["stage"] == "subscribed" for step in found["steps"])
    (first, second) = ask(world, "why", client="slow", ask="dropped")["drops"]
    assert first == {
        "ago_s": 2.0, "why": "queue_full", "class": "normal", "client": "slow", "topic": "a/b",
        "messages": 1, "queued": 1, "age_s": 0.0,
    }  # fmt: skip
    assert second["why"] == "queue_full"


def test_drops(world: World) -> None:
    found = ask(world, "drops")
    assert (found["kept"], found["total"], len(found["drops"])) == (2, 2, 2)
    for fits in (
        {"client": "slow"},
        {"topic": "a/+"},
        {"why": "queue_full"},
        {"class": "normal"},
        {"class": 1},
        {"since_s": 5},
    ):
        assert len(ask(world, "drops", **fits)["drops"]) == 2, fits
    for misses in ({"client": "p"}, {"topic": "b"}, {"why": "expired"}, {"class": 3}, {"class": -1}, {"since_s": 1}):
        assert not ask(world, "drops", **misses)["drops"], misses
    assert len(ask(world, "drops", most=1)["drops"]) == 1


def test_a_drop_without_a_class(world: World) -> None:
    world.broker.account.drop(world.now, Drop.DENIED, "p", b"t")
    (found,) = ask(world, "drops", **{"class": -1})["drops"]
    assert (found["why"], found["class"]) == ("denied", "")


def test_trace(world: World) -> None:
    found = ask(world, "trace", topic="a/b", payload=b64encode(b"\x00\xff").decode(), qos=1, client="p")
    assert not found["is_refused"] and found["unlisted"] == 0
    (receiver,) = found["receivers"]
    assert (receiver["client"], receiver["fate"], receiver["why"]) == ("slow", "squeezes", "queue_full")
    assert ask(world, "trace", topic="a/#")["is_refused"]


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        ({"do": "why"}, "client"),
        ({"do": "why", "client": 5}, "expected `str`"),
        ({"do": "why", "client": "a", "ask": "dance"}, "invalid enum value"),
        ({"do": "why", "client": "a", "ask": "publish"}, "needs a topic"),
        ({"do": "why", "client": "a", "more": 1}, "unknown field"),
        ({"do": "drops", "why": "boredom"}, "is no reason"),
        ({"do": "drops", "class": "first"}, "is no class"),
        ({"do": "drops", "class": 4}, "is no class"),
        ({"do": "drops", "most": MOST_DROPS + 1}, "<= 1000"),
        ({"do": "trace"}, "topic"),
        ({"do": "trace", "topic": "a", "payload": "!"}, "not base64"),
        ({"do": "trace", "topic": "a", "qos": 3}, "<= 2"),
        ({"do": "trace", "topic": "a", "properties": [["a"]]}, "length 2"),
    ],
)
def test_questions_that_cannot_be_meant(world: World, request_: dict[str, Any], said: str) -> None:
    with pytest.raises(InquiryError) as refused:
        answer(world.broker, request_, world.now)
    assert said in str(refused.value)
