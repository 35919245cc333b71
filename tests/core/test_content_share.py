"""Shared subscriptions with conditions: a member is chosen among those who want the message."""

from __future__ import annotations

from typing import Any

import pytest

from tests.core.content import (
    FILTER,
    PCC,
    content_world,
    got,
    said,
    send,
    volts,
    ways,
)
from tests.kits.world import Client, World
from tieline.core.account import Drop
from tieline.wire.packets import (
    Publish,
    Unsuback,
    Unsubscribe,
)
from tieline.wire.reason import Reason


def members(world: World, *conditions: str | None, qos: int = 1, durable: bool = False) -> list[Client]:
    made = []
    for number, condition in enumerate(conditions):
        client = (world.durable if durable else world.client)(f"m{number}")
        where = "" if condition is None else f"$where/{condition}/"
        assert client.subscribe(f"$share/g/{where}{FILTER}", qos=qos).reasons == (qos,)
        made.append(client)
    return made


@ways
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_a_member_is_chosen_among_those_whose_condition_holds(qos: int, way: dict[str, Any]) -> None:
    world = content_world(**way)
    group = members(world, "voltage<100", "voltage<200", "voltage>=300", qos=2)
    publisher = world.client("p")
    for _ in range(6):
        for voltage in (50, 50, 150, 250, 350):
            publisher.publish(PCC, said(voltage=voltage), qos=qos)
    seen = [[packet.payload for packet in client.take() if isinstance(packet, Publish)] for client in group]
    assert set(seen[0]) == {said(voltage=50)}
    assert set(seen[1]) == {said(voltage=50), said(voltage=150)}
    assert set(seen[2]) == {said(voltage=350)}
    assert sorted(seen[0] + seen[1] + seen[2]) == sorted(volts(50, 50, 150, 350) * 6)
    assert not world.broker.account.drops


@ways
def test_members_that_want_the_same_take_turns(way: dict[str, Any]) -> None:
    world = content_world(**way)
    group, publisher = members(world, "voltage<200", "voltage<201", None), world.client("p")
    send(publisher, *volts(*range(30)))
    assert [len(client.messages()) for client in group] == [10, 10, 10]


@ways
def test_nobody_starves_where_candidates_differ(way: dict[str, Any]) -> None:
    """A turn round the whole group would give every other kind of message to the same member."""
    world = content_world(**way)
    group, publisher = members(world, "voltage>0", "voltage=1", "voltage=2"), world.client("p")
    send(publisher, *volts(*[1, 2] * 30))
    counts = [len(client.messages()) for client in group]
    assert sum(counts) == 60
    assert min(counts) >= 15, counts


def test_who_wants_none_gets_none_and_nobody_is_blamed() -> None:
    world = content_world()
    group, publisher = members(world, "voltage<100", "voltage>200"), world.client("p")
    assert publisher.publish(PCC, said(voltage=150), qos=1) is Reason.SUCCESS, "what others wait for is not told"
    publisher.publish(PCC, said(voltage=150))
    assert [client.messages() for client in group] == [[], []]
    assert not world.broker.account.drops


def test_a_group_of_plain_members_and_askers_is_one_group() -> None:
    world = content_world()
    group, publisher = members(world, "voltage<100", None), world.client("p")
    for voltage in (50, 50, 150, 150):
        publisher.publish(PCC, said(voltage=voltage), qos=1)
    assert got(group[0]) == volts(50)
    assert sorted(got(group[1])) == sorted(volts(50, 150, 150))
    assert world.broker.routes.shared == 2


def test_a_member_that_is_full_is_passed_over_and_when_all_are_the_publisher_is_told() -> None:
    world = content_world(queue_messages=2)
    group, publisher = members(world, "voltage<100", "voltage<100", "voltage>100"), world.client("p")
    group[0].stall()
    group[1].stall()
    answers = [publisher.publish(PCC, said(voltage=50), qos=1) for _ in range(5)]
    assert answers == [Reason.SUCCESS] * 4 + [Reason.QUOTA_EXCEEDED]
    assert publisher.publish(PCC, said(voltage=150), qos=1) is Reason.SUCCESS
    assert got(group[2]) == volts(150)


def test_what_waited_goes_to_another_member_whose_condition_holds() -> None:
    world = content_world()
    group, publisher = members(world, "voltage<100", "voltage<60", "voltage>200"), world.client("p")
    for client in group[:2]:
        client.stall()
    for voltage in (50, 50, 70):
        publisher.publish(PCC, said(voltage=voltage), qos=1)
    group[1].resume()
    assert got(group[1]) == volts(50)
    group[0].drop()
    assert got(group[1]) == volts(50), "one waited in the queue; 70 was not for this one"
    group[2].expect_nothing()
    assert world.broker.account.drops == {Drop.SESSION_ENDED: 1}


def test_what_waited_for_a_plain_member_goes_to_an_asker_whose_condition_holds() -> None:
    world = content_world()
    group, publisher = members(world, None), world.client("p")
    group[0].stall()
    send(publisher, *volts(50, 150, 60))
    send(publisher, *volts(70, 170), qos=1)
    asker = world.client("late")
    asker.subscribe(f"$share/g/{FILTER}?voltage<100", qos=1)
    group[0].drop()
    assert got(asker) == volts(50, 60, 70)
    assert world.broker.account.drops == {Drop.SESSION_ENDED: 2}


def test_what_waited_for_an_asker_goes_to_a_plain_member_but_not_to_one_that_has_left() -> None:
    world = content_world()
    group, publisher = members(world, "voltage<100", None, None, durable=True), world.client("p")
    for client in group:
        client.stall()
    for voltage in (50, 51, 52):
        publisher.publish(PCC, said(voltage=voltage), qos=1)
    group[1].send(Unsubscribe(packet_id=9, filters=(f"$share/g/{FILTER}",)))
    group[0].disconnect(session_expiry_interval=0)
    group[1].resume()
    group[1].find(Unsuback)
    assert len(got(group[1])) == 1, "what it had is its own"
    group[2].resume()
    assert len(got(group[2])) == 2
    assert not world.broker.account.drops


def test_what_is_in_flight_to_an_asker_goes_to_another() -> None:
    world = content_world()
    group, publisher = members(world, "voltage<100", "voltage<100"), world.client("p")
    publisher.publish(PCC, said(voltage=50), qos=1)
    holder, other = (group[0], group[1]) if group[0].inbox else (group[1], group[0])
    holder.drop()
    assert got(other) == volts(50)


def test_each_group_and_each_filter_is_for_itself() -> None:
    world = content_world()
    client, publisher = world.client("c"), world.client("p")
    client.subscribe(
        f"$share/g/{FILTER}?voltage<5", f"$share/h/{FILTER}?voltage<5", "$share/g/#?voltage<5", f"{FILTER}?voltage<5"
    )
    publisher.publish(PCC, said(voltage=1))
    assert len(client.messages()) == 4
    publisher.publish(PCC, said(voltage=9))
    client.expect_nothing()


def test_a_member_with_two_conditions_in_one_group_counts_once() -> None:
    world = content_world()
    (one, two), publisher = members(world, "voltage<100", "voltage<100"), world.client("p")
    one.subscribe(f"$share/g/{FILTER}?phases=3", qos=1)
    for _ in range(10):
        publisher.publish(PCC, said(voltage=1, phases=3), qos=1)
    assert [len(client.messages()) for client in (one, two)] == [5, 5]


def test_references_of_members_are_their_own() -> None:
    world = content_world()
    group, publisher = members(world, "changed(voltage)", "changed(voltage)"), world.client("p")
    for voltage in (1, 1, 1, 2):
        publisher.publish(PCC, said(voltage=voltage))
    assert [got(client) for client in group] == [volts(1, 2), volts(1)]
