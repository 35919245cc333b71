"""What a broker is asked to carry: counted while somebody wants to know, and at no cost when nobody does."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.durable.test_capture import Scene
from tests.kits.world import World
from tieline.core.figures import demand
from tieline.core.figures.demand import DemandError, DemandRow, Portion, Subscribed
from tieline.wire.encode import encode
from tieline.wire.packets import Publish, Will


def counted(world: World, number: int) -> tuple[list[DemandRow], list[Subscribed], list[Portion]]:
    portions = [world.broker.demand.take(number, world.now)]
    while not portions[-1].is_last:
        portions.append(world.broker.demand.take(number, world.now))
    flows = [flow for portion in portions for flow in portion.flows]
    return flows, [one for portion in portions for one in portion.subscriptions], portions


@given(
    sent=st.lists(
        st.tuples(st.integers(0, 2), st.sampled_from(["a/b", "a/c", "d"]), st.integers(0, 2), st.integers(1, 4)),
        max_size=25,
    ),
    wanted=st.sampled_from(["a/b", "a/#", "none"]),
    split=st.booleans(),
)
def test_every_accepted_message_is_counted_once(
    sent: list[tuple[int, str, int, int]], wanted: str, split: bool
) -> None:
    """Whether anybody here wants it or not, in runs or one by one, in pieces or whole."""
    world = World(split=split)
    world.client("reader", version=4).subscribe(wanted)
    clients = [world.client(f"p{number}", version=4) for number in range(3)]
    clients[0].publish("a/b", b"before")
    number = world.broker.demand.begin(60, world.now)
    messages: Counter[tuple[str, str]] = Counter()
    sizes: Counter[tuple[str, str]] = Counter()
    for who, topic, qos, run in sent:
        payload = bytes(who + 1)
        if qos:
            for _ in range(run):
                clients[who].publish(topic, payload, qos)
        else:
            clients[who].send(*[Publish(topic=topic, payload=payload)] * run)
        key = (f"p{who}", topic)
        messages[key] += run
        sizes[key] += run * len(encode(Publish(topic=topic, payload=payload, qos=qos, packet_id=1 if qos else 0), 4))
    world.advance(2.5)
    flows, _, (portion,) = counted(world, number)
    assert portion.seconds == 2.5 and portion.unnamed == 0
    assert {(flow.publisher, flow.topic): flow.messages for flow in flows} == messages
    assert {(flow.publisher, flow.topic): flow.bytes for flow in flows} == sizes
    clients[0].publish("a/b", b"after")


def test_levels_wills_and_properties_count() -> None:
    world = World()
    number = world.broker.demand.begin(60, world.now)
    client = world.client("p", will=Will(topic="last", payload=b"gone"))
    client.publish("a", b"x")
    client.publish("a", b"x", user_property=[("priority", "3")])
    client.publish("a", b"x")
    client.drop()
    flows, _, _ = counted(world, number)
    assert [(flow.topic, flow.level, flow.messages) for flow in flows] == [("a", 3, 3), ("last", 1, 1)]
    assert flows[0].bytes > 3 * len(encode(Publish(topic="a", payload=b"x"), 4)) + len("priority3")


def test_a_refused_message_is_not_demand() -> None:
    world = World()
    number = world.broker.demand.begin(60, world.now)
    world.client("p").publish("$SYS/broker/mine", b"x", qos=1)
    assert counted(world, number)[0] == []


def test_subscriptions_are_taken_apart() -> None:
    world = World()
    world.client("plain").subscribe("a/+", "b")
    world.client("asks").subscribe("$where/v%20%3E%205/c/#", "$share/g/$where/v%20%3E%205/d")
    away = world.durable("away")
    away.subscribe("$share/g/e")
    away.drop()
    _, subscriptions, _ = counted(world, world.broker.demand.begin(60, world.now))
    assert subscriptions == [
        Subscribed("plain", "a/+", "", is_conditional=False),
        Subscribed("plain", "b", "", is_conditional=False),
        Subscribed("asks", "c/#", "", is_conditional=True),
        Subscribed("asks", "d", "g", is_conditional=True),
        Subscribed("away", "e", "g", is_conditional=False),
    ]


@pytest.mark.parametrize("topics", [0, 1, 4, 5, 6])
def test_large_answers_come_in_portions(topics: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demand, "PORTION", 5)
    world = World()
    client = world.client("p")
    client.subscribe("a", "b", "c")
    number = world.broker.demand.begin(60, world.now)
    for topic in range(topics):
        client.publish(f"t/{topic}")
    flows, subscriptions, portions = counted(world, number)
    assert [flow.topic for flow in flows] == [f"t/{topic}" for topic in range(topics)]
    assert [one.filter for one in subscriptions] == ["a", "b", "c"]
    assert [len(one.flows) + len(one.subscriptions) for one in portions[:-1]] == [5] * (len(portions) - 1)


def test_a_portion_can_be_asked_for_again_by_its_number() -> None:
    world = World()
    client = world.client("p")
    client.subscribe("a", "b", "c")
    demand = world.broker.demand
    number = demand.begin(60, world.now)
    first = demand.take(number, world.now, most=2, portion=0)
    assert len(first.subscriptions) == 2
    assert demand.take(number, world.now, most=2, portion=0) is first
    last = demand.take(number, world.now, most=2, portion=1)
    assert last.is_last
    assert demand.take(number, world.now, most=2, portion=1) is last
    with pytest.raises(DemandError, match="portion 2 of count 1 was not expected"):
        demand.take(number, world.now, most=2, portion=2)
    with pytest.raises(DemandError, match="portion 0 of count 1 was not expected"):
        demand.take(number, world.now, most=2, portion=0)
    world.advance(11)
    with pytest.raises(DemandError, match="there is no count 1"):
        demand.take(number, world.now, most=2, portion=1)


def test_what_changes_between_portions_breaks_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demand, "PORTION", 2)
    world = World()
    first, second = world.client("first"), world.client("second")
    first.subscribe("a", "b", "c")
    second.subscribe("d")
    number = world.broker.demand.begin(60, world.now)
    assert len(world.broker.demand.take(number, world.now).subscriptions) == 2
    first.unsubscribe("a", "b", "c")
    second.subscribe("e")
    first.drop()
    assert [one.filter for one in counted(world, number)[1]] == ["c", "d", "e"]


def test_topics_beyond_the_limit_are_counted_without_their_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demand, "MOST_FLOWS", 2)
    world = World()
    client = world.client("p")
    number = world.broker.demand.begin(60, world.now)
    for topic in ("a", "b", "c", "c", "a"):
        client.publish(topic)
    flows, _, (portion,) = counted(world, number)
    assert [(flow.topic, flow.messages) for flow in flows] == [("a", 2), ("b", 1)]
    assert portion.unnamed == 2


def test_long_names_take_no_more_memory_and_no_longer_answers_than_short_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demand, "MOST_NAMES", 10_000)
    monkeypatch.setattr(demand, "PORTION_NAMES", 3_000)
    world = World()
    client = world.client("p")
    client.subscribe("f/" + "x" * 60_000, *(f"{number}/" + "y" * 1_000 for number in range(4)))
    number = world.broker.demand.begin(60, world.now)
    client.publish("t/" + "x" * 60_000)
    for topic in range(20):
        client.publish(f"{topic}/" + "z" * 1_000)
    flows, subscriptions, portions = counted(world, number)
    assert len(flows) == 9 and portions[0].unnamed == 12
    assert len(subscriptions) == 4
    assert max(len(each.flows) + len(each.subscriptions) for each in portions) == 3


def test_counts_do_not_disturb_each_other() -> None:
    world = World()
    client = world.client("p")
    early = world.broker.demand.begin(60, world.now)
    client.publish("a")
    world.advance(1)
    late = world.broker.demand.begin(60, world.now)
    client.publish("a")
    assert [flow.messages for flow in counted(world, early)[0]] == [2]
    client.publish("a")
    assert [flow.messages for flow in counted(world, late)[0]] == [2]


def test_nobody_pays_when_nobody_counts() -> None:
    """The shortcut for a single message is open again, however a count ended."""
    world = World()
    client = world.client("p", version=4)
    world.client("s", version=4).subscribe("a")
    client.publish("a")
    packet = encode(Publish(topic="a", payload=b"four"), 4)
    broker = world.broker

    def is_short() -> bool:
        is_passed = broker.pass_on(client.connection, packet, world.now) is not None
        assert is_passed != broker.arrivals.is_watched
        return is_passed

    assert is_short()
    taken = broker.demand.begin(60, world.now)
    assert not is_short()
    counted(world, taken)
    assert is_short()
    broker.demand.begin(60, world.now)
    assert not is_short()
    world.advance(61)
    assert is_short() and not len(broker.timers)


def test_a_count_ends_with_the_first_portion(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demand, "PORTION", 1)
    world = World()
    client = world.client("p")
    client.subscribe("x", "y", "z")
    number = world.broker.demand.begin(60, world.now)
    world.advance(2)
    world.broker.demand.take(number, world.now)
    assert not world.broker.arrivals.is_watched
    world.advance(3)
    assert world.broker.demand.take(number, world.now).seconds == 2
    # every portion that is taken gives the next one its time
    world.advance(59)
    assert world.broker.demand.take(number, world.now).is_last
    with pytest.raises(DemandError, match="there is no count 1"):
        world.broker.demand.take(number, world.now)


def test_what_is_left_of_a_count_is_forgotten_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demand, "PORTION", 1)
    world = World()
    world.client("p").subscribe("x", "y")
    number = world.broker.demand.begin(60, world.now)
    assert not world.broker.demand.take(number, world.now).is_last
    world.advance(60)
    with pytest.raises(DemandError, match="there is no count 1"):
        world.broker.demand.take(number, world.now)


def test_counts_are_few_and_make_room_when_they_are_done() -> None:
    world = World()
    numbers = [world.broker.demand.begin(60, world.now) for _ in range(demand.MOST_COUNTS)]
    with pytest.raises(DemandError, match="are under way already"):
        world.broker.demand.begin(60, world.now)
    counted(world, numbers[1])
    with pytest.raises(DemandError, match=f"there is no count {numbers[1]}"):
        world.broker.demand.take(numbers[1], world.now)
    assert world.broker.demand.begin(60, world.now) not in numbers


def test_the_log_misses_nothing_meanwhile() -> None:
    scene = Scene(capture=("a/#",), events="on")
    client = scene.world.client("p")
    number = scene.world.broker.demand.begin(60, scene.world.now)
    client.send(*[Publish(topic="a/b", payload=b"run")] * 3)
    client.publish("a/b", b"one", qos=1)
    client.publish("b", b"other")
    counted(scene.world, number)
    assert len(scene.world.broker.arrivals.observers) == 1
    client.publish("a/b", b"later")
    assert [record.payload for record in scene.records] == [b"run", b"run", b"run", b"one", b"later"]


def test_the_log_of_the_broker_says_who_counts() -> None:
    world = World()
    world.broker.demand.begin(60, world.now, by="planner")
    event = world.broker.account.events[-1]
    assert (event.kind, event.client, event.text) == ("demand", "planner", "publishers are counted for 60 s at most")
