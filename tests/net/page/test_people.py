"""Sessions for the page: those that wait most first, within every state, and in portions."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.kits.world import World
from tieline.core.answers.listing import PAUSE
from tieline.net.inquiry import InquiryError
from tieline.net.page.people import sessions


def ask(world: World, **question: Any) -> dict[str, Any]:
    return asyncio.run(sessions(world.broker, {"do": "sessions", **question}, "here", world.now))


@pytest.fixture(name="world")
def _world() -> World:
    world = World()
    publisher = world.client("p")
    for number in range(4):
        client = world.durable(f"c{number}") if number == 3 else world.client(f"c{number}")
        client.subscribe("a/#", qos=1)
        if number == 1:
            client.subscribe("b")
        if number == 3:
            client.drop()
        elif number:
            client.is_reading = False
    for number in range(6):
        publisher.publish(f"a/{number}", b"x" * 100, qos=number % 2)
    publisher.publish("b", b"y" * 5_000)
    return world


def test_who_waits_most_comes_first(world: World) -> None:
    found = ask(world)
    waiting = [each["waiting_bytes"] for each in found["sessions"]]
    assert found["total"] == 5 and not found["more"] and waiting == sorted(waiting, reverse=True)
    first = found["sessions"][0]
    assert first["client"] == "c1" and first["at"] == "here" and first["is_connected"] and first["subscriptions"] == 2


@pytest.mark.parametrize(
    ("state", "who"),
    [
        ("waiting", {"c1", "c2"}), ("away", {"c3"}), ("connected", {"p", "c0", "c1", "c2"}), ("held", set()),
        ("slow", {"c1", "c2", "c3"}),
    ],
)  # fmt: skip
def test_states(world: World, state: str, who: set[str]) -> None:
    assert {each["client"] for each in ask(world, state=state)["sessions"]} == who


def test_patterns_and_a_bound(world: World) -> None:
    assert {each["client"] for each in ask(world, client="c?")["sessions"]} == {"c0", "c1", "c2", "c3"}
    cut = ask(world, most=2)
    assert len(cut["sessions"]) == 2 and cut["more"] and cut["total"] == 5
    assert [each["client"] for each in ask(world, most=2, client="[")["sessions"]] == []


def test_the_bound_holds_across_portions() -> None:
    world = World()
    for number in range(2 * PAUSE + 3):
        world.client(f"c{number}")
    last = world.clients[-1]
    last.subscribe("a")
    last.is_reading = False
    world.clients[0].publish("a", b"x")
    found = ask(world, most=1)
    assert [each["client"] for each in found["sessions"]] == [f"c{2 * PAUSE + 2}"] and found["total"] == 2 * PAUSE + 3


@pytest.mark.parametrize("question", [{"state": "asleep"}, {"most": 0}, {"most": 1_001}, {"client": 7}, {"more": True}])
def test_questions_that_cannot_be_meant(world: World, question: dict[str, Any]) -> None:
    with pytest.raises(InquiryError):
        ask(world, **question)
