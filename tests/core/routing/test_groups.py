from __future__ import annotations

from collections import Counter

import pytest

from tests.kits.sessions import lone_session
from tests.kits.world import Client, World, payloads
from tieline.core.account import Drop
from tieline.core.client import Hold
from tieline.core.message import Message
from tieline.core.receiver import Grant
from tieline.core.routing.groups import Group
from tieline.wire.packets import Puback, Publish, Pubrec
from tieline.wire.reason import Reason


def members(world: World, count: int, qos: int = 1, *, durable: bool = False) -> list[Client]:
    made = [world.durable(f"m{n}") if durable else world.client(f"m{n}") for n in range(count)]
    for client in made:
        client.subscribe("$share/g/t", qos=qos)
    return made


@pytest.mark.parametrize("qos", [0, 1, 2])
def test_members_take_turns(qos: int) -> None:
    world = World(route_cache=0)  # a run of QoS 0 messages in one chunk goes to one member
    group, publisher = members(world, 3, qos=2), world.client("p")
    for number in range(12):
        publisher.publish("t", b"%d" % number, qos=qos)
    got = [payloads(client.messages()) for client in group]
    assert [len(each) for each in got] == [4, 4, 4]
    assert sorted(int(payload) for each in got for payload in each) == list(range(12))


def test_each_group_gets_its_own_copy_and_an_ordinary_subscription_too() -> None:
    world = World()
    one, two, publisher = world.client("1"), world.client("2"), world.client("p")
    one.subscribe("$share/g/t", "t")
    two.subscribe("$share/h/t")
    publisher.publish("t")
    assert len(one.messages()) == 2
    assert len(two.messages()) == 1


def test_a_member_that_is_away_is_passed_over() -> None:
    world = World()
    group, publisher = members(world, 3, durable=True), world.client("p")
    group[1].drop()
    for number in range(6):
        publisher.publish("t", b"%d" % number, qos=1)
    assert [len(group[n].messages()) for n in (0, 2)] == [3, 3]


def test_if_all_are_away_one_session_keeps_the_message() -> None:
    world = World()
    group, publisher = members(world, 2, durable=True), world.client("p")
    for client in group:
        client.drop()
    publisher.publish("t", b"kept", qos=1)
    publisher.publish("t", b"not kept", qos=0)
    again = [world.durable(f"m{n}") for n in range(2)]
    assert [payload for client in again for payload in payloads(client.messages())] == [b"kept"]
    assert world.broker.account.drops == {Drop.NO_MEMBER: 1}


def test_a_member_whose_queue_is_full_is_passed_over() -> None:
    world = World(queue_messages=3)
    group, publisher = members(world, 2), world.client("p")
    group[0].stall()
    for number in range(20):
        assert publisher.publish("t", b"%d" % number, qos=1) is Reason.SUCCESS
        for message in group[1].messages():
            group[1].acknowledge(message)
    group[0].resume()
    assert len(group[0].messages()) == 3
    assert not world.broker.account.drops


def test_when_every_member_is_full_the_publisher_is_told() -> None:
    world = World(queue_messages=3)
    group, publisher = members(world, 2), world.client("p")
    for client in group:
        client.stall()
    answers = [publisher.publish("t", b"%d" % number, qos=1) for number in range(8)]
    assert answers == [Reason.SUCCESS] * 6 + [Reason.QUOTA_EXCEEDED] * 2
    for client in group:
        client.resume()
    assert sorted(p for client in group for p in payloads(client.messages())) == [b"%d" % n for n in range(6)]
    assert world.broker.account.drops == {Drop.REFUSED: 2}


def test_when_every_member_is_full_a_3_1_1_publisher_waits() -> None:
    world = World(queue_messages=2)
    (member,), publisher = members(world, 1), world.client("p", version=4)
    member.stall()
    for number in range(4):
        publisher.put("t", b"%d" % number, qos=1)
    assert publisher.connection.hold is Hold.QUEUE_FULL
    member.resume()
    for message in member.messages():
        member.acknowledge(message)
    assert len([packet for packet in publisher.take() if isinstance(packet, Puback)]) == 4


def test_what_waited_for_a_member_goes_to_another_when_its_session_ends() -> None:
    world = World()
    group, publisher = members(world, 2), world.client("p")
    group[0].stall()
    for number in range(6):
        publisher.publish("t", b"%d" % number, qos=1)
    seen = payloads(group[1].messages())
    assert len(seen) == 3
    group[0].drop()
    seen += payloads(group[1].messages())
    assert sorted(seen) == [b"%d" % number for number in range(6)]
    assert not world.broker.account.drops


def test_an_unacknowledged_qos_1_message_goes_to_another_member_and_one_of_qos_2_does_not() -> None:
    world = World()
    group, publisher = members(world, 2, qos=2), world.client("p")
    publisher.publish("t", b"1", qos=1)
    publisher.publish("t", b"to the other", qos=0)
    publisher.publish("t", b"2", qos=2)
    group[1].take()
    assert [message.qos for message in group[0].messages()] == [1, 2]
    group[0].drop()
    assert payloads(group[1].messages()) == [b"1"], "4.8.2"


def test_what_waited_for_the_last_member_is_named() -> None:
    world = World()
    (member,), publisher = members(world, 1), world.client("p")
    member.stall()
    for _ in range(3):
        publisher.publish("t", qos=1)
    member.drop()
    assert world.broker.account.drops == {Drop.SESSION_ENDED: 3}


def test_a_group_without_members_is_gone() -> None:
    world = World()
    (member,), publisher = members(world, 1), world.client("p")
    member.unsubscribe("$share/g/t")
    assert publisher.publish("t", qos=1) is Reason.NO_MATCHING_SUBSCRIBERS
    assert not world.broker.account.drops


def test_turns_survive_members_that_come_and_go() -> None:
    world = World(route_cache=0)
    group, publisher = members(world, 4), world.client("p")
    counts: Counter[str] = Counter()
    for round_ in range(8):
        leaver = group[round_ % 4]
        leaver.unsubscribe("$share/g/t")
        for _ in range(12):
            publisher.publish("t")
        leaver.subscribe("$share/g/t", qos=1)
        for client in group:
            counts[client.connection.client_id] += len([p for p in client.take() if isinstance(p, Publish)])
    assert sum(counts.values()) == 96
    assert max(counts.values()) - min(counts.values()) <= 24, counts


def test_qos_2_of_a_group_is_one_exchange() -> None:
    world = World()
    group, publisher = members(world, 2, qos=2), world.client("p")
    assert publisher.publish("t", b"x", qos=2) is Reason.SUCCESS
    (message,) = [packet for client in group for packet in client.messages()]
    owner = next(client for client in group if client.connection.session and client.connection.session.inflight)
    owner.send(Pubrec(packet_id=message.packet_id))


def test_a_group_says_what_it_is() -> None:
    assert repr(Group("g", "a/#")) == "<Group g a/#, 0 members>"


def test_one_that_is_away_is_chosen_only_if_it_keeps_messages() -> None:
    group = Group("g", "t")
    message = Message(b"t", b"x", 1)
    assert group.pick(message) is None
    one, two = lone_session("1", 10, 1_000), lone_session("2", 10, 1_000)
    group.members[one] = Grant(one, 0, share=group.share)
    assert group.pick(message) is None
    group.members[two] = Grant(two, 1, share=group.share)
    assert group.pick(message) is group.members[two]
