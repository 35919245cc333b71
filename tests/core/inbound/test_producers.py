"""A numbered message is accepted once, whoever sends it again, and whatever died meanwhile."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.crashing import Scene
from tests.kits.world import Client, World, payloads
from tieline.core.account import Drop
from tieline.core.inbound.producers import MOST_STOPPED, RULE, MalformedNumber, Numbered, read_number
from tieline.wire.packets import Puback, Pubcomp, Publish, Pubrec, Pubrel
from tieline.wire.reason import Reason


def send(client: Client, said: str, payload: bytes = b"x", qos: int = 1, **fields: Any) -> Reason:
    """Publish a numbered message, with the whole exchange."""
    return client.publish("t", payload, qos, user_property=[("$once", said)], **fields)


# --- what it says -----------------------------------------------------------------------------------------------------


@given(st.text(min_size=1, max_size=64).filter(lambda name: "/" not in name), st.integers(0, 2**63 - 1))
def test_a_producer_and_a_number(producer: str, number: int) -> None:
    once = read_number({"user_property": [("a", "b"), ("$once", f"{producer}/{number}")]}, None)
    assert once == Numbered(producer, number)


@pytest.mark.parametrize(
    "said",
    ["", "p", "p/", "/1", "p/-1", "p/1.5", "p/ 1", "p/1/2", "p/٣", f"p/{2**63}", f"p/{10**30}", "p" * 65 + "/1"],
)
@pytest.mark.parametrize("qos", [1, 2])
def test_anything_else_is_refused_with_the_rule(said: str, qos: int) -> None:
    with pytest.raises(MalformedNumber):
        read_number({"user_property": [("$once", said)]}, None)
    world = World()
    world.client("s").subscribe("t")
    publisher = world.client("p")
    publisher.put("t", qos=qos, packet_id=7, user_property=[("$once", said)])
    (answer,) = publisher.take()
    assert isinstance(answer, Puback | Pubrec)
    assert answer.reason is Reason.IMPLEMENTATION_SPECIFIC_ERROR
    assert answer.properties["reason_string"] == RULE
    assert world.broker.account.drops == {Drop.MALFORMED_ONCE: 1}


def test_it_is_said_once() -> None:
    with pytest.raises(MalformedNumber):
        read_number({"user_property": [("$once", "p/1"), ("$once", "p/2")]}, None)


def test_users_do_not_share_producers() -> None:
    said = {"user_property": [("$once", "p/1")]}
    names = {read_number(said, user).producer for user in (None, "", "a", "a/b")}  # type: ignore[arg-type, union-attr]  # as a client says it
    assert len(names) == 4


# --- what it does -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("qos", [1, 2])
def test_a_number_goes_through_once(qos: int) -> None:
    world = World()
    subscriber = world.client("s")
    subscriber.subscribe("t", qos=1)
    for client in ("p", "another"):
        for number in (0, 1, 5, 5, 3):
            assert send(world.client(client), f"job/{number}", b"%d" % number, qos, retain=True) is Reason.SUCCESS
    assert payloads(subscriber.messages()) == [b"0", b"1", b"5"]
    retained = world.broker.retained.get("t")
    assert retained is not None and retained.payload == b"5"
    assert world.broker.account.drops == {Drop.REPEATED: 7}
    assert not world.broker.sessions["another"].inbound


def test_subscribers_see_it() -> None:
    """[MQTT-3.3.2-17]: user properties are sent on unaltered."""
    world = World()
    subscriber = world.client("s")
    subscriber.subscribe("t")
    send(world.client("p"), "job/1")
    assert subscriber.expect(Publish).properties["user_property"] == [("$once", "job/1")]


def test_qos_0_has_no_answer_and_is_not_remembered() -> None:
    world = World()
    subscriber = world.client("s")
    subscriber.subscribe("t")
    for _ in range(2):
        send(world.client("p"), "job/1", qos=0)
    assert len(subscriber.messages()) == 2
    assert not len(world.broker.producers)


def test_a_message_that_was_refused_was_not_accepted() -> None:
    world = World(queue_messages=1)
    subscriber = world.client("s")
    subscriber.subscribe("t", qos=1)
    subscriber.stall()
    publisher = world.client("p")
    assert send(publisher, "job/1", b"1") is Reason.SUCCESS
    assert send(publisher, "job/2", b"2") is Reason.QUOTA_EXCEEDED
    subscriber.resume()
    assert send(publisher, "job/3", b"3") is Reason.QUOTA_EXCEEDED, "2 comes first, or it could not come any more"
    assert send(publisher, "other/3", b"o") is Reason.SUCCESS
    assert send(publisher, "job/1", b"1") is Reason.SUCCESS
    assert send(publisher, "job/2", b"2") is Reason.SUCCESS
    assert send(publisher, "job/3", b"3") is Reason.SUCCESS
    assert payloads(subscriber.messages()) == [b"1", b"o", b"2", b"3"]
    assert world.broker.account.drops == {Drop.REFUSED: 1, Drop.OUT_OF_TURN: 1, Drop.REPEATED: 1}


def test_a_new_connection_begins_where_it_likes() -> None:
    world = World(queue_messages=1)
    subscriber = world.client("s")
    subscriber.subscribe("t", qos=1)
    subscriber.stall()
    send(world.client("p"), "job/1")
    assert send(world.client("p"), "job/2") is Reason.QUOTA_EXCEEDED
    subscriber.resume()
    assert send(world.client("p"), "job/3") is Reason.SUCCESS


def test_a_connection_with_too_many_refused_producers() -> None:
    world = World(queue_messages=1)
    subscriber = world.client("s")
    subscriber.subscribe("t", qos=1)
    subscriber.stall()
    publisher = world.client("p")
    send(publisher, "first/1")
    for number in range(MOST_STOPPED + 10):
        assert send(publisher, f"job-{number}/1") is Reason.QUOTA_EXCEEDED
    assert publisher.connection.stopped is not None and len(publisher.connection.stopped) == MOST_STOPPED
    subscriber.resume()
    assert send(publisher, "new/1") is Reason.QUOTA_EXCEEDED
    assert send(publisher, "job-0/1") is Reason.SUCCESS
    assert send(publisher, "new/1") is Reason.SUCCESS


def test_so_many_producers_are_remembered() -> None:
    scene = Scene(producers=2)
    scene.world.client("s").subscribe("t", qos=0)
    publisher = scene.clean("p")

    def put(said: str) -> None:
        publisher.put("t", qos=1, user_property=[("$once", said)])
        scene.settle()

    for said in ("a/1", "b/1", "a/2", "c/1"):
        put(said)
    producers = scene.world.broker.producers
    assert (len(producers), producers.forgotten) == (2, 1)
    assert [producers.has(Numbered(name, 1)) for name in "abc"] == [True, False, True], "b was unused longest"
    scene.restart()
    producers = scene.world.broker.producers
    assert [producers.has(Numbered(name, 1)) for name in "abc"] == [True, False, True]
    producers.limit(1)
    assert [producers.has(Numbered(name, 1)) for name in "abc"] == [False, False, True]


def test_zero_means_zero() -> None:
    world = World(producers=0)
    subscriber = world.client("s")
    subscriber.subscribe("t")
    for _ in range(2):
        send(world.client("p"), "a/1")
    assert len(subscriber.messages()) == 2
    assert world.broker.producers.forgotten == 2


def test_the_answer_waits_for_the_number() -> None:
    scene = Scene()
    scene.world.client("s").subscribe("t", qos=0)
    publisher = scene.clean("p")
    for packet_id in (1, 2):
        publisher.put("t", qos=1, packet_id=packet_id, user_property=[("$once", "job/1")])
        publisher.expect_nothing()
    scene.commit()
    assert [packet.reason for packet in publisher.take() if isinstance(packet, Puback)] == [Reason.SUCCESS] * 2


# --- any story --------------------------------------------------------------------------------------------------------


class Job:
    """Publishes batches of numbered messages; when its connection is gone it begins the batch anew."""

    SIZE = 5

    def __init__(self, name: str, *, is_kept: bool) -> None:
        self.name = name
        self.is_kept = is_kept
        self.client: Client | None = None
        #: The first number of the batch, the next one to be sent, and those that were acknowledged.
        self.first = self.next = 0
        self.done: set[int] = set()
        self._numbers: dict[int, int] = {}

    def connect(self, scene: Scene) -> None:
        self.client = scene.kept(self.name) if self.is_kept else scene.clean(self.name)
        self.next = self.first
        self.done.clear()
        self._numbers.clear()

    def publish(self) -> None:
        assert self.client is not None
        if self.next < self.first + self.SIZE:
            packet_id = self.client.free_id()
            self._numbers[packet_id] = self.next
            said = f"{self.name}/{self.next}"
            self.client.put("t", said.encode(), 2, packet_id=packet_id, user_property=[("$once", said)])
            self.next += 1

    def read(self) -> None:
        assert self.client is not None
        for packet in self.client.take():
            if isinstance(packet, Pubrec):
                assert packet.reason is Reason.SUCCESS
                self.done.add(self._numbers[packet.packet_id])
                self.client.send(Pubrel(packet_id=packet.packet_id))
        if len(self.done) == self.SIZE:
            self.first += self.SIZE
            self.next = self.first
            self.done.clear()


@given(
    story=st.lists(
        st.one_of(
            st.tuples(st.sampled_from(["publish", "publish", "publish", "read", "reconnect"]), st.integers(0, 1)),
            st.tuples(st.sampled_from(["commit", "commit", "receive"]), st.integers(1, 3)),
            st.tuples(st.just("crash"), st.just(0)),
        ),
        max_size=60,
    ),
    is_kept=st.booleans(),
)
def test_a_batch_that_is_begun_anew_arrives_once(story: list[tuple[str, int]], is_kept: bool) -> None:
    scene = Scene()
    jobs = [Job("a", is_kept=is_kept), Job("b", is_kept=not is_kept)]
    got: list[str] = []
    held: set[int] = set()
    sink = scene.subscribe(scene.kept("sink"), qos=2)

    def receive() -> None:
        for packet in sink.take():
            if isinstance(packet, Publish):
                if packet.packet_id not in held:
                    held.add(packet.packet_id)
                    got.append(packet.payload.decode())
                sink.send(Pubrec(packet_id=packet.packet_id))
            elif isinstance(packet, Pubrel):
                held.discard(packet.packet_id)
                sink.send(Pubcomp(packet_id=packet.packet_id))

    for job in jobs:
        job.connect(scene)
    for what, number in story:
        match what:
            case "publish":
                jobs[number].publish()
            case "read":
                jobs[number].read()
            case "reconnect":
                jobs[number].connect(scene)
            case "commit":
                scene.commit(number)
            case "receive":
                receive()
            case "crash":
                receive()
                scene.restart()
                sink = scene.kept("sink")
                for job in jobs:
                    job.connect(scene)
    for job in jobs:
        for _ in range(Job.SIZE):
            job.publish()
    for _ in range(5):
        scene.settle()
        receive()
        for job in jobs:
            job.read()
    for job in jobs:
        mine = [said for said in got if said.startswith(job.name)]
        assert mine == [f"{job.name}/{number}" for number in range(len(mine))], "each once, in order"
        assert len(mine) >= job.first, "and none is missing"
