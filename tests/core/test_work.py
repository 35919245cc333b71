"""Whatever takes time is counted, and yields: work is counted per turn here, never seconds."""

from __future__ import annotations

from typing import Any

import pytest

from tests.access.ruled import Ruled, ruled
from tests.core.turns import LONGEST, ONE_STEP, Turns, picky_client
from tests.kits.world import Client, World
from tieline.conf.schema import Mqtt, Rule, Settings
from tieline.core.client import Hold
from tieline.core.ports import Allowed, Login, Pending, Refused, Verdict
from tieline.core.timers import Timers
from tieline.core.work import LEAST_SHARE, WORK_PER_TURN, Work
from tieline.wire.encode import encode
from tieline.wire.packets import (
    Connack,
    Connect,
    Packet,
    Pingreq,
    Pingresp,
    Puback,
    Publish,
    Pubrec,
    Pubrel,
    Suback,
    Subscribe,
    Subscription,
    Unsuback,
    Unsubscribe,
)
from tieline.wire.properties import Properties
from tieline.wire.reason import Reason


def _subscribe(filters: list[str], *conditions: str) -> Subscribe:
    properties: Any = {"user_property": [("$where", text) for text in conditions]} if conditions else {}
    return Subscribe(
        packet_id=7, subscriptions=tuple(Subscription(filter=one) for one in filters), properties=properties
    )


def test_a_long_subscribe_takes_turns_and_is_answered_once_in_order() -> None:
    world = World()
    client, other = world.client("long"), world.client("other")
    turns = Turns(world)
    filters = [f"f/{number}" for number in range(5_000)]
    turns.give(client, _subscribe(filters), Pingreq())
    assert client.connection.hold is Hold.TURN
    turns.give(other, Pingreq())
    turns.turn()
    other.expect(Pingresp)
    client.expect_nothing()
    assert turns.finish(client) > 5
    assert client.expect(Suback, packet_id=7).reasons == (0,) * 5_000
    client.expect(Pingresp)
    assert max(turns.work) < WORK_PER_TURN + LONGEST
    assert list(world.broker.sessions["long"].subscriptions) == filters


def test_a_long_unsubscribe_does_the_same() -> None:
    world = World()
    client = world.client("long")
    filters = [f"f/{number}" for number in range(5_000)]
    client.subscribe(*filters)
    turns = Turns(world)
    turns.give(client, Unsubscribe(packet_id=8, filters=(*filters, "never")), Pingreq())
    assert turns.finish(client) > 5
    assert client.expect(Unsuback, packet_id=8).reasons == (Reason.SUCCESS,) * 5_000 + (Reason.NO_SUBSCRIPTION_EXISTED,)
    client.expect(Pingresp)
    assert max(turns.work) < WORK_PER_TURN + LONGEST
    assert not world.broker.sessions["long"].subscriptions


def test_conditions_of_a_packet_are_parsed_once_however_many_filters_it_has() -> None:
    filters = [f"f/{number}" for number in range(1_000)]
    conditions = [f"a{number}>{number} and b{number}<{number}" for number in range(5)]
    work = []
    for asked in ([], conditions):
        world = World()
        client = world.client()
        turns = Turns(world)
        turns.give(client, _subscribe(filters, *asked))
        turns.finish(client)
        assert client.expect(Suback).reasons == (0,) * 1_000
        work.append(sum(turns.work))
    plain, conditional = work
    assert conditional < 3 * plain


def test_each_filter_pays_for_the_rules_it_is_held_against() -> None:
    def work_with(rules: int) -> int:
        deny = [Rule(filter=f"secret/{number}/#", deny=("subscribe",)) for number in range(rules)]
        world = ruled(*deny, Rule(filter="#", allow="all"))
        client = world.client()
        turns = Turns(world)
        turns.give(client, _subscribe([f"f/{number}" for number in range(500)]))
        turns.finish(client)
        assert client.expect(Suback).reasons == (0,) * 500
        assert max(turns.work) < WORK_PER_TURN + ONE_STEP
        return sum(turns.work)

    assert work_with(100) - work_with(0) >= 500 * 100 * 10


@pytest.mark.parametrize(
    "packet",
    [
        Pingreq(),
        Puback(packet_id=5),
        Pubrec(packet_id=5),
        Pubrel(packet_id=5),
        Publish(topic="t", payload=b"x", properties={"content_type": "x"}),
        Publish(topic="t", payload=b"x", qos=1, packet_id=5),
        Publish(topic="t", payload=b"x", retain=True),
    ],
    ids=lambda packet: f"{type(packet).__name__}-{getattr(packet, 'qos', 0)}{getattr(packet, 'retain', '')}",
)
def test_a_flood_of_small_packets_is_counted_and_yields(packet: Packet) -> None:
    world = World()
    client = world.client()
    turns = Turns(world)
    turns.give(client, encode(packet, 5) * 10_000)
    turns.finish(client)
    assert sum(turns.work) >= 10_000 * 10, "a packet is a microsecond of work, at least"
    assert max(turns.work) < WORK_PER_TURN + ONE_STEP
    assert len(turns.work) >= 3


def test_pubacks_that_are_due_are_counted_too() -> None:
    world = World(inflight=2_000)
    client = world.client("s", receive_maximum=2_000)
    client.subscribe("t", qos=1)
    publisher = world.client("p")
    for _ in range(2_000):
        publisher.publish("t", qos=1)
    ids = [message.packet_id for message in client.messages()]
    turns = Turns(world)
    turns.give(client, *(Puback(packet_id=packet_id) for packet_id in ids))
    assert turns.work[0] >= 2_000 * 10


def test_messages_that_change_their_topic_yield() -> None:
    world = World()
    subscriber, client = world.client("s"), world.client("p", version=4)
    subscriber.subscribe("#")
    flood = b"".join(encode(Publish(topic=f"t/{number % 50}", payload=b""), 4) for number in range(20_000))
    turns = Turns(world)
    turns.give(client, flood)
    turns.finish(client)
    assert len(subscriber.messages()) == 20_000
    assert len(turns.work) >= 5
    assert max(turns.work) < WORK_PER_TURN + 2 * ONE_STEP


def test_eight_who_cause_work_share_one_turn() -> None:
    world = World()
    clients = [world.client(f"c{number}") for number in range(8)]
    turns = Turns(world)
    world.broker.work.busy = 8
    for client in clients:
        turns.give(client, encode(Pingreq(), 5) * 10_000)
        assert turns.work[-1] < WORK_PER_TURN / 8 + ONE_STEP
    world.broker.work.busy = 1
    turns.work.clear()
    turns.finish(*clients)
    assert max(turns.work) < WORK_PER_TURN + WORK_PER_TURN / 8 + ONE_STEP
    for client in clients:
        assert len(client.take()) == 10_000


def _is_unfinished(client: Client) -> bool:
    return client.connection.unfinished is not None


def test_long_packets_of_several_are_decoded_in_turns_of_their_own() -> None:
    world = World()
    clients = [world.client(f"c{number}") for number in range(8)]
    turns = Turns(world)
    for client in clients:
        turns.give(client, _subscribe([f"f/{number}" for number in range(5_000)]))
        assert client.connection.hold is Hold.TURN
    assert max(turns.work) == 0
    turns.finish(*clients)
    assert max(turns.work) < WORK_PER_TURN + LONGEST
    for client in clients:
        assert client.expect(Suback).reasons == (0,) * 5_000


def test_messages_with_very_many_properties_are_decoded_in_turns_of_their_own() -> None:
    world = World()
    reader = world.client("reader")
    reader.subscribe("t")
    clients = [world.client(f"c{number}") for number in range(8)]
    wordy = Publish(topic="t", payload=b"", properties=Properties(user_property=[("name", "value")] * 4_096))
    turns = Turns(world)
    for client in clients:
        turns.give(client, wordy)
        assert client.connection.hold is Hold.TURN
    assert max(turns.work) == 0
    turns.finish(*clients)
    assert max(turns.work) < WORK_PER_TURN + LONGEST
    for _ in clients:
        assert len(reader.expect(Publish).properties["user_property"]) == 4_096


def test_one_that_leaves_in_the_middle_leaves_nothing_to_do() -> None:
    world = World()
    client = world.client("long")
    turns = Turns(world)
    turns.give(client, _subscribe([f"f/{number}" for number in range(5_000)]))
    turns.turn()
    assert _is_unfinished(client)
    client.drop()
    assert not _is_unfinished(client)
    assert not world.broker.sessions
    assert not world.broker.routes.count


def test_one_that_breaks_the_rules_in_the_last_filter_has_changed_nothing() -> None:
    world = World()
    client = world.client("old", version=4)
    turns = Turns(world)
    turns.give(client, _subscribe([*(f"f/{number}" for number in range(5_000)), "a/#/b"]))
    turns.finish(client)
    client.expect_end()
    assert not world.broker.routes.count


class _Slow(Ruled):
    """Answers each question about a filter later."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.asked: list[str] = []

    @property
    def is_open(self) -> bool:
        return False

    def subscribe(self, login: Login, filter_: str) -> Verdict:
        self.asked.append(filter_)
        return Pending(len(self.asked))


def test_verdicts_that_come_later_are_waited_for_one_by_one() -> None:
    access = _Slow(Settings(rule=(Rule(filter="#", allow="all"),)))
    world = World(access=access)
    client = world.client()
    turns = Turns(world)
    turns.give(client, _subscribe(["a", "b", "c"]), Pingreq())
    for token, verdict in ((1, Allowed()), (2, Refused("not this one")), (3, Allowed())):
        assert client.connection.hold is Hold.VERDICT
        world.broker.decided(token, verdict, world.now)
    turns.finish(client)
    assert access.asked == ["a", "b", "c"]
    assert client.expect(Suback).reasons == (0, Reason.NOT_AUTHORIZED, 0)
    client.expect(Pingresp)
    assert not client.connection.verdicts


def test_rules_that_change_between_two_portions_count_for_the_rest() -> None:
    settings = Settings(mqtt=Mqtt(sys_interval_s=0), rule=(Rule(filter="#", allow="all"),))
    access = Ruled(settings)
    world = World(settings, access=access)
    client = world.client()
    turns = Turns(world)
    turns.give(client, _subscribe([f"f/{number}" for number in range(5_000)]))
    while not world.broker.routes.count:
        turns.turn()
    granted = world.broker.routes.count
    access.rules = type(access.rules)(Settings(rule=(Rule(filter="#", deny="all"),)))
    world.broker.judge_anew()
    turns.finish(client)
    reasons = client.expect(Suback).reasons
    assert reasons[:granted] == (0,) * granted
    assert set(reasons[granted:]) == {Reason.NOT_AUTHORIZED}
    assert world.broker.routes.count == granted < 5_000


def test_what_was_put_off_goes_on_in_its_order_and_once() -> None:
    timers = Timers()
    work = Work(timers)
    done: list[str] = []

    def costly(name: str, times: int) -> None:
        def action(now: float) -> None:
            done.append(name)
            work.did(WORK_PER_TURN // 2)
            if times > 1:
                costly(name, times - 1)

        work.later(action)

    for name in "abc":
        costly(name, 2)
    work.later(lambda _: done.append("cheap"))
    turns = []
    while timers.next() is not None:
        timers.fire(1.0)
        turns.append(len(done))
    assert done == ["a", "b", "c", "cheap", "a", "b", "c"]
    assert len(turns) >= 2


def test_a_fault_in_what_was_put_off_does_not_keep_the_others_from_going_on() -> None:
    timers = Timers()
    work = Work(timers)
    done: list[str] = []
    work.later(lambda _: done.append("first"))
    work.later(lambda _: 1 // 0)  # type: ignore[arg-type]  # it raises
    work.later(lambda _: done.append("last"))
    with pytest.raises(ZeroDivisionError):
        timers.fire(1.0)
    timers.fire(1.0)
    assert done == ["first", "last"]


def test_very_many_still_get_a_share() -> None:
    work = Work()
    work.busy = 10_000
    assert work.enough() == LEAST_SHARE
    work.did(LEAST_SHARE)
    assert not work.is_spent()
    work.did(1)
    assert work.is_spent()


def test_many_conditions_are_paid_for_by_those_who_ask_not_by_the_first_publisher() -> None:
    world = World()
    before = world.broker.work.done
    picky_client(world, 300)
    assert world.broker.work.done - before >= 300 * 61 * 25
    publisher = world.client("p")
    turns = Turns(world)
    turns.give(publisher, Publish(topic="w/first", payload=b'{"z": 7}'))
    turns.finish(publisher)
    assert sum(turns.work) < 300 * 61 * 4 + ONE_STEP


@pytest.mark.parametrize("qos", [0, 1])
def test_conditions_that_are_much_to_ask_are_asked_in_portions_and_in_order(qos: int) -> None:
    world = World()
    picky = picky_client(world, 600)
    publisher, other = world.client("p"), world.client("o")
    turns = Turns(world)
    messages = [Publish(topic="w/x", payload=b'{"z": %d}' % z, qos=qos, packet_id=qos * (z + 1)) for z in range(3)]
    turns.give(publisher, *messages, Pingreq())
    assert publisher.connection.hold is Hold.TURN
    turns.give(other, Pingreq())
    turns.turn()
    other.expect(Pingresp)
    assert turns.finish(publisher) > 5
    assert max(turns.work) < WORK_PER_TURN + 2 * ONE_STEP * 2
    assert [message.payload for message in picky.messages()] == [message.payload for message in messages]
    assert isinstance(publisher.take()[-1], Pingresp)
    assert publisher.connection.foreseen is None


def test_those_who_leave_while_conditions_are_asked_get_nothing_and_newcomers_neither() -> None:
    world = World()
    picky = picky_client(world, 600)
    staying = world.client("staying")
    staying.subscribe("w/+?z=1")
    publisher = world.client("p")
    turns = Turns(world)
    turns.give(publisher, Publish(topic="w/x", payload=b'{"z": 1}'))
    turns.turn()
    picky.drop()
    late = world.client("late")
    assert not late.inbox
    turns.finish(publisher)
    assert [message.payload for message in staying.messages()] == [b'{"z": 1}']
    assert not picky.inbox


def test_a_change_is_judged_when_the_message_is_delivered() -> None:
    world = World()
    picky_client(world, 600)
    watcher = world.client("watcher")
    watcher.subscribe("w/+?changed(z)")
    first, second = world.client("first"), world.client("second")
    turns = Turns(world)
    for publisher in (first, second):
        turns.give(publisher, Publish(topic="w/x", payload=b'{"z": -1}'))
    turns.finish(first, second)
    assert len(watcher.messages()) == 1


def test_a_long_connect_has_a_turn_of_its_own() -> None:
    world = World()
    wordy = Properties(user_property=[("k", "v" * 20)] * 1_000)
    clients = [world.open() for _ in range(3)]
    turns = Turns(world)
    for number, client in enumerate(clients):
        turns.give(client, Connect(version=5, client_id=f"c{number}", properties=wordy))
    assert max(turns.work) < ONE_STEP, "none was decoded yet"
    turns.finish(*clients)
    for client in clients:
        client.expect(Connack)
    assert max(turns.work) < WORK_PER_TURN + LONGEST
    assert sum(work > 20_000 for work in turns.work) > 1
