"""A message for very many who are away is queued in portions, and nobody can tell."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, Final

import pytest

from tests.core.crashing import Scene
from tests.kits import world as worlds
from tests.kits.world import Client, World, payloads
from tieline.core import work
from tieline.core.account import Drop
from tieline.core.routing import route
from tieline.native import is_compiled
from tieline.wire.encode import encode
from tieline.wire.packets import Puback, Publish, Pubrec
from tieline.wire.reason import Reason

pytestmark = pytest.mark.skipif(is_compiled(), reason="compiled modules keep their own bounds")

SLEEPERS: Final = 7
SEEDS: Final = 60


class Slow(World):
    """What is due is done when the test says so, one turn at a time; what is to be written is written at once."""

    is_slow = False

    def settle(self) -> None:
        """Write, and have no turn."""
        if not self.is_slow:
            super().settle()
            return
        while self.broker.dirty:
            for connection in self.broker.take_dirty():
                connection.is_dirty = False
                connection.link.collect()  # type: ignore[union-attr]  # a client of this world
        self.broker.seal()

    def turn(self) -> None:
        """One turn of what was put off."""
        self.broker.tick(self.now)
        self.settle()

    def let_through(self) -> None:
        """Turns until nothing is put off."""
        while self.broker.work.is_behind:
            self.turn()


@pytest.fixture
def portions(monkeypatch: pytest.MonkeyPatch) -> None:
    """More than two that are away are very many, and one of them is a portion."""
    monkeypatch.setattr(route, "MANY_AWAY", 2)
    monkeypatch.setattr(work, "WORK_PER_TURN", 0)


def _slow(sleepers: int = SLEEPERS, qos: int = 1, **options: Any) -> Slow:
    world = Slow(**options)
    for number in range(sleepers):
        client = world.durable(f"s{number}")
        client.subscribe("all", qos=qos)
        client.drop()
    return world


def _waiting(world: World, number: int) -> list[bytes]:
    entries = world.broker.sessions[f"s{number}"].queue.entries
    return [item.payload for item, _ in entries]  # type: ignore[union-attr]  # no runs of QoS 0


def _publish(client: Client, payload: bytes, qos: int = 1, topic: str = "all") -> int:
    packet_id = client.free_id()
    client.send(Publish(topic=topic, payload=payload, qos=qos, packet_id=packet_id if qos else 0))
    return packet_id


# -- beside a broker that does all of it in one go


def _play(seed: int) -> dict[str, Any]:
    """A random story; the queue of every session, what every client got, and what was dropped."""
    random = Random(seed)
    world = _slow(qos=random.choice((1, 2)), full=random.choice(("refuse", "oldest")))
    loud, quiet = world.client("loud"), world.client("quiet")
    some = random.sample(range(SLEEPERS), 2)
    for number in some:
        client = world.durable(f"s{number}")
        client.subscribe("few", qos=1)
        client.drop()
    world.is_slow = True
    awake: dict[int, Client] = {}
    received: dict[str, list[bytes]] = {f"s{number}": [] for number in range(SLEEPERS)}

    def leave(number: int) -> None:
        client = awake.pop(number)
        client.drop()
        received[f"s{number}"] += [packet.payload for packet in client.take() if isinstance(packet, Publish)]

    ended: set[int] = set()
    for step in range(30):
        what, number = random.choice("LLLLFFFBBDE...."), random.randrange(SLEEPERS)
        if what == "L":
            # the next one for as many waits: then the order in which publishers are heard is another one
            world.let_through()
            _publish(loud, b"L%d" % step, random.choice((0, 1, 2)))
        elif what == "F":
            _publish(quiet, b"F%d" % step, topic="few")
        elif what == "." or number in ended:
            world.turn()
        elif what == "B" and number not in awake:
            client = world.durable(f"s{number}")
            received[f"s{number}"] += [packet.payload for packet in client.take() if isinstance(packet, Publish)]
            awake[number] = client
        elif what == "D" and number in awake:
            leave(number)
        elif what == "E" and number not in awake:
            world.client(f"s{number}").drop()
            ended.add(number)
    world.let_through()
    world.is_slow = False
    world.settle()
    for number in list(awake):
        leave(number)
    assert not world.broker.delivery.late.rest
    queues = {name: list(map(_entry, session.queue.entries)) for name, session in world.broker.sessions.items()}
    answers = [(type(packet), packet.packet_id) for packet in loud.take() if isinstance(packet, Puback | Pubrec)]
    return {"queues": queues, "received": received, "drops": dict(world.broker.account.drops), "answers": answers}


def _entry(entry: Any) -> tuple[bytes, int, int]:
    item, grant = entry
    return item.payload, item.qos, grant.qos


@pytest.mark.parametrize("seed", range(SEEDS))
def test_every_queue_is_as_if_all_of_it_had_been_done_in_one_go(
    seed: int, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worlds, "check", lambda _: None)  # it asks each session for its room
    at_once = _play(seed)
    request.getfixturevalue("portions")
    assert _play(seed) == at_once


# -- the publisher


@pytest.mark.usefixtures("portions")
@pytest.mark.parametrize(("qos", "answer"), [(1, Puback), (2, Pubrec)])
def test_a_publisher_is_answered_when_the_message_is_in_all_queues(qos: int, answer: type) -> None:
    world = _slow()
    loud = world.client("loud")
    world.is_slow = True
    packet_id = _publish(loud, b"x", qos)
    turns = 0
    while not loud.inbox:
        assert sum(_waiting(world, number) == [b"x"] for number in range(SLEEPERS)) == turns
        world.turn()
        turns += 1
    assert turns >= SLEEPERS
    assert all(_waiting(world, number) == [b"x"] for number in range(SLEEPERS))
    (told,) = loud.take()
    assert isinstance(told, Puback | Pubrec)
    assert type(told) is answer
    assert told.packet_id == packet_id
    assert told.reason is Reason.SUCCESS


@pytest.mark.usefixtures("portions")
def test_what_a_publisher_sends_behind_it_is_handled_afterwards_and_in_order() -> None:
    world = _slow()
    loud = world.client("loud")
    world.is_slow = True
    for number in range(5):
        _publish(loud, b"%d" % number, qos=number % 2)
    world.let_through()
    assert all(_waiting(world, number) == [b"1", b"3"] for number in range(SLEEPERS))
    assert world.broker.account.drops[Drop.OFFLINE] == 3 * SLEEPERS


@pytest.mark.usefixtures("portions")
def test_all_get_it_though_its_publisher_has_gone() -> None:
    world = _slow()
    loud = world.client("loud")
    world.is_slow = True
    _publish(loud, b"x")
    loud.drop()
    world.let_through()
    assert all(_waiting(world, number) == [b"x"] for number in range(SLEEPERS))


@pytest.mark.usefixtures("portions")
def test_others_are_served_while_it_is_queued() -> None:
    world = _slow()
    loud, reader, writer = world.client("loud"), world.client("reader"), world.client("writer")
    reader.subscribe("other")
    world.is_slow = True
    _publish(loud, b"x")
    _publish(writer, b"y", 0, "other")
    world.turn()
    assert payloads(reader.messages()) == [b"y"]
    assert world.broker.delivery.late.rest


@pytest.mark.usefixtures("portions")
def test_a_broker_that_ends_queues_the_rest_before() -> None:
    world = _slow()
    loud = world.client("loud")
    world.is_slow = True
    _publish(loud, b"x")
    world.broker.stop(world.now)
    assert all(_waiting(world, number) == [b"x"] for number in range(SLEEPERS))


@pytest.mark.usefixtures("portions")
def test_connected_receivers_have_it_at_once_and_many_of_those_are_no_reason_to_wait() -> None:
    world = _slow()
    loud = world.client("loud")
    for number in range(SLEEPERS - 1):
        world.durable(f"s{number}")
    world.is_slow = True
    # the route was made while all were away
    _publish(loud, b"x")
    assert [payloads(client.messages()) for client in world.clients[-SLEEPERS + 1 :]] == [[b"x"]] * (SLEEPERS - 1)
    world.let_through()
    assert not world.broker.routes.known[b"all"].is_for_many


@pytest.mark.usefixtures("portions")
def test_where_all_have_come_back_the_publisher_is_answered_at_once() -> None:
    world = _slow()
    loud = world.client("loud")
    loud.publish("all", b"before", qos=1)
    for number in range(SLEEPERS):
        world.durable(f"s{number}")
    world.is_slow = True
    # the route was made while all were away
    _publish(loud, b"x")
    loud.expect(Puback)


# -- where a store keeps it


class SlowScene(Scene):
    """A scene in which turns are had one by one."""

    def begin(self) -> Client:
        """All sleep, and somebody is about to speak."""
        for number in range(SLEEPERS):
            self.subscribe(self.kept(f"s{number}"), "all", qos=1).drop()
            self.settle()
        loud = self.clean("loud")
        self.settle()
        return loud

    def turns(self, count: int, then: Callable[[], None]) -> None:
        """So many turns, and something after each."""
        for _ in range(count):
            self.world.broker.tick(self.world.now)
            self.world.broker.seal()
            then()


def _is_answered(scene: Scene, loud: Client) -> bool:
    for connection in scene.world.broker.take_dirty():
        connection.is_dirty = False
        connection.link.collect()  # type: ignore[union-attr]  # a client of this world
    return any(isinstance(packet, Puback) for packet in loud.inbox)


@pytest.mark.usefixtures("portions")
@pytest.mark.parametrize("turns", range(SLEEPERS + 4))
def test_an_acknowledged_message_is_in_all_queues_after_a_crash(turns: int) -> None:
    scene = SlowScene()
    loud = scene.begin()
    broker = scene.world.broker
    data = encode(Publish(topic="all", payload=b"x", qos=1, packet_id=1), 5)
    broker.receive(loud.connection, data, scene.world.now)
    broker.seal()
    scene.turns(turns, lambda: broker.committed(scene.persist()))
    is_answered = _is_answered(scene, loud)
    assert is_answered or turns < SLEEPERS + 3
    scene.restart()
    queued = [_waiting(scene.world, number) for number in range(SLEEPERS)]
    assert not is_answered or queued == [[b"x"]] * SLEEPERS


@pytest.mark.usefixtures("portions")
def test_the_others_get_what_the_first_has_acknowledged_already() -> None:
    """The store forgets a message that nobody waits for; those who are behind must not have that one."""
    scene = SlowScene()
    loud = scene.begin()
    reader = scene.subscribe(scene.kept("reader"), "all", qos=1)
    broker, now = scene.world.broker, scene.world.now
    data = encode(Publish(topic="all", payload=b"x", qos=1, packet_id=1), 5)
    broker.receive(loud.connection, data, now)
    broker.seal()
    broker.committed(scene.persist())
    assert not _is_answered(scene, loud)
    message = reader.find(Publish)
    broker.receive(reader.connection, encode(Puback(packet_id=message.packet_id), 5), now)
    broker.seal()
    broker.committed(scene.persist())
    assert len(broker.delivery.late.rest) == SLEEPERS
    scene.turns(SLEEPERS, lambda: broker.committed(scene.persist()))
    scene.restart()
    assert all(_waiting(scene.world, number) == [b"x"] for number in range(SLEEPERS))
    assert not scene.world.broker.sessions["reader"].queue.messages
