"""What clients make the broker keep is counted, about as it is, for whoever causes it, and bounded for each of them."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable

import msgspec
import pytest

from tests.kits import world as worlds
from tests.kits.world import World, configured
from tieline.conf.schema import Settings, UserLimit
from tieline.core import work
from tieline.core.account import Drop
from tieline.core.broker import Broker
from tieline.core.holdings import Kind
from tieline.core.ports import Allowed, Login, Verdict
from tieline.core.spill import PacketIds
from tieline.wire.encode import encode
from tieline.wire.packets import Connect, Publish, Subscribe, Subscription, Will
from tieline.wire.reason import Reason

#: What a process may grow by beyond what is counted.
MOST = 1.3


class Guarded:
    """Everybody may do everything, and is asked about each topic."""

    is_open = False

    def connect(self, login: Login) -> Verdict:
        return Allowed()

    def publish(self, login: Login, topic: str) -> Verdict:
        return Allowed()

    def subscribe(self, login: Login, filter_: str) -> Verdict:
        return Allowed()


def wills(world: World, number: int) -> None:
    will = Will(topic="w", payload=bytes(30_000), qos=1, properties={"will_delay_interval": 600})
    for each in range(100):
        world.client(f"{number}-{each}", will=will, session_expiry_interval=600).drop()


def properties(world: World, number: int) -> None:
    will = Will(topic="w", payload=b"", qos=1, properties={"user_property": [("", "")] * 4_000})
    for each in range(4):
        world.client(f"{number}-{each}", will=will, session_expiry_interval=600)


def sessions(world: World, number: int) -> None:
    for each in range(600):
        world.client(f"a-client-{number}-{each}", session_expiry_interval=600).drop()


def packet_ids(world: World, number: int) -> None:
    for each in range(60):
        client = world.client(f"ids-{number}-{each}", version=4, clean_start=False)
        client.send(*(Publish(topic="t", payload=b"", qos=2, packet_id=each) for each in range(1, 2_000)))
        client.drop()


def subscriptions(world: World, number: int) -> None:
    client = world.client(f"s-{number}", session_expiry_interval=600)
    for each in range(1_000):
        client.subscribe(f"plant/{number}/line/{each}/+")
    client.drop()


def conditions(world: World, number: int) -> None:
    client = world.client(f"c-{number}", session_expiry_interval=600)
    for each in range(300):
        terms = " and ".join(f"v{term} > {each + term}" for term in range(8))
        client.subscribe(f"plant/{number}/{each}", user_property=[("$where", terms)])
    client.drop()


def unfinished(world: World, number: int) -> None:
    start = encode(Connect(version=5, client_id="x", password=bytes(60_000)), 5)
    for _ in range(60):
        world.open().send(start[:50_000])


def rights(world: World, number: int) -> None:
    client = world.client(f"r-{number}")
    for each in range(100):
        client.send(Publish(topic=f"{number}/{each}/{'x' * 5_000}", payload=b""))


def aliases(world: World, number: int) -> None:
    for each in range(10):
        client = world.client(f"al-{number}-{each}")
        for alias in range(1, 60):
            client.put(f"{each}/{alias}/{'y' * 4_000}", topic_alias=alias)


def retained(world: World, number: int) -> None:
    client = world.client(f"p-{number}")
    for each in range(1_000):
        client.publish(f"kept/{number}/{each}", bytes(200), retain=True)
    client.drop()


def waiting(world: World, number: int) -> None:
    reader = world.durable(f"w-{number}")
    reader.subscribe("wait/#", qos=1)
    reader.drop()
    client = world.client(f"p-{number}")
    for each in range(2_000):
        client.publish("wait/here", b"%020d" % each, qos=1)
    client.drop()


def bursts(world: World, number: int) -> None:
    reader = world.client(f"b-{number}")
    reader.subscribe(f"burst/{number}/#")
    reader.stall()
    client = world.client(f"p-{number}")
    for each in range(2_000):
        client.publish(f"burst/{number}/{each % 7}", b"%020d" % each)
    client.drop()


KINDS: dict[Callable[[World, int], None], Kind] = {
    wills: Kind.WILLS,
    properties: Kind.WILLS,
    sessions: Kind.SESSIONS,
    packet_ids: Kind.SESSIONS,
    subscriptions: Kind.SUBSCRIPTIONS,
    conditions: Kind.SUBSCRIPTIONS,
    unfinished: Kind.UNPARSED,
    rights: Kind.RIGHTS,
    aliases: Kind.CONNECTIONS,
    retained: Kind.RETAINED,
    waiting: Kind.QUEUED,
    bursts: Kind.QUEUED,
}


@pytest.mark.parametrize(("fill", "kind"), KINDS.items(), ids=lambda each: getattr(each, "__name__", str(each)))
def test_what_is_counted_is_about_what_is_kept(
    fill: Callable[[World, int], None], kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worlds, "check", lambda _: None)  # it would take minutes, and memory of its own
    world = World(
        access=Guarded() if fill is rights else None, route_cache=0, queue_bytes="none", queue_messages="none"
    )
    fill(world, 0)  # what is made once is made now
    _forget_clients(world)
    gc.collect()
    before, kept_before = world.broker.holdings.total, world.broker.holdings.by_kind()[kind]
    tracemalloc.start()
    fill(world, 1)
    _forget_clients(world)
    gc.collect()
    grown = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    counted = world.broker.holdings.total - before
    assert world.broker.holdings.by_kind()[kind] - kept_before > counted / 2, "it is of this kind"
    assert grown <= MOST * counted, f"grew by {grown}, counted {counted}"


def _forget_clients(world: World) -> None:
    """What the clients of a test keep is not the broker's."""
    for client in world.clients:
        client.raw = b""
        client.inbox.clear()
    world.clients.clear()
    world.broker.account.events.clear()
    world.broker.account.last_drops.clear()


@pytest.mark.parametrize("length", [1, 40])
def test_a_packet_that_is_handled_in_portions_is_counted_until_it_is_done(
    length: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(work, "WORK_PER_TURN", 100)
    world = World()
    client = world.client("c")
    filters = [f"{number:x}".zfill(length)[-length:] for number in range(60_000 // (length + 3))]
    subscriptions = tuple(Subscription(filter=filter_, qos=0) for filter_ in filters)
    data = encode(Subscribe(packet_id=1, subscriptions=subscriptions), 5)
    broker, owner = world.broker, client.connection.owner
    gc.collect()
    tracemalloc.start()
    broker.receive(client.connection, data, world.now)
    while not client.connection.session.subscriptions:  # type: ignore[union-attr]  # it is connected
        grown = tracemalloc.get_traced_memory()[0]
        assert grown <= MOST * owner.kept[Kind.UNPARSED], f"grew by {grown}"
        broker.tick(world.now)
    tracemalloc.stop()
    world.settle()
    assert client.connection.unfinished is None and owner.kept[Kind.UNPARSED] == 0


# -- bounds


def limited(**limits: int) -> Settings:
    limit = msgspec.convert({"user": "u", **limits}, UserLimit)
    return msgspec.structs.replace(configured(), limit=(limit,))


def test_sessions_of_a_user_are_bounded() -> None:
    world = World(limited(sessions=2))
    for name in "ab":
        world.client(name, username="u", session_expiry_interval=60)
    world.client("c", username="u").expect_refusal(Reason.QUOTA_EXCEEDED)
    assert world.client("a", username="u", clean_start=False).connack.session_present, "one that it has goes on"
    assert not world.client("d", username="v").closed, "others are not concerned"
    assert not world.client("e").closed


def test_subscriptions_of_a_user_are_bounded() -> None:
    world = World(limited(subscriptions_total=3))
    first, second = world.client("a", username="u"), world.client("b", username="u")
    assert first.subscribe("1", "2").reasons == (0, 0)
    assert second.subscribe("3", "4").reasons == (0, Reason.QUOTA_EXCEEDED)
    assert world.client("c", username="v").subscribe("4").reasons == (0,)
    first.unsubscribe("1")
    assert second.subscribe("4").reasons == (0,)


def test_retained_messages_of_a_user_are_bounded() -> None:
    world = World(limited(retained_messages=2))
    publisher, other = world.client("a", username="u"), world.client("b", username="v")
    for topic in ("1", "2", "3"):
        publisher.publish(topic, b"x", retain=True)
    assert [world.broker.retained.get(topic) is not None for topic in ("1", "2", "3")] == [True, True, False]
    assert world.broker.account.drops[Drop.RETAINED_FULL] == 1
    publisher.publish("1", b"y", retain=True)
    assert world.broker.retained.get("1") is not None, "one takes the place of another"
    other.publish("3", b"x", retain=True)
    assert world.broker.retained.get("3") is not None
    other.publish("1", b"z", retain=True)
    publisher.publish("4", b"x", retain=True)
    assert world.broker.retained.get("4") is not None, "what somebody else has replaced is no longer its own"


def test_retained_bytes_of_a_user_are_bounded() -> None:
    world = World(limited(retained_bytes=10_000))
    publisher = world.client("a", username="u")
    publisher.publish("1", bytes(9_000), retain=True)
    publisher.publish("2", bytes(9_000), retain=True)
    assert world.broker.retained.get("2") is None


def test_bytes_of_a_user_bound_its_wills_and_subscriptions() -> None:
    world = World(limited(bytes=120_000))
    will = Will(topic="w", payload=bytes(40_000))
    world.client("a", username="u", will=will)
    world.client("b", username="u", will=will)
    world.client("c", username="u", will=will).expect_refusal(Reason.QUOTA_EXCEEDED)
    world.client("d", username="v", will=will)
    client = world.client("e", username="u")
    reasons = [client.subscribe(f"f/{number}").reasons[0] for number in range(20)]
    assert reasons[0] == 0 and reasons[-1] == Reason.QUOTA_EXCEEDED


def test_bytes_of_a_user_bound_what_waits_for_its_sessions() -> None:
    world = World(limited(bytes=2_000_000), queue_bytes="none")
    for name in "abcd":
        reader = world.client(name, username="u")
        reader.subscribe("t")
        reader.stall()
    honest = world.client("h", username="v")
    honest.subscribe("t")
    publisher = world.client("p")
    for _ in range(100):
        publisher.publish("t", bytes(50_000))
    owner = world.broker.holdings.owner("u")
    assert owner.used <= 2_000_000
    assert len(honest.messages()) == 100
    assert world.broker.account.drops[Drop.QUEUE_FULL] + world.broker.account.drops[Drop.MEMORY_FULL] > 300 - 60
    assert all(world.broker.sessions[name].queue.messages for name in "abcd"), "each keeps what keeps up"


def test_all_memory_is_bounded() -> None:
    world = World(memory_bytes=200_000)
    will = Will(topic="w", payload=bytes(60_000))
    answers = [world.client(str(number), will=will).connack.reason for number in range(5)]
    assert answers.count(Reason.QUOTA_EXCEEDED) == 3
    assert world.broker.holdings.bytes <= 200_000 + 5 * 6_000


def test_unfinished_packets_of_strangers_are_bounded_and_the_longest_goes() -> None:
    world = World(unknown_bytes=100_000)
    start = encode(Connect(version=5, client_id="x", password=bytes(60_000)), 5)
    slow = world.open().send(start[:1_000])
    greedy = [world.open().send(start[:40_000]) for _ in range(3)]
    assert [client.closed for client in greedy].count(True) == 1
    assert world.broker.account.closed["too_much_unknown"] == 1
    assert not slow.closed
    slow.send(start[1_000:])
    slow.note_connack()
    assert slow.connack.reason is Reason.SUCCESS
    assert world.broker.holdings.strangers.kept[Kind.UNPARSED] <= 100_000


def test_a_long_packet_that_does_not_end_is_not_kept_for_a_user_without_room() -> None:
    world = World(limited(bytes=200_000))
    client = world.client("a", username="u")
    client.send(b"\x30\xff\xff\x0f" + bytes(100_000))
    assert not client.closed
    client.send(bytes(100_000))
    client.expect_end(Reason.QUOTA_EXCEEDED)
    assert not world.broker.holdings.owner("u").kept.get(Kind.UNPARSED, 0)


def test_nothing_is_left_of_those_who_are_gone() -> None:
    world = World()
    client = world.client("a", username="u", will=Will(topic="w", payload=b"x"))
    client.subscribe("t", "$where/a%20%3E%201/t")
    client.put("t", topic_alias=3)
    assert any(user == "u" for user, _ in world.broker.holdings.owners())
    client.drop()
    assert not any(user == "u" for user, _ in world.broker.holdings.owners())


def test_packet_ids_are_a_set() -> None:
    ids, model = PacketIds(), set[int]()
    for step in range(3_000):
        packet_id = step * 7_919 % 65_535 + 1
        ids.add(packet_id)
        model.add(packet_id)
        if step % 3 == 0:
            ids.discard(packet_id // 2 + 1)
            model.discard(packet_id // 2 + 1)
    assert sorted(ids) == sorted(model)
    assert len(ids) == len(model)
    assert ids.bytes == PacketIds.BYTES
    for packet_id in sorted(model):
        assert packet_id in ids
        ids.discard(packet_id)
        assert packet_id not in ids
    assert not ids.bytes


def test_system_topics_tell_what_is_kept() -> None:
    broker = Broker()
    values = broker.system.values(0.0)
    for kind in Kind:
        assert values[f"$SYS/broker/tieline/memory/{kind}"] == "0"
    assert values["$SYS/broker/tieline/memory/total"] == "0"
