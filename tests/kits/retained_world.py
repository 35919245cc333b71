"""Whole brokers, with clients, a store and neighbours, joined by the cables of :mod:`tests.kits.overlay_world`.

A broker is a core and what joins it; its store is a model of facts that survives a crash, and what was submitted to it
and not committed is gone.  Its wall clock may be wrong, and may be set while it runs or while it is away.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any, Final

import msgspec

from tests.kits import overlay_world
from tests.kits.check_store import LateStore
from tests.kits.ledger import Model
from tests.kits.overlay_world import Broker, Connection
from tests.kits.world import Client, configured
from tests.kits.world import World as CoreWorld
from tieline.core.account import Drop
from tieline.overlay.joined import Joined
from tieline.overlay.node import Node
from tieline.overlay.retained.versions import clock_in
from tieline.wire.packets import Puback, Publish, Suback, Subscribe, Subscription

#: What is between the time of a world and seconds since 1970.
EPOCH_S: Final = 1_700_000_000.0
#: How a broker joins: its core, its notes and whatever else :class:`Joined` takes.
Join = Callable[..., Joined]


@dataclass(eq=False)
class Write:
    """One message that was to be retained, or an empty one that clears."""

    topic: str
    payload: bytes
    qos: int
    place: int
    #: Its packet id, if it has one.
    packet_id: int
    client: Client
    at: float
    #: When it is over, if it expires.
    until: float | None
    #: The brokers that are to get it live, its own among them.
    live: frozenset[int]
    #: Where it stands among all writes; set once its broker has taken it.
    clock: int = 0
    #: Nobody may lose it.
    is_safe: bool = False

    @property
    def order(self) -> tuple[int, str]:
        return self.clock, f"b{self.place}"


@dataclass(eq=False)
class Reader:
    """A client that subscribes again whenever its broker comes back, and notes what it gets."""

    place: int
    name: str
    filter: str
    client: Client | None = None
    is_granted: bool = False
    granted_at: float = 0.0
    #: What its broker knew then, by topic: a clock and a broker.
    known: dict[str, tuple[int, str]] = field(default_factory=dict)
    #: Topic, payload and whether it was sent as retained, since it was granted.
    got: list[tuple[str, bytes, bool]] = field(default_factory=list)
    #: By topic, what its broker knew when the first of that came.
    first: dict[str, tuple[int, str]] = field(default_factory=dict)
    #: And before that, since it had asked.
    before: list[tuple[str, bytes, bool]] = field(default_factory=list)


@dataclass(eq=False)
class Place:
    """What belongs to one broker, and what of it survives."""

    model: Model = field(default_factory=Model)
    starts: int = 0
    core: CoreWorld | None = None
    joined: Joined | None = None
    store: LateStore | None = None
    #: What was submitted and is being committed.
    is_committing: bool = False
    writers: dict[int, Client] = field(default_factory=dict)


class RetainedWorld(overlay_world.World):
    """Brokers with clients."""

    def __init__(self, random: Random, join: Join = Joined) -> None:
        super().__init__(random, _no_node)
        self._join = join
        self.places: dict[int, Place] = {}
        self.writes: list[Write] = []
        self.readers: list[Reader] = []

    # -- brokers

    def wall(self, number: int, now: float) -> float:
        """What a broker takes for the time of day."""
        return EPOCH_S + now + self.brokers[number].clock_s

    def start(self, number: int) -> None:
        broker = self.brokers.setdefault(number, Broker(number))
        place = self.places.setdefault(number, Place())
        if broker.is_volatile:
            place.model = Model()
        place.starts += 1
        place.is_committing = False
        place.writers.clear()
        place.store = None if broker.is_volatile else LateStore()
        settings = msgspec.structs.replace(configured(None, sys_interval_s=0), name=broker.name)
        core = place.core = CoreWorld(settings, store=place.store)
        core.now = self.clock.now
        core.broker.journal.epoch_s = self.wall(number, 0.0)
        joined = place.joined = self._join(
            core.broker,
            life=int(self.wall(number, self.clock.now) * 100),
            incarnation=self.random.getrandbits(64),
            notes=sorted(place.model.notes.items()),
            wall=partial(self.wall, number),
        )
        if place.starts > 1 and not broker.is_volatile:
            state = place.model.state
            state.starts = place.starts
            core.broker.restore(state, self.clock.now)
        broker.node, broker.timers, broker.crashes_at = joined.node, core.broker.timers, ""
        broker.is_blocked.clear()
        self.tell(f"{number} begins life {joined.node.life}")
        # the first seal, which holds the life, is committed before a link is opened
        self._turn(broker, place)
        if place.store is not None:
            self._persist(place, place.store)
            core.broker.committed(place.store.committed)
        self.serve(broker)
        for reader in self.readers:
            if reader.place == number:
                self._read(reader)

    def _turn(self, broker: Broker, place: Place) -> None:
        core, joined, now = place.core, place.joined, self.clock.now
        assert core is not None
        assert joined is not None
        core.now = now
        core.settle()
        joined.end_turn(now)
        core.settle()

    def crash(self, number: int, back_after_s: float, why: str = "") -> None:
        place, broker = self.places[number], self.brokers[number]
        if broker.node is not None:
            place.core = place.joined = None
            for write in self.writes:
                if write.place == number and (broker.is_volatile or not write.is_safe):
                    write.is_safe = False
                    write.packet_id = -1
            for reader in self.readers:
                if reader.place == number:
                    reader.client, reader.is_granted = None, False
        super().crash(number, back_after_s, why)

    def serve(self, broker: Broker) -> None:
        place = self.places[broker.number]
        node, core = broker.node, place.core
        if node is None or core is None:
            return
        now = self.clock.now
        self._turn(broker, place)
        for handle in sorted(node.doomed):
            node.closed(handle, now)
            self.break_off(broker.open.pop(handle), but=broker.number)
        self._commit_soon(broker, place)
        self._look(broker, place)
        for handle in sorted(node.dirty - broker.is_blocked):
            if handle in broker.open:
                self._write(broker, node, handle)
        due = core.broker.timer()
        if due is not None and (broker.timer is None or broker.timer.action is None or broker.timer.when > due):
            self.clock.cancel(broker.timer)
            broker.timer = self.clock.at(max(due, now), partial(self._tick, broker))

    def _tick(self, broker: Broker, now: float) -> None:
        self.serve(broker)

    def arrive(self, connection: Connection, end: int, data: bytes) -> None:
        broker, joined = self.brokers[end], self.places[end].joined
        if not connection.is_dead and joined is not None and connection.handle in broker.open:
            joined.receive(connection.handle, data, self.clock.now)
            self.serve(broker)

    # -- commits

    def _commit_soon(self, broker: Broker, place: Place) -> None:
        store = place.store
        if store is None or place.is_committing or store.committed == len(store.batches):
            return
        place.is_committing = True
        self.clock.after(self.random.uniform(0.001, 0.01), partial(self._do_commit, broker, place, store))

    def _do_commit(self, broker: Broker, place: Place, store: LateStore, now: float) -> None:
        if place.store is not store or broker.node is None:
            return
        if broker.crashes_at == "before":
            self.crash(broker.number, self.random.uniform(0.1, 1.5), "before a commit")
            return
        self._persist(place, store)
        if broker.crashes_at == "after":
            self.crash(broker.number, self.random.uniform(0.1, 1.5), "after a commit")
            return
        self.clock.after(self.random.uniform(0, 0.003), partial(self._committed_at, broker, place, store))

    def _committed_at(self, broker: Broker, place: Place, store: LateStore, now: float) -> None:
        if place.store is store and broker.node is not None and place.core is not None:
            place.is_committing = False
            place.core.broker.committed(store.committed)
            self.serve(broker)

    @staticmethod
    def _persist(place: Place, store: LateStore) -> None:
        before = store.committed
        for batch in store.batches[before : store.commit()]:
            for fact in batch:
                place.model.apply(fact)
            place.model.sweep()

    # -- clients

    def write(self, number: int, topic: str, payload: bytes, qos: int, expiry_s: int | None) -> None:
        """A client has something retained."""
        place, broker = self.places[number], self.brokers[number]
        if place.core is None or place.joined is None or broker.node is None:
            return
        place.core.now = self.clock.now
        client = place.writers.get(qos)
        if client is None:
            client = place.writers[qos] = place.core.client(f"writer {number} {qos}")
        properties: dict[str, Any] = {} if expiry_s is None else {"message_expiry_interval": expiry_s}
        now, node = self.clock.now, place.joined.node
        live = overlay_world.numbers_of(node, node.interests.wanted_by(topic)) | {number}
        packet = client.put(topic, payload, qos, retain=True, **properties)
        until = None if expiry_s is None else now + expiry_s
        write = Write(topic, payload, qos, number, packet.packet_id, client, now, until, live)
        write.clock = clock_in(place.joined.retaining.convergence.versions.get(topic.encode()))
        write.is_safe = broker.is_volatile
        self.tell(f"{number} retains {payload.rstrip(b'.').decode()!r} on {topic} with QoS {qos}: {write.clock}")
        self.writes.append(write)
        self.serve(broker)

    def read(self, number: int, filter_: str) -> None:
        """A client subscribes, for as long as the world lasts."""
        reader = Reader(number, f"reader {len(self.readers)}", filter_)
        self.readers.append(reader)
        if self.brokers[number].node is not None:
            self._read(reader)

    def _read(self, reader: Reader) -> None:
        place = self.places[reader.place]
        assert place.core is not None
        place.core.now = self.clock.now
        reader.client, reader.is_granted, reader.got = place.core.client(reader.name), False, []
        reader.first = {}
        subscription = Subscription(filter=reader.filter, qos=0)
        reader.client.send(Subscribe(packet_id=1, subscriptions=(subscription,)))
        self.serve(self.brokers[reader.place])

    def _look(self, broker: Broker, place: Place) -> None:
        """Note what has come to clients."""
        for reader in self.readers:
            if reader.place != broker.number or reader.client is None:
                continue
            for packet in reader.client.inbox:
                if isinstance(packet, Suback):
                    reader.is_granted, reader.before, reader.got = True, reader.got, []
                    reader.granted_at = self.clock.now
                    reader.known = {topic: (at, name) for topic, (at, name, _) in self.state(reader.place).items()}
                elif isinstance(packet, Publish):
                    reader.got.append((packet.topic, packet.payload, packet.retain))
                    if reader.is_granted and packet.topic not in reader.first:
                        reader.first[packet.topic] = self.state(reader.place).get(packet.topic, (0, "", b""))[:2]
            reader.client.inbox.clear()
        for client in place.writers.values():
            acknowledged = {packet.packet_id for packet in client.inbox if isinstance(packet, Puback)}
            client.inbox.clear()
            for write in self.writes:
                if write.client is client and write.packet_id in acknowledged:
                    write.is_safe = True

    # -- what is asked in the end

    def state(self, number: int) -> dict[str, tuple[int, str, bytes]]:
        """What a broker retains: clock, broker and payload by topic, which is empty where nothing is retained.

        What has expired is not, although brokers forget it by and by: nobody is given it any more.
        """
        place = self.places[number]
        assert place.joined is not None
        convergence = place.joined.retaining.convergence
        names, found = place.joined.names, {}
        for bucket in convergence.versions.buckets:
            for topic, version in bucket.items():
                message = convergence._core.retained.get(topic.decode())
                has_expired = message is not None and message.expires is not None and message.expires <= self.clock.now
                payload = b"" if message is None or has_expired else message.payload
                found[topic.decode()] = clock_in(version), names[version & 255], payload
        return found

    def says_expired(self, write: Write, reader: Reader) -> bool:
        """Whether a broker has recorded that a message was over before a reader could get it, and not too early."""
        assert write.until is not None
        until = write.until - 0.005  # what a parcel says is in whole milliseconds, and less at each end
        receivers = (write.place, f"broker b{reader.place}"), (reader.place, reader.name)
        return any(
            drop.why is Drop.EXPIRED and drop.client == name and drop.topic == write.topic and drop.when >= until
            for number, name in receivers
            if (core := self.places[number].core) is not None
            for drop in core.broker.account.last_drops
        )


def _no_node(*_: object) -> Node:
    raise AssertionError("brokers of this world are whole")
