"""A conformance kit for stores: whatever implements ``tieline.core.ports.Store`` is done when ``check_store`` passes.

``make`` returns a fresh store, together with a function that lets it finish everything it was given.  The core is
driven against it through a :class:`~tests.kits.world.World`: acknowledgements must not leave before the commit, and
must leave after it.

A store that claims to be permanent also passes ``check_restart``: ``reopen`` ends it as a crash would, and returns a
new one on the same files, together with what that knows.  A second broker is made from it and must go on where the
first one was.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tests.kits.ledger import Life, comparable
from tests.kits.world import Client, World
from tieline.core.durable import facts
from tieline.core.ports import Fact, Reads, Rows, Store
from tieline.core.restore import StoredState
from tieline.wire.packets import (
    Puback,
    Pubcomp,
    Publish,
    Pubrec,
    Pubrel,
    Suback,
    Subscribe,
    Subscription,
    Will,
)
from tieline.wire.reason import Reason

#: Makes whatever was submitted permanent; a store that is always done has nothing to do here.
Finish = Callable[[], None]
Make = Callable[[], tuple[Store, Finish]]
#: The store that comes after a crash, and what it knows.
Reopen = Callable[[Store], tuple[Store, Finish, StoredState]]


class LateStore:
    """A store that commits when the test says so, and remembers what it was given."""

    is_volatile = False

    def __init__(self) -> None:
        self.batches: list[tuple[Fact, ...]] = []
        self.log: list[tuple[object, ...]] = []
        self.events: list[tuple[object, ...]] = []
        self.is_behind = False
        self._committed = 0
        #: What was asked for and not answered yet.
        self.questions: list[tuple[int, int, int, int, int]] = []

    def read(self, session: int, lane: int, after: int, messages: int, size: int) -> None:
        """Note the question; whoever commits answers it."""
        self.questions.append((session, lane, after, messages, size))

    def submit(self, facts: Sequence[Fact], log: Rows = (), events: Rows = ()) -> int:
        """Take a batch over; its token is its number."""
        assert facts or log or events, "an empty batch costs a commit and changes nothing"
        self.batches.append(tuple(facts))
        self.log += log
        self.events += events
        return len(self.batches)

    @property
    def committed(self) -> int:
        """What the test has allowed so far."""
        return self._committed

    @property
    def facts(self) -> list[Fact]:
        """Everything that was submitted, in order."""
        return [fact for batch in self.batches for fact in batch]

    def kinds(self, client_id: str | None = None) -> list[str]:
        """The kinds of the facts, of one client's sessions or of all."""
        numbers = {fact[1] for fact in self.facts if fact[0] == facts.SESSION and fact[2] == client_id}
        return [facts.NAMES[fact[0]] for fact in self.facts if client_id is None or fact[1] in numbers]

    def commit(self, batches: int | None = None) -> int:
        """Allow some batches, or all; the token up to which everything is permanent."""
        self._committed = len(self.batches) if batches is None else min(len(self.batches), self._committed + batches)
        return self._committed


class PromptStore(LateStore):
    """A store that describes itself as permanent and is always done: every fact is made, nothing waits."""

    @property
    def committed(self) -> int:
        """Everything."""
        return len(self.batches)


def check_store(make: Make, reopen: Reopen | None = None) -> None:
    """Assert everything that the core relies on."""
    check_tokens(make)
    check_acknowledgements(make)
    if reopen is not None:
        check_restart(make, reopen)
        check_unrouted(make, reopen)
        check_spilled(make, reopen)
        check_facts(make, reopen)


def check_tokens(make: Make) -> None:
    """Tokens grow; what is committed never shrinks, never runs ahead, and gets to the end."""
    store, finish = make()
    given = 0
    for number in range(20):
        token = store.submit([(facts.CLEAR, 0, b"topic/%d" % number)])
        assert token > given, "tokens grow"
        given = token
        seen = store.committed
        assert seen <= given, "nothing is permanent before it was submitted"
        assert store.committed >= seen, "what is permanent stays permanent"
    finish()
    assert store.committed >= given, "everything becomes permanent in the end"


def check_acknowledgements(make: Make) -> None:
    """PUBACK, PUBREC, PUBCOMP and SUBACK leave once their batch is permanent, each once and in order."""
    store, finish = make()
    world = World(store=store)
    client = world.durable("d")

    def settle() -> None:
        for _ in range(3):  # a commit lets something happen that has to be committed: QoS 2 is sent after its packet id
            finish()
            world.broker.committed(store.committed)
            world.settle()

    settle()
    client.note_connack()
    client.send(Subscribe(packet_id=1, subscriptions=(Subscription(filter="t", qos=2),)))
    settle()
    client.expect(Suback, packet_id=1)
    client.send(
        Publish(topic="t", payload=b"1", qos=1, packet_id=2),
        Publish(topic="t", payload=b"2", qos=2, packet_id=3),
    )
    settle()
    client.find(Puback, packet_id=2)
    client.find(Pubrec, packet_id=3)
    client.send(Pubrel(packet_id=3))
    settle()
    client.find(Pubcomp, packet_id=3)
    messages = client.messages()
    assert [message.payload for message in messages] == [b"1", b"2"]
    for message in messages:
        client.send(Puback(packet_id=message.packet_id) if message.qos == 1 else Pubrec(packet_id=message.packet_id))
    settle()
    client.find(Pubrel)


def check_facts(make: Make, reopen: Reopen) -> None:
    """Whatever facts are submitted, the state afterwards is what they say."""
    for seed in range(3):
        store, finish = make()
        life = Life(seed)
        for _ in range(20):
            batch = life.batch(10)
            if batch:
                store.submit(batch)
        finish()
        _, _, state = reopen(store)
        assert comparable(state.tables) == comparable(life.model.state.tables)
        assert state.messages >= max((row[0] for row in state.tables["message"]), default=0)


def check_unrouted(make: Make, reopen: Reopen) -> None:
    """A QoS 2 message that was taken over when the broker died is routed by the next one, once, in its place."""
    store, finish = make()
    world = World(store=store)

    def settle() -> None:
        for _ in range(4):
            finish()
            world.broker.committed(store.committed)
            world.settle()

    for qos in (0, 1, 2):
        client = world.durable(f"s{qos}")
        settle()
        client.send(Subscribe(packet_id=1, subscriptions=(Subscription(filter="t", qos=qos),)))
        settle()
        client.drop()
    publisher = world.durable("publisher")
    settle()
    publisher.put("t", b"1", qos=2, packet_id=1, retain=True)
    settle()
    # permanent, and the broker never hears of it
    publisher.put("t", b"2", qos=2, packet_id=2, retain=True)
    finish()
    for _ in range(2):
        store, finish, state = reopen(store)
        world, now = World(store=store), world.now
        world.now = now
        world.broker.restore(state, now)
        settle()
    retained = world.broker.retained.get("t")
    assert retained is not None and retained.payload == b"2"
    for qos, expected in ((0, []), (1, [b"1", b"2"]), (2, [b"1", b"2"])):
        client = world.durable(f"s{qos}")
        settle()
        client.note_connack()
        assert [message.payload for message in client.messages()] == expected
    publisher = world.durable("publisher")
    settle()
    publisher.note_connack()
    publisher.put("t", b"2", qos=2, packet_id=2, retain=True, dup=True)
    settle()
    publisher.expect(Pubrec, packet_id=2, reason=Reason.SUCCESS)
    for client in world.clients[:-1]:
        client.expect_nothing()


def check_spilled(make: Make, reopen: Reopen) -> None:
    """What waits in a store alone, where a store can do that, is read once, in order, also by the next broker."""
    store, finish = make()
    if not isinstance(store, Reads):
        return
    world = World(store=store, queue_messages=3, inflight=2)

    def settle() -> None:
        for _ in range(6):
            finish()
            world.broker.committed(store.committed)
            world.settle()

    def gather(client: Client, most: int) -> list[bytes]:
        got: list[bytes] = []
        while len(got) < most and (messages := [one for one in client.take() if isinstance(one, Publish)]):
            for message in messages:
                got.append(message.payload)
                client.send(Puback(packet_id=message.packet_id))
            settle()
        return got

    def begin(state: StoredState | None) -> None:
        nonlocal world
        now = world.now
        world = World(store=store, queue_messages=3, inflight=2)
        world.now = now
        # the test hands over what the store has read, as a shell does
        store.on_portion = lambda portion, _: world.broker.read_back(portion, world.now)  # type: ignore[attr-defined]  # as a shell does
        if state is not None:
            world.broker.restore(state, now)
            world.settle()

    begin(None)
    for name, filter_ in (("away", "t"), ("gone", "t")):
        client = world.durable(name)
        settle()
        client.send(Subscribe(packet_id=1, subscriptions=(Subscription(filter=filter_, qos=1),)))
        settle()
        client.drop()
    publisher = world.client("publisher")
    settle()
    for number in range(30):
        publisher.put("t", b"%d" % number, qos=1)
        settle()
    assert world.broker.spills.messages == 2 * 27
    finish()
    store, finish, state = reopen(store)
    assert isinstance(store, Reads)
    assert sorted(row[2] for row in state.tables["spilled"]) == [27, 27]
    assert len(state.tables["message"]) == 3, "what waits in the store alone is not loaded"
    begin(state)
    assert world.broker.spills.messages == 2 * 27
    away = world.durable("away")
    settle()
    away.note_connack()
    got = gather(away, 10)
    # one session ends before anything of it was read, another is in the middle of it
    world.client("gone", clean_start=True)
    settle()
    finish()
    store, finish, state = reopen(store)
    begin(state)
    settle()
    assert not world.broker.sessions.keys() - {"away"}
    away = world.durable("away")
    settle()
    away.note_connack()
    assert got + gather(away, 100) == [b"%d" % number for number in range(30)]
    assert not world.broker.spills.messages and not len(world.broker.estates)


def check_restart(make: Make, reopen: Reopen) -> None:
    """A broker that was killed goes on: sessions, subscriptions, queues, both directions of QoS 2, retained, wills."""
    store, finish = make()
    world = World(store=store)

    def settle() -> None:
        for _ in range(4):
            finish()
            world.broker.committed(store.committed)
            world.settle()

    will = Will(topic="will", payload=b"gone", qos=1, properties={"will_delay_interval": 50})
    away = world.durable("away", will=will)
    settle()
    away.send(
        Subscribe(
            packet_id=1,
            subscriptions=(Subscription(filter="q/#", qos=2, retain_as_published=True),),
            properties={"subscription_identifier": [7]},
        ),
        Subscribe(
            packet_id=2,
            subscriptions=(Subscription(filter="where", qos=1),),
            properties={"user_property": [("$where", "v > 5")]},
        ),
    )
    settle()
    here, watcher = world.durable("here"), world.durable("watcher")
    settle()
    for client in (away, here, watcher):
        client.note_connack()
    here.send(Subscribe(packet_id=1, subscriptions=(Subscription(filter="q/#", qos=2),)))
    watcher.send(Subscribe(packet_id=1, subscriptions=(Subscription(filter="will", qos=1),)))
    settle()
    away.drop()
    publisher = world.durable("publisher")
    settle()
    publisher.send(
        Publish(topic="q/1", payload=b"1", qos=1, packet_id=1, retain=True),
        Publish(topic="q/2", payload=b"2", qos=2, packet_id=2),
        Publish(topic="q/3", payload=b"3", qos=2, packet_id=3),
        Publish(topic="q/4", payload=b"never stored", qos=0),
        Publish(topic="where", payload=b'{"v": 4}', qos=1, packet_id=4),
        Publish(topic="where", payload=b'{"v": 6}', qos=1, packet_id=5),
    )
    settle()
    publisher.send(Pubrel(packet_id=2))
    settle()
    first, *rest = [packet for packet in here.take() if isinstance(packet, Publish) and packet.qos == 2]
    here.send(Pubrec(packet_id=first.packet_id))
    settle()

    finish()
    store, finish, state = reopen(store)
    downtime = 10.0
    world, now = World(store=store), world.now + downtime
    world.now = now
    world.broker.restore(state, now)
    settle()

    again = world.durable("publisher")
    settle()
    again.note_connack()
    assert again.connack.session_present
    again.send(Publish(topic="q/3", payload=b"3", qos=2, packet_id=3, dup=True), Pubrel(packet_id=2))
    settle()
    again.find(Pubrec, packet_id=3, reason=Reason.SUCCESS)
    again.find(Pubcomp, packet_id=2)
    here = world.durable("here")
    settle()
    here.note_connack()
    # what was sent goes again with its packet id; what has its PUBREC gets its PUBREL, last
    (one,) = [packet for packet in here.inbox if isinstance(packet, Publish) and packet.qos == 1]
    two = [
        (packet.payload, packet.packet_id) for packet in here.inbox if isinstance(packet, Publish) and packet.qos == 2
    ]
    assert one.payload == b"1" and one.dup
    assert two == [(packet.payload, packet.packet_id) for packet in rest], "once, and nothing that was sent again"
    here.find(Pubrel, packet_id=first.packet_id)
    away = world.durable("away", will=will)
    settle()
    away.note_connack()
    got = [packet for packet in away.take() if isinstance(packet, Publish)]
    assert [packet.payload for packet in got if packet.qos == 1] == [b"1", b'{"v": 6}']
    assert [packet.payload for packet in got if packet.qos == 2] == [b"2", b"3"], "once each"
    assert got[0].retain, "retain as published"
    assert got[0].properties["subscription_identifier"] == [7]
    onlooker = world.client("onlooker")
    onlooker.subscribe("#")
    settle()
    assert [message.payload for message in onlooker.messages()] == [b"1"]
    # the will of a client that was away is due when it would have been
    away.drop()
    settle()
    finish()
    store, finish, state = reopen(store)
    world, now = World(store=store), world.now + 49.0
    world.now = now
    world.broker.restore(state, now)
    settle()
    watcher = world.durable("watcher")
    settle()
    watcher.note_connack()
    watcher.expect_nothing()
    world.advance(2.0)
    settle()
    watcher.expect(Publish, topic="will", payload=b"gone")
