"""Whole brokers joined by virtual cables, with clients: cores, stores and nodes as they are, in virtual time.

Beside :mod:`tests.kits.overlay_world`, whose cables these are: there a node carries messages for an application, here
it belongs to a core with sessions.  A store commits after a while, or its broker crashes around that; what was
committed is what the next life begins with.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Final

from tests.kits import overlay_world
from tests.kits.check_store import LateStore
from tests.kits.ledger import Model
from tests.kits.overlay_world import Broker, Connection
from tests.kits.world import Client, World
from tieline.conf.overlay import Overlay
from tieline.conf.schema import Event, Mqtt, Settings
from tieline.overlay.carrier.ends import Limits
from tieline.overlay.joined import Joined
from tieline.overlay.node import Node
from tieline.wire.packets import (
    Packet,
    Puback,
    Pubcomp,
    Publish,
    Pubrec,
    Pubrel,
    Suback,
    Subscribe,
    Subscription,
    Unsuback,
    Unsubscribe,
)

_KERNEL: Final = 4_096


@dataclass(eq=False)
class Person:
    """A client that comes back as the same, and what it has received in all its connections."""

    name: str
    home: int
    is_kept: bool
    filter: str = ""
    qos: int = 2
    client: Client | None = None
    #: It wants to be connected.
    is_here: bool = True
    #: When its subscription was acknowledged first; None before that.
    granted_at: float | None = None
    #: It wants to unsubscribe; it has, or its session is over.
    is_leaving: bool = False
    has_left: bool = False
    #: What it has received, and when.
    got: list[bytes] = field(default_factory=list)
    at: list[float] = field(default_factory=list)
    #: Packet ids of QoS 2 messages that are half received, which the client keeps.
    held: set[int] = field(default_factory=set)
    #: What was published and not acknowledged.
    sent: dict[int, bytes] = field(default_factory=dict)
    packet_id: int = 0


@dataclass(eq=False)
class Site(Broker):
    """A place where a broker runs; its store is a model of what was committed."""

    model: Model = field(default_factory=Model)
    late: LateStore = field(default_factory=LateStore)
    world: World | None = None
    joined: Joined | None = None
    starts: int = 0
    crashed: list[float] = field(default_factory=list)
    people: list[Person] = field(default_factory=list)


class GroupWorld(overlay_world.World):
    """The brokers of one history, the cables between them, and everybody's clients."""

    def __init__(self, random: Random, *, overlay: Overlay, strategy: str = "path") -> None:
        super().__init__(random, make=_never)
        self.overlay = overlay
        self.strategy = strategy
        #: Declared at some brokers and not at others.
        self.events: dict[int, dict[str, Event]] = {}
        #: What publishers were told is safe: text and QoS, with the time.
        self.accepted: dict[bytes, float] = {}
        self.is_serving = False

    def site(self, number: int) -> Site:
        site = self.brokers[number]
        assert isinstance(site, Site)
        return site

    def start(self, number: int) -> None:
        if number not in self.brokers:
            self.brokers[number] = Site(number)
        site = self.site(number)
        site.starts += 1
        site.late = LateStore()
        world = site.world = World(self.settings(site), store=site.late)
        world.now = self.clock.now
        state = site.model.state
        state.starts = site.starts
        site.joined = Joined(
            world.broker,
            life=site.starts,
            incarnation=self.random.getrandbits(64),
            strategy=self.strategy,
            limits=Limits(),
            notes=self.begin(site),
        )
        self.began(site)
        if site.starts > 1:
            world.broker.restore(state, world.now)
        site.node, site.timers = site.joined.node, world.broker.timers
        site.is_committing, site.crashes_at = False, ""
        site.timer = None
        self.tell(f"{number} begins life {site.node.life}")
        self.serve(site)

    def settings(self, site: Site) -> Settings:
        """What is configured at a place."""
        event = self.events.get(site.number, {})
        return Settings(name=site.name, mqtt=Mqtt(sys_interval_s=0), overlay=self.overlay, event=event)

    def begin(self, site: Site) -> list[tuple[bytes, bytes]]:
        """What a broker that starts knows of the network."""
        notes: list[tuple[bytes, bytes]] = site.model.state.tables["note"]
        return notes

    def began(self, site: Site) -> None:
        """A broker has started: what else belongs to it does, too."""

    def end_turn(self, site: Site, now: float) -> None:
        """Everything that was ready has been handled."""
        assert site.joined is not None
        site.joined.end_turn(now)

    def crash(self, number: int, back_after_s: float, why: str = "") -> None:
        site = self.site(number)
        if site.node is not None:
            site.crashed.append(self.clock.now)
        for person in site.people:
            person.client = None
            person.sent.clear()
        super().crash(number, back_after_s, why)
        site.world = site.joined = None

    def serve(self, broker: Broker) -> None:
        """What a shell does after each call; what clients answer is part of it."""
        site = broker
        assert isinstance(site, Site)
        world, joined, node = site.world, site.joined, site.node
        if world is None or joined is None or node is None:
            return
        now = world.now = self.clock.now
        for _ in range(1_000):
            world.settle()
            self.end_turn(site, now)
            is_quiet = sum(self._answer(site, person) for person in site.people) == 0
            due = world.broker.timer()
            if is_quiet and not world.broker.dirty and (due is None or due > now):
                break
        else:
            raise AssertionError("a broker never comes to rest")
        for handle in sorted(node.doomed):
            node.closed(handle, now)
            self.break_off(site.open.pop(handle), but=site.number)
        self._submit(site, world)
        for handle in sorted(node.dirty - site.is_blocked):
            self._write(site, node, handle)
        due = world.broker.timer()
        if due is not None and (site.timer is None or site.timer.action is None or site.timer.when > due):
            self.clock.cancel(site.timer)
            site.timer = self.clock.at(max(due, now), partial(self._due, site))

    def _due(self, site: Site, now: float) -> None:
        self.serve(site)

    def arrive(self, connection: Connection, end: int, data: bytes) -> None:
        site = self.site(end)
        if not connection.is_dead and site.joined is not None and connection.handle in site.open:
            site.joined.receive(connection.handle, data, self.clock.now)
            self.serve(site)

    # -- commits

    def _submit(self, site: Site, world: World) -> None:
        if not site.is_committing and site.late.committed < len(site.late.batches):
            site.is_committing = True
            self.clock.after(self.random.uniform(0.001, 0.01), partial(self._persist, site, world))

    def _persist(self, site: Site, world: World, now: float) -> None:
        if site.world is not world:
            return
        how, site.crashes_at = site.crashes_at, ""
        if how == "before":
            self.crash(site.number, self.random.uniform(0.1, 1.5), "before a commit")
            return
        before = site.late.committed
        token = site.late.commit()
        for batch in site.late.batches[before:token]:
            for fact in batch:
                site.model.apply(fact)
            site.model.sweep()
        if how == "after":
            self.crash(site.number, self.random.uniform(0.1, 1.5), "after a commit")
            return
        self.clock.after(self.random.uniform(0, 0.003), partial(self._told, site, world, token))

    def _told(self, site: Site, world: World, token: int, now: float) -> None:
        if site.world is world:
            site.is_committing = False
            world.now = now
            world.broker.committed(token)
            self.serve(site)

    # -- clients

    def person(self, name: str, home: int, filter_: str = "", *, is_kept: bool, qos: int = 2) -> Person:
        """Somebody who connects, and subscribes if there is a filter."""
        person = Person(name, home, is_kept, filter_, qos)
        self.site(home).people.append(person)
        self.come(person)
        return person

    def come(self, person: Person) -> None:
        """Connect, now or as soon as the broker is there."""
        person.is_here = True
        site = self.site(person.home)
        if site.world is None:
            return
        if person.client is None or not person.client.is_open:
            site.world.now = self.clock.now
            if person.is_kept:
                person.client = site.world.durable(person.name)
            else:
                person.client = site.world.client(person.name)
            self.serve(site)

    def go(self, person: Person) -> None:
        """Disconnect; a session that is not kept is over."""
        person.is_here = False
        if not person.is_kept:
            person.has_left = True
        site = self.site(person.home)
        if person.client is not None and person.client.is_open and site.world is not None:
            site.world.now = self.clock.now
            person.client.disconnect()
            self.serve(site)
        person.client = None

    def unsubscribe(self, person: Person) -> None:
        """Unsubscribe; whoever has not subscribed yet does not any more."""
        person.is_leaving = True
        if person.granted_at is None:
            person.has_left = True
        elif person.client is not None and person.client.is_open and not person.has_left:
            self.send(person, Unsubscribe(packet_id=self._id(person), filters=(person.filter,)))

    def put(self, person: Person, topic: str, payload: bytes, qos: int, *, retain: bool = False) -> None:
        """Publish; whether it was accepted is noted when the broker says so."""
        if person.client is None or not person.client.is_open:
            return
        packet_id = self._id(person) if qos else 0
        if qos:
            person.sent[packet_id] = payload
        self.send(person, Publish(topic=topic, payload=payload, qos=qos, retain=retain, packet_id=packet_id))

    def send(self, person: Person, packet: Packet) -> None:
        site = self.site(person.home)
        assert person.client is not None
        if site.world is not None:
            site.world.now = self.clock.now
            person.client.send(packet)
            self.serve(site)

    @staticmethod
    def _id(person: Person) -> int:
        person.packet_id = person.packet_id % 60_000 + 1
        return person.packet_id

    def _answer(self, site: Site, person: Person) -> bool:
        """Do what a client does with what it has received; whether it did something."""
        if person.client is None or not person.client.is_open:
            if person.is_here and not person.has_left and site.world is not None:
                self._connect(site, person)
                return True
            return False
        client = person.client
        client.note_connack()
        packets = client.take()
        answers: list[Packet] = []
        asks = person.filter and person.granted_at is None and not person.is_leaving
        if client.connection.session is not None and asks:
            person.granted_at = -1.0
            answers.append(
                Subscribe(
                    packet_id=self._id(person), subscriptions=(Subscription(filter=person.filter, qos=person.qos),)
                )
            )
        for packet in packets:
            answers += self._reply(person, packet)
        if answers:
            client.send(*answers)
        return bool(packets or answers)

    def _connect(self, site: Site, person: Person) -> None:
        assert site.world is not None
        make: Callable[..., Client] = site.world.durable if person.is_kept else site.world.client
        person.client = make(person.name)
        has_asked = person.granted_at is not None
        if not person.is_kept or (person.granted_at is not None and person.granted_at < 0):
            person.granted_at = None
        if person.is_leaving and has_asked:
            person.client.note_connack()
            person.client.send(Unsubscribe(packet_id=self._id(person), filters=(person.filter,)))

    def _reply(self, person: Person, packet: Packet) -> list[Packet]:
        match packet:
            case Publish(qos=0):
                self._note(person, packet)
            case Publish(qos=1):
                if not (packet.dup and packet.payload in person.got):
                    self._note(person, packet)
                return [Puback(packet_id=packet.packet_id)]
            case Publish():
                if packet.packet_id not in person.held:
                    person.held.add(packet.packet_id)
                    self._note(person, packet)
                return [Pubrec(packet_id=packet.packet_id)]
            case Pubrel():
                person.held.discard(packet.packet_id)
                return [Pubcomp(packet_id=packet.packet_id)]
            case Puback() | Pubrec():
                text = person.sent.pop(packet.packet_id, None)
                if text is not None and packet.reason < 128:
                    self.accepted[text] = self.clock.now
                if isinstance(packet, Pubrec) and packet.reason < 128:
                    return [Pubrel(packet_id=packet.packet_id)]
            case Suback():
                person.granted_at = self.clock.now
            case Unsuback():
                person.has_left = True
        return []

    def _note(self, person: Person, packet: Publish) -> None:
        person.got.append(packet.payload)
        person.at.append(self.clock.now)

    def safe(self, person: Person, text: bytes) -> int:
        """How often somebody got a message, but for copies that their broker forgot with the commit it did not live to.

        With QoS 1 it may then send them again; a commit takes less than 0.05 s.
        """
        crashed = self.site(person.home).crashed
        times = [at for got, at in zip(person.got, person.at, strict=True) if got == text]
        return len([at for at in times if not any(at <= crash < at + 0.05 for crash in crashed)])


def _never(*_: object) -> Node:
    raise AssertionError("nodes are made by what joins them with a core")
