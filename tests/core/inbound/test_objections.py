"""What speaks against a message, asked without a message being taken."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.kits.picture import picture
from tests.kits.world import World, configured
from tieline.conf.schema import Class, Priority
from tieline.core.account import Drop
from tieline.core.inbound.objections import Objection, Objections
from tieline.core.inbound.producers import Numbered, stop
from tieline.core.message import Message
from tieline.core.routing.classes import UNKNOWN
from tieline.wire.packets import Publish
from tieline.wire.reason import Reason


def objections(world: World) -> Objections:
    return world.broker.objections


@pytest.mark.parametrize(
    ("packet", "reason"),
    [
        (Publish(topic="a", qos=2, packet_id=1), Reason.QOS_NOT_SUPPORTED),
        (Publish(topic="a", retain=True), Reason.RETAIN_NOT_SUPPORTED),
        (Publish(topic="a", properties={"subscription_identifier": [1]}), Reason.PROTOCOL_ERROR),
        (Publish(topic="a", qos=1, packet_id=1), None),
    ],
)
def test_what_the_broker_does_not_do(packet: Publish, reason: Reason | None) -> None:
    violation = objections(World(maximum_qos=1, retain_available=False)).to_packet(packet)
    assert (None if violation is None else violation.reason) is reason


def test_a_claim_that_is_no_level() -> None:
    refusing = World(msgspec.structs.replace(configured(), priority=Priority(unknown="refuse")))
    objection = objections(refusing).to_claim(UNKNOWN)
    assert objection is not None and objection.why is Drop.UNKNOWN_LEVEL
    assert objections(refusing).to_claim(3) is None and objections(refusing).to_claim(None) is None
    assert objections(World()).to_claim(UNKNOWN) is None


def test_the_size_of_a_class() -> None:
    rule = Class(name="small", filter="s", level=2, max_packet=10)
    asked = objections(World(msgspec.structs.replace(configured(), class_=(rule,))))
    objection = asked.to_size(11, 2)
    assert objection is not None and (objection.why, objection.level) == (Drop.CLASS_TOO_LARGE, 2)
    assert asked.to_size(10, 2) is None and asked.to_size(11, 1) is None


def test_numbers() -> None:
    world = World()
    asked, conn = objections(world), world.client("p").connection
    numbered = Publish(topic="a", qos=1, packet_id=1, properties={"user_property": [("$once", "q/7")]})
    assert asked.number_of(numbered, None, 1) == Numbered("q", 7)
    numbered.properties = {"user_property": [("$once", "q")]}
    odd = asked.number_of(numbered, None, 1)
    assert isinstance(odd, Objection) and odd.why is Drop.MALFORMED_ONCE
    stop(conn, Numbered("q", 7))
    before = picture(world.broker)
    late = asked.to_turn(conn, Numbered("q", 8), 1)
    assert late is not None and late.why is Drop.OUT_OF_TURN
    assert asked.to_turn(conn, Numbered("q", 7), 1) is None
    assert picture(world.broker) == before, "the earlier number is still awaited"


@pytest.mark.parametrize(
    ("full", "version", "is_told"),
    [("refuse", 5, True), ("refuse", 4, False), ("pause", 5, False), ("oldest", 5, None)],
)
def test_a_full_queue(full: Any, version: int, is_told: bool | None) -> None:
    world = World(queue_messages=1, full=full)
    slow = world.client("slow")
    slow.subscribe("a", qos=1)
    slow.stall()
    world.client("p").publish("a", qos=1)
    message = Message(b"a", b"x", 1)
    shortage = objections(world).to_taking(message, world.broker.routes.of(b"a"), version)
    assert (None if shortage is None else shortage.is_told) is is_told
    if shortage is not None:
        assert shortage.receiver is world.broker.sessions["slow"]


@pytest.mark.parametrize(("full", "is_told"), [("refuse", True), ("oldest", True), ("pause", False)])
def test_a_store_in_trouble(full: Any, is_told: bool) -> None:
    world = World(full=full)
    world.broker.journal.trouble = "the disk is full"
    shortage = objections(world).to_taking(Message(b"a", b"x", 1), world.broker.routes.of(b"a"), 5)
    assert shortage is not None and (shortage.text, shortage.receiver, shortage.is_told) == (
        "the disk is full",
        None,
        is_told,
    )
