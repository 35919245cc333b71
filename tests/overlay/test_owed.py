"""What is owed to another broker is counted in bytes and bounded: publishers are refused as for a full queue."""

from __future__ import annotations

from tests.kits.world import World
from tieline.core.holdings import Kind
from tieline.overlay.carrier.ends import Limits
from tieline.overlay.frames.fields import put
from tieline.overlay.frames.frame import Notice, Topic, tag_of
from tieline.overlay.interests.entries import Entry, Form, Said, Terms
from tieline.overlay.joined import Joined
from tieline.wire.packets import Puback, Publish
from tieline.wire.reason import Reason


def _owed(joined: Joined) -> int:
    return sum(joined.node.carrier.sender.owed_bytes.values())


def test_publishers_are_refused_when_too_much_is_owed_and_let_go_when_half_is_settled() -> None:
    world = World()
    joined = Joined(world.broker, life=1, incarnation=11, limits=Limits(owed_bytes=4_000))
    far = joined.node.number_of("far")
    assert joined.node.carrier.heard(far, 22, 1)
    joined.node.interests.learn(Said(far, Form.WHOLE, 1, 0, {Entry("x"): Terms(2)}))
    joined.end_turn(world.now)
    publisher = world.client("publisher", version=5)
    publisher.note_connack()

    def publish(number: int, topic: str = "x") -> Reason:
        publisher.send(Publish(topic=topic, payload=bytes(500), qos=1, packet_id=number))
        world.settle()
        joined.end_turn(world.now)
        world.settle()
        return publisher.expect(Puback, packet_id=number).reason

    answers = [publish(number) for number in range(1, 11)]
    taken = answers.count(Reason.SUCCESS)
    assert 4 <= taken <= 8
    assert answers == [Reason.SUCCESS] * taken + [Reason.QUOTA_EXCEEDED] * (10 - taken)
    assert world.broker.holdings.by_kind()[Kind.OWED] == _owed(joined) >= 4_000
    # topics that do not cross are not affected
    assert publish(20, "y") in (Reason.SUCCESS, Reason.NO_MATCHING_SUBSCRIBERS)

    def settle(number: int) -> None:
        lanes = [lane for broker, lane in joined.node.carrier.sender.outgoing if broker == far]
        body = put(tag_of(22), tag_of(11), lanes[0], number, 0, 0)
        joined.node.carrier.sender.settled(Notice(Topic.END_ACK, far, joined.node.broker, body), world.now)
        joined.end_turn(world.now)

    settle(1)
    assert publish(21) is Reason.QUOTA_EXCEEDED
    settle(taken - 1)
    assert publish(22) is Reason.SUCCESS
    settle(taken + 1)
    assert _owed(joined) == world.broker.holdings.by_kind()[Kind.OWED] == 0
    joined.node.check()
