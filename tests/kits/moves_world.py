"""Whole brokers joined by virtual cables, with clients that move between them, publish, and say what they have got.

Each place runs the shipped core, its store as a model of facts, and what joins it with the others; only sockets and
clocks are virtual (:mod:`tests.kits.overlay_world`).  A client keeps what a client has to keep: which of its messages
were answered, and which QoS 2 ids it has seen.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any

from tests.kits.check_store import LateStore
from tests.kits.ledger import Model
from tests.kits.overlay_world import Broker as Place
from tests.kits.overlay_world import Connection as Wire
from tests.kits.overlay_world import World
from tests.kits.world import configured
from tieline.conf.schema import Mqtt, Settings
from tieline.core.broker import Broker as Core
from tieline.core.client import Connection, Hold
from tieline.overlay.carrier.ends import Limits
from tieline.overlay.joined import Joined
from tieline.wire.encode import encode
from tieline.wire.frames import Framer
from tieline.wire.packets import (
    Connack,
    Connect,
    Disconnect,
    Packet,
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

_LARGEST = 268_435_460
#: Seconds that the network between a client and a broker takes at least and at most.
_NEAR = (0.0005, 0.004)


@dataclass(eq=False)
class Home(Place):
    """A place where a whole broker runs."""

    core: Core | None = None
    joined: Joined | None = None
    late: LateStore | None = None
    model: Model = field(default_factory=Model)
    starts: int = 0
    #: Its clients, by the connection of the core.
    clients: dict[Connection, Client] = field(default_factory=dict)
    is_serving: bool = False


class Client:
    """One client, wherever it is connected."""

    def __init__(self, world: MovesWorld, client_id: str, expiry_s: int = 3_600) -> None:
        self.world = world
        self.client_id = client_id
        self.expiry_s = expiry_s
        self.will: Will | None = None
        self.home: Home | None = None
        self.conn: Connection | None = None
        self.is_in = False
        self._framer = Framer(_LARGEST, 5)
        self._last = 0.0
        #: Filters that it wants, by QoS, and those that were granted in its present session, with the time.
        self.wants: dict[str, int] = {}
        self.granted: dict[str, float] = {}
        self._asked: dict[int, str] = {}
        #: Everything that it has got with QoS 1 and 2, in the order in which it came for the first time.
        self.got: list[tuple[bytes, int, bool]] = []
        self._received: set[int] = set()
        #: What it has published and what was not answered: packet id, topic, payload, QoS, whether PUBREC has come.
        self.unanswered: dict[int, tuple[str, bytes, int, bool]] = {}
        self.accepted: list[tuple[str, bytes, int]] = []
        self._number = 0
        #: Whether each CONNACK said that there was a session.
        self.sessions: list[bool] = []
        self.reasons: list[Reason] = []
        self.connects = 0
        #: Reads nothing while it is set.
        self.is_deaf = False

    # -- coming and going

    def connect(self, home: Home, *, is_clean: bool = False) -> None:
        self.leave()
        if home.core is None:
            return
        self.connects += 1
        self.home = home
        self._framer = Framer(_LARGEST, 5)
        conn = self.conn = home.core.open(self.world.clock.now, listener="tcp", peer=self.client_id)
        home.clients[conn] = self
        self.send(
            Connect(
                version=5,
                client_id=self.client_id,
                clean_start=is_clean,
                keep_alive=0,
                will=self.will,
                properties={"session_expiry_interval": self.expiry_s},
            )
        )

    def leave(self) -> None:
        """The network connection is gone without a word."""
        home, conn = self.home, self.conn
        self.home = self.conn = None
        self.is_in = False
        if home is not None and conn is not None and home.clients.pop(conn, None) is not None and home.core is not None:
            home.core.closed(conn, self.world.clock.now)
            self.world.serve_soon(home)

    def send(self, *packets: Packet) -> None:
        home, conn = self.home, self.conn
        if conn is not None and home is not None:
            data = b"".join(encode(packet, 5) for packet in packets)
            self.world.clock.at(self.later(), partial(self._arrive, home, conn, data))

    def later(self) -> float:
        """When something that is sent now arrives: behind what was sent before, in either direction."""
        self._last = max(self._last, self.world.clock.now + self.world.random.uniform(*_NEAR))
        return self._last

    def _arrive(self, home: Home, conn: Connection, data: bytes, now: float) -> None:
        if home.core is not None and conn in home.clients:
            home.core.receive(conn, data, now)
            self.world.serve_soon(home)

    # -- what it hears

    def hear(self, conn: Connection, data: bytes, now: float) -> None:
        if conn is not self.conn or self.is_deaf:
            return
        for packet in self._framer.feed(data):
            self._heard(packet)

    def _heard(self, packet: Packet) -> None:
        if isinstance(packet, Connack):
            self._let_in(packet)
        elif isinstance(packet, Publish):
            self._took(packet)
        elif isinstance(packet, Pubrel):
            self._received.discard(packet.packet_id)
            self.send(Pubcomp(packet_id=packet.packet_id))
        elif isinstance(packet, Puback):
            self._answered(packet.packet_id, packet.reason)
        elif isinstance(packet, Pubrec):
            self._half_answered(packet)
        elif isinstance(packet, Pubcomp):
            self._answered(packet.packet_id, Reason.SUCCESS)
        elif isinstance(packet, Suback):
            filter_ = self._asked.pop(packet.packet_id, None)
            if filter_ is not None:
                self.granted[filter_] = self.world.clock.now
        elif isinstance(packet, Disconnect):
            self.reasons.append(packet.reason)

    def _let_in(self, packet: Connack) -> None:
        if packet.reason is not Reason.SUCCESS:
            self.reasons.append(packet.reason)
            return
        self.is_in = True
        self.sessions.append(packet.session_present)
        self.world.tell(f"{self.client_id} is in at {self.home and self.home.number}, present {packet.session_present}")
        if not packet.session_present:
            self.granted.clear()
            self._received.clear()
            self.unanswered = {number: each for number, each in self.unanswered.items() if not each[3]}
        for number, (topic, payload, qos, is_received) in list(self.unanswered.items()):
            if is_received:
                self.send(Pubrel(packet_id=number))
            else:
                self.send(Publish(topic=topic, payload=payload, qos=qos, packet_id=number, dup=True))
        self.subscribe_again()

    def subscribe_again(self) -> None:
        for filter_, qos in self.wants.items():
            if filter_ not in self.granted:
                self._number = self._number % 60_000 + 1
                self._asked[self._number] = filter_
                self.send(Subscribe(packet_id=self._number, subscriptions=(Subscription(filter=filter_, qos=qos),)))

    def _took(self, packet: Publish) -> None:
        if packet.qos == 1:
            self.got.append((packet.payload, 1, packet.dup))
            self.send(Puback(packet_id=packet.packet_id))
        elif packet.qos == 2:
            if packet.packet_id not in self._received:
                self._received.add(packet.packet_id)
                self.got.append((packet.payload, 2, packet.dup))
            self.send(Pubrec(packet_id=packet.packet_id))

    # -- what it publishes

    def publish(self, topic: str, payload: bytes, qos: int) -> None:
        self._number = self._number % 60_000 + 1
        while self._number in self.unanswered:
            self._number += 1
        self.unanswered[self._number] = topic, payload, qos, False
        if self.is_in:
            self.send(Publish(topic=topic, payload=payload, qos=qos, packet_id=self._number))

    def _answered(self, number: int, reason: Reason) -> None:
        found = self.unanswered.pop(number, None)
        if found is not None and reason < Reason.UNSPECIFIED_ERROR:
            self.accepted.append(found[:3])

    def _half_answered(self, packet: Pubrec) -> None:
        found = self.unanswered.get(packet.packet_id)
        if found is not None and packet.reason >= Reason.UNSPECIFIED_ERROR:
            del self.unanswered[packet.packet_id]
            return
        if found is not None:
            self.unanswered[packet.packet_id] = *found[:3], True
        self.send(Pubrel(packet_id=packet.packet_id))


class MovesWorld(World):
    """A world of whole brokers."""

    def __init__(self, random: Random, joined: type[Joined] = Joined, strategy: str = "path") -> None:
        super().__init__(random, self._no_node)
        self._settings: Callable[[str], Settings] = plain_settings
        self._joined = joined
        self._strategy = strategy
        self.clients: list[Client] = []
        #: How often brokers that have crashed did not wait for order as long as it takes.
        self._not_awaited = 0

    @staticmethod
    def _no_node(*_: Any) -> Any:
        raise AssertionError("places make their own nodes")

    def client(self, client_id: str, **options: Any) -> Client:
        client = Client(self, client_id, **options)
        self.clients.append(client)
        return client

    def home(self, number: int) -> Home:
        home = self.brokers[number]
        assert isinstance(home, Home)
        return home

    # -- brokers

    def start(self, number: int) -> None:
        if number not in self.brokers:
            self.brokers[number] = Home(number)
        home = self.home(number)
        now = self.clock.now
        home.starts += 1
        home.began.append(now)
        home.clients = {}
        if home.is_volatile:
            home.model = Model()
        home.late = None if home.is_volatile else LateStore()
        core = home.core = Core(self._settings(home.name), store=home.late, now=now)
        clock = int(now * 100)
        state = home.model.state
        home.joined = self._joined(
            core,
            life=clock if home.is_volatile else 0,
            incarnation=self.random.getrandbits(64),
            strategy=self._strategy,
            notes=state.tables["note"],
            limits=Limits(ack_s=0.002),
        )
        home.node, home.timers = home.joined.node, core.timers
        if not home.is_volatile:
            state.starts = home.starts
            core.restore(state, now)
        home.is_committing, home.crashes_at = False, ""
        self.tell(f"{number} begins life {home.node.life}")
        # its life is permanent before it opens a link
        core.seal()
        if home.late is not None:
            self._make_permanent(home)
            core.committed(home.late.committed)
        self.serve(home)

    def crash(self, number: int, back_after_s: float, why: str = "") -> None:
        home = self.home(number)
        if home.node is None:
            return
        self._not_awaited += _not_awaited(home)
        for client in list(home.clients.values()):
            client.home = client.conn = None
            client.is_in = False
        home.core = home.joined = None
        home.clients = {}
        super().crash(number, back_after_s, why)

    @property
    def not_awaited(self) -> int:
        """How often a client was let in, or a message, before everything that should precede it was there."""
        return self._not_awaited + sum(_not_awaited(self.home(number)) for number in self.brokers)

    def serve_soon(self, home: Home) -> None:
        if not home.is_serving:
            home.is_serving = True
            self.clock.after(0.0, lambda _now: self.serve(home))

    def serve(self, broker: Place) -> None:
        home = broker
        assert isinstance(home, Home)
        home.is_serving = False
        core, joined, node = home.core, home.joined, home.node
        if core is None or joined is None or node is None:
            return
        now = self.clock.now
        for _ in range(10_000):
            while core.dirty:
                for conn in core.take_dirty():
                    conn.is_dirty = False
                    self._write_client(home, core, conn, now)
                if home.core is not core:
                    return
            joined.end_turn(now)
            core.seal()
            if core.dirty:
                continue
            due = core.timer()
            if due is None or due > now:
                break
            core.tick(now)
        else:
            raise AssertionError("the broker asks for the same timer for ever")
        for handle in sorted(node.doomed):
            node.closed(handle, now)
            self.break_off(home.open.pop(handle), but=home.number)
        self._commit_soon(home, core)
        for handle in sorted(node.dirty - home.is_blocked):
            self._write(home, node, handle)
        due = core.timer()
        if due is not None and (home.timer is None or home.timer.action is None or home.timer.when > due):
            self.clock.cancel(home.timer)
            home.timer = self.clock.at(max(due, now), partial(self._tick_home, home))

    def _tick_home(self, home: Home, now: float) -> None:
        if home.core is not None:
            home.core.tick(now)
            self.serve(home)

    def _write_client(self, home: Home, core: Core, conn: Connection, now: float) -> None:
        client = home.clients.get(conn)
        pieces = core.fill(conn, 65_536, now)
        data = b"".join(pieces)
        if client is not None and data:
            self.clock.at(client.later(), lambda due: client.hear(conn, data, due))
            self.serve_soon(home)
        if conn.closing and client is not None:
            # what was written arrives before the end of the connection
            self.clock.at(client.later(), lambda _due: self._hang_up(home, conn, client))
            home.clients.pop(conn, None)
            core.closed(conn, now)

    def _hang_up(self, home: Home, conn: Connection, client: Client) -> None:
        if client.conn is conn:
            client.home = client.conn = None
            client.is_in = False

    def arrive(self, connection: Wire, end: int, data: bytes) -> None:
        home = self.home(end)
        if not connection.is_dead and home.joined is not None and connection.handle in home.open:
            is_behind = home.joined.receive(connection.handle, data, self.clock.now)
            while is_behind:
                is_behind = home.joined.go_on(connection.handle, self.clock.now)
            self.serve(home)

    # -- commits

    def _commit_soon(self, home: Home, core: Core) -> None:
        late = home.late
        if late is None or home.is_committing or (late.committed == len(late.batches) and not late.questions):
            return
        home.is_committing = True
        self.clock.after(self.random.uniform(0.001, 0.008), partial(self._commit_home, home, core))

    def _commit_home(self, home: Home, core: Core, now: float) -> None:
        if home.core is not core:
            return
        if home.crashes_at == "before":
            self.crash(home.number, self.random.uniform(0.1, 1.5), "before a commit")
            return
        self._make_permanent(home)
        if home.crashes_at == "after":
            self.crash(home.number, self.random.uniform(0.1, 1.5), "after a commit")
            return
        home.is_committing = False
        assert home.late is not None
        core.committed(home.late.committed)
        if home.late.committed == len(home.late.batches):
            questions, home.late.questions = home.late.questions, []
            for question in questions:
                core.read_back(home.model.portion(*question), now)
        self.serve(home)

    @staticmethod
    def _make_permanent(home: Home) -> None:
        late = home.late
        assert late is not None
        before = late.committed
        for batch in late.batches[before : late.commit()]:
            for fact in batch:
                home.model.apply(fact)
        home.model.sweep()


def _not_awaited(home: Home) -> int:
    counts = None if home.node is None else home.node.counts
    return 0 if counts is None else counts.order_not_awaited + counts.tails_not_awaited


def plain_settings(name: str) -> Settings:
    """Those of a broker that says nothing of itself."""
    return configured(Settings(name=name, mqtt=Mqtt(sys_interval_s=0)), queue_messages=10_000)


def is_held(conn: Connection | None) -> bool:
    """Whether a client waits for its session."""
    return conn is not None and conn.hold is Hold.HOME
