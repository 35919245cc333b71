"""An inbound QoS 2 message reaches nobody before it is permanent, and everybody it is owed to afterwards."""

from __future__ import annotations

from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.crashing import Scene
from tests.kits.interpreted import replaces_methods
from tests.kits.world import Client, payloads
from tieline.core import work
from tieline.core.account import Drop
from tieline.core.client import Hold
from tieline.core.inbound import taken_over
from tieline.wire.encode import encode
from tieline.wire.packets import Connect, Puback, Pubcomp, Publish, Pubrec, Pubrel, Subscribe, Subscription, Will
from tieline.wire.reason import Reason


@pytest.fixture
def scene() -> Scene:
    return Scene()


@pytest.mark.parametrize("filter_", ["t", "$share/g/t", "$where/v > 1/t"])
@pytest.mark.parametrize("qos", [0, 1, 2])
@pytest.mark.parametrize("is_kept", [False, True])
def test_nobody_gets_it_before_it_is_permanent(scene: Scene, filter_: str, qos: int, is_kept: bool) -> None:
    subscriber = scene.kept("s") if is_kept else scene.clean("s")
    scene.subscribe(subscriber, filter_, qos)
    publisher = scene.kept("p")
    publisher.put("t", b'{"v": 2}', qos=2, packet_id=7)
    subscriber.expect_nothing()
    publisher.expect_nothing()
    scene.commit()
    publisher.expect(Pubrec, packet_id=7, reason=Reason.SUCCESS)
    scene.settle()
    subscriber.expect(Publish, payload=b'{"v": 2}', qos=qos, dup=False)
    subscriber.expect_nothing()


def test_the_retained_copy_is_not_seen_before_it_is_permanent(scene: Scene) -> None:
    publisher = scene.kept("p")
    publisher.put("t", b"1", qos=2, retain=True)
    early = scene.world.client("early")
    early.subscribe("t")
    early.expect_nothing()
    scene.settle()
    early.expect(Publish, payload=b"1", retain=False)
    late = scene.world.client("late")
    late.subscribe("t")
    late.expect(Publish, payload=b"1", retain=True)


def test_what_is_retained_is_what_was_routed_last(scene: Scene) -> None:
    publisher = scene.kept("p")
    publisher.put("t", b"two", qos=2, retain=True)
    publisher.put("t", b"one", qos=1, retain=True)
    scene.settle()
    retained = scene.world.broker.retained.get("t")
    assert retained is not None and retained.payload == b"two"
    scene.restart()
    retained = scene.world.broker.retained.get("t")
    assert retained is not None and retained.payload == b"two"


def test_a_publisher_that_is_not_kept_does_not_wait(scene: Scene) -> None:
    subscriber = scene.subscribe(scene.clean("s"), qos=2)
    scene.clean("p").put("t", b"1", qos=2)
    subscriber.expect(Publish, payload=b"1")


def test_a_message_that_nobody_wants_is_not_kept(scene: Scene) -> None:
    publisher = scene.kept("p")
    before = len(scene.store.facts)
    publisher.put("t", b"1", qos=2, packet_id=3)
    assert [fact[0] for fact in scene.store.facts[before:]] == [13], "its packet id alone"
    scene.commit()
    publisher.expect(Pubrec, reason=Reason.NO_MATCHING_SUBSCRIBERS)


def test_a_change_is_found_when_it_is_routed(scene: Scene) -> None:
    subscriber = scene.subscribe(scene.clean("s"), "$where/changed(v)/t", 2)
    publisher = scene.kept("p")
    for value in (1, 2, 1, 1):
        publisher.put("t", b'{"v": %d}' % value, qos=2)
    scene.settle()
    assert payloads(subscriber.messages()) == [b'{"v": 1}', b'{"v": 2}', b'{"v": 1}']


def test_a_publisher_that_comes_back_clean_does_not_overtake_itself(scene: Scene) -> None:
    subscriber = scene.subscribe(scene.clean("s"), qos=2)
    scene.kept("p").put("t", b"1", qos=2)
    again = scene.world.open()
    again.send(Connect(version=5, client_id="p"), Publish(topic="t", payload=b"2", qos=2, packet_id=1))
    scene.settle()
    assert payloads(subscriber.messages()) == [b"1", b"2"]


def test_a_subscriber_that_left_meanwhile_does_not_get_it(scene: Scene) -> None:
    subscriber = scene.subscribe(scene.clean("s"), qos=1)
    scene.kept("p").put("t", b"1", qos=2)
    subscriber.unsubscribe("t")
    scene.settle()
    subscriber.expect_nothing()


@pytest.mark.parametrize("is_routed", [False, True])
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_a_crash_on_the_way_to_a_kept_session(scene: Scene, qos: int, is_routed: bool) -> None:
    """Routed or not when the broker dies: at most once, at least once, exactly once."""
    subscriber = scene.subscribe(scene.kept("s"), qos=qos)
    scene.kept("p").put("t", b"1", qos=2, packet_id=3)
    if is_routed:
        scene.commit()
    else:
        scene.persist()
    before = len(subscriber.messages())
    assert before == (is_routed and qos < 2), "QoS 2 waits for its packet id"
    scene.restart()
    publisher = scene.kept("p")
    publisher.put("t", b"1", qos=2, packet_id=3, dup=True)
    scene.settle()
    publisher.expect(Pubrec, packet_id=3, reason=Reason.SUCCESS)
    after = len(scene.kept("s").messages())
    assert after == (qos > 0), "to be had again at QoS 1, for the first time at QoS 2"


# --- room -------------------------------------------------------------------------------------------------------------


def numbers(client: Client) -> list[int]:
    """What a client has got, answered."""
    found = []
    for message in client.take():
        if isinstance(message, Publish):
            found.append(int(message.payload))
            if message.qos:
                kind = Puback if message.qos == 1 else Pubrec
                client.send(kind(packet_id=message.packet_id))
    return found


@pytest.mark.parametrize("filter_", ["t", "$share/g/t"])
@pytest.mark.parametrize("is_kept", [False, True])
def test_room_is_promised_on_arrival(filter_: str, is_kept: bool) -> None:
    scene = Scene(queue_messages=3)
    subscriber = scene.subscribe(scene.kept("s") if is_kept else scene.clean("s"), filter_, 2)
    subscriber.stall()
    two, one = scene.kept("two"), scene.clean("one")
    two.put("t", b"0", qos=2)
    two.put("t", b"1", qos=2)
    one.put("t", b"2", qos=1)
    one.put("t", b"3", qos=1)
    two.put("t", b"4", qos=2)
    scene.settle()
    assert [packet.reason for packet in one.take() if isinstance(packet, Puback)] == [
        Reason.SUCCESS,
        Reason.QUOTA_EXCEEDED,
    ]
    reasons = [packet.reason for packet in two.take() if isinstance(packet, Pubrec)]
    assert reasons == [Reason.SUCCESS, Reason.SUCCESS, Reason.QUOTA_EXCEEDED]
    assert scene.world.broker.account.drops == {Drop.REFUSED: 2}
    subscriber.resume()
    scene.settle()
    assert sorted(numbers(subscriber)) == [0, 1, 2]


def test_what_needs_no_answer_does_not_take_promised_room() -> None:
    scene = Scene(queue_messages=3)
    subscriber = scene.subscribe(scene.clean("s"), "#", 2)
    subscriber.stall()
    publisher = scene.kept("p")
    publisher.put("t", b"0", qos=2)
    publisher.put("t", b"1", qos=2)
    dying = scene.world.client("dying", will=Will(topic="w", payload=b"9", qos=1))
    scene.world.client("more", will=Will(topic="w", payload=b"8", qos=1)).drop()
    dying.drop()
    for _ in range(5):
        publisher.put("t", b"7", qos=0)
    scene.settle()
    subscriber.resume()
    assert {0, 1} <= set(numbers(subscriber)), "what was acknowledged is there, whatever came meanwhile"
    assert set(scene.world.broker.account.drops) == {Drop.QUEUE_FULL}


def test_a_retained_message_does_not_take_promised_room() -> None:
    scene = Scene(queue_messages=2)
    publisher = scene.kept("p")
    for number in (5, 6, 7):
        publisher.put(f"kept/{number}", b"%d" % number, qos=1, retain=True)
    subscriber = scene.subscribe(scene.clean("s"), "t", 2)
    subscriber.stall()
    publisher.put("t", b"0", qos=2)
    publisher.put("t", b"1", qos=2)
    subscriber.send(Subscribe(packet_id=2, subscriptions=(Subscription(filter="kept/#", qos=1),)))
    scene.settle()
    subscriber.resume()
    assert {0, 1} <= set(numbers(subscriber))
    assert not scene.world.broker.account.drops


def test_memory_that_ran_out_meanwhile_does_not_lose_it() -> None:
    scene = Scene(queue_bytes_total=200_000, queue_bytes=1_000_000)
    subscriber = scene.subscribe(scene.clean("s"), "#", 2)
    subscriber.stall()
    publisher, other = scene.kept("p"), scene.clean("other")
    publisher.put("t", b"0", qos=2)
    for _ in range(5):
        other.put("u", b"0" * 60_000, qos=0)
    scene.settle()
    assert set(scene.world.broker.account.drops) == {Drop.MEMORY_FULL}
    subscriber.resume()
    assert "t" in [packet.topic for packet in subscriber.take() if isinstance(packet, Publish)]


def test_bounds_that_change_meanwhile() -> None:
    scene = Scene(queue_messages=10)
    subscriber = scene.subscribe(scene.kept("s"), qos=2)
    scene.kept("p").put("t", b"0", qos=2)
    subscriber.drop()
    subscriber = scene.world.durable("s")
    scene.settle()
    session = scene.world.broker.sessions["s"]
    assert (session.queue.promised, session.queue.promised_bytes) == (0, 0)
    assert session.queue.max_messages == 10
    assert session.queue.max_bytes == scene.world.settings.limits.queue_bytes


def test_routing_gives_way_to_clients(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "WORK_PER_TURN", 3)
    subscriber = scene.subscribe(scene.clean("s"), qos=0)
    publisher = scene.kept("p")
    publisher.send(*(Publish(topic="t", payload=b"%d" % n, qos=2, packet_id=n) for n in range(1, 20)))
    broker = scene.world.broker
    broker.committed(scene.persist())
    broker.tick(scene.world.now)
    assert 0 < len(broker.taken_over) < 19
    scene.world.settle()
    assert numbers(subscriber) == list(range(1, 20))


def test_clients_wait_while_there_is_much_to_be_routed(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "WORK_PER_TURN", 1)
    monkeypatch.setattr(taken_over, "BEHIND", 1_000)
    subscriber = scene.subscribe(scene.clean("s"), qos=0)
    publisher, other = scene.kept("p"), scene.clean("other")
    publisher.send(*(Publish(topic="t", payload=b"%d" % n, qos=2, packet_id=n) for n in range(1, 20)))
    broker = scene.world.broker
    broker.committed(scene.persist())
    broker.tick(scene.world.now)
    broker.receive(other.connection, encode(Publish(topic="u", payload=b"x", qos=1, packet_id=1), 5), scene.world.now)
    assert other.connection.hold is Hold.STORE
    scene.world.settle()
    assert numbers(subscriber) == list(range(1, 20))
    other.expect(Puback, packet_id=1)


@replaces_methods
def test_a_fault_with_one_message_does_not_hold_up_the_others(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    subscriber = scene.subscribe(scene.clean("s"), qos=0)
    publisher = scene.kept("p")
    for number in (1, 2, 3):
        publisher.put("t", b"%d" % number, qos=2)
    broker = scene.world.broker
    broker.committed(scene.persist())
    with monkeypatch.context() as patch:
        patch.setattr(type(broker.delivery), "deliver", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            broker.tick(scene.world.now)
    scene.world.settle()
    assert numbers(subscriber) == [2, 3]


def test_a_server_that_stops_routes_what_is_permanent(scene: Scene) -> None:
    subscriber = scene.subscribe(scene.clean("s"), qos=0)
    scene.kept("p").put("t", b"1", qos=2)
    scene.world.broker.committed(scene.persist())
    scene.world.stop()
    assert payloads([packet for packet in subscriber.take() if isinstance(packet, Publish)]) == [b"1"]


# --- any story --------------------------------------------------------------------------------------------------------


class Receiver:
    """A subscriber that answers, and remembers what it has got."""

    def __init__(self, name: str, qos: int, *, is_kept: bool) -> None:
        self.name = name
        self.qos = qos
        self.is_kept = is_kept
        self.client: Client | None = None
        self.got: dict[int, list[int]] = defaultdict(list)
        self._held: set[int] = set()
        self.is_subscribed = False

    def connect(self, scene: Scene) -> None:
        if self.is_kept:
            self.client = scene.kept(self.name)
        else:
            self.client = scene.clean(self.name)
            self.is_subscribed = False
            self._held.clear()
        if not self.is_subscribed:
            scene.subscribe(self.client, qos=self.qos)
            self.is_subscribed = True

    def read(self) -> None:
        assert self.client is not None
        for packet in self.client.take():
            if isinstance(packet, Publish):
                qos, number = map(int, packet.payload.split())
                if packet.qos < 2 or packet.packet_id not in self._held:
                    self.got[qos].append(number)
                if packet.qos == 1:
                    self.client.send(Puback(packet_id=packet.packet_id))
                elif packet.qos == 2:
                    self._held.add(packet.packet_id)
                    self.client.send(Pubrec(packet_id=packet.packet_id))
            elif isinstance(packet, Pubrel):
                self._held.discard(packet.packet_id)
                self.client.send(Pubcomp(packet_id=packet.packet_id))


class Sender:
    """A publisher that sends again what was not acknowledged."""

    def __init__(self, qos: int) -> None:
        self.name = f"p{qos}"
        self.qos = qos
        self.client: Client | None = None
        self.sent = 0
        self._open: dict[int, Publish | None] = {}

    def connect(self, scene: Scene) -> None:
        self.client = scene.kept(self.name)
        for packet_id, packet in self._open.items():
            self.client.send(Pubrel(packet_id=packet_id) if packet is None else packet)

    def publish(self) -> None:
        assert self.client is not None
        packet_id = next(number for number in range(1, 100) if number not in self._open)
        payload = b"%d %d" % (self.qos, self.sent)
        self._open[packet_id] = Publish(topic="t", payload=payload, qos=self.qos, packet_id=packet_id)
        self.sent += 1
        self.client.put("t", payload, qos=self.qos, packet_id=packet_id)

    def read(self) -> None:
        assert self.client is not None
        for packet in self.client.take():
            if isinstance(packet, Pubrec):
                self._open.pop(packet.packet_id, None)
                self._open[packet.packet_id] = None
                self.client.send(Pubrel(packet_id=packet.packet_id))
            elif isinstance(packet, Puback | Pubcomp):
                self._open.pop(packet.packet_id, None)


@given(
    story=st.lists(
        st.one_of(
            st.tuples(st.sampled_from(["publish", "publish", "commit", "commit", "answer"]), st.integers(1, 3)),
            st.tuples(st.sampled_from(["read", "reconnect"]), st.integers(0, 4)),
            st.tuples(st.just("crash"), st.just(0)),
        ),
        max_size=50,
    )
)
def test_nothing_comes_twice_or_late_whenever_the_broker_dies(story: list[tuple[str, int]]) -> None:
    scene = Scene()
    receivers = [
        Receiver("kept-0", 0, is_kept=True),
        Receiver("kept-1", 1, is_kept=True),
        Receiver("kept-2", 2, is_kept=True),
        Receiver("clean-0", 0, is_kept=False),
        Receiver("clean-2", 2, is_kept=False),
    ]
    senders = [Sender(1), Sender(2)]
    everybody: list[Receiver | Sender] = [*receivers, *senders]
    for one in everybody:
        one.connect(scene)
    for what, number in story:
        match what:
            case "publish":
                senders[number % 2].publish()
            case "commit":
                scene.commit(number)
            case "answer":
                for sender in senders:
                    sender.read()
            case "read":
                receivers[number].read()
            case "reconnect":
                receivers[number].read()
                receivers[number].connect(scene)
            case "crash":
                for receiver in receivers:
                    receiver.read()  # what is in the network arrives
                for sender in senders:
                    sender.read()
                scene.restart()
                for one in everybody:
                    one.connect(scene)
    for _ in range(6):
        scene.settle()
        for one in everybody:
            one.read()
    for receiver in receivers:
        for sender in senders:
            got = receiver.got[sender.qos]
            seen = list(dict.fromkeys(got))
            assert seen == sorted(seen), f"{receiver.name}: order"
            if sender.qos == 2 and receiver.qos != 1:
                assert len(got) == len(seen), f"{receiver.name}: twice"
            if receiver.is_kept and receiver.qos:
                assert seen == list(range(sender.sent)), f"{receiver.name}: lost"
