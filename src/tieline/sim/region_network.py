"""Many whole brokers joined by wires in virtual time: a core, its node, and the other side of each gateway.

A wire brings bytes in order after its delay, at once or never; what is measured is how many there are.  Brokers keep
nothing: stores would commit at once here, and what they cost is measured elsewhere.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

import msgspec

from tieline.conf.overlay import Overlay
from tieline.conf.schema import Event, Mqtt, Settings
from tieline.core.broker import Broker
from tieline.core.message import Item, Message, Origin, Queued
from tieline.core.receiver import ActiveSubscription, Grant, Outlet
from tieline.core.routing.route import ConditionalSubscription
from tieline.core.timers import Timer
from tieline.match.where import Asked, parse, spell
from tieline.overlay.joined import Joined
from tieline.overlay.node import Node
from tieline.overlay.regions.gateway import Gateway
from tieline.overlay.regions.outside import Outside
from tieline.sim.clock import Clock
from tieline.wire.packets import Subscription

#: TCP and IP around everything that is written at once.
OVERHEAD = 40
_ROOM = 65_536
#: Called with the broker, the message and the time.
Seen = Callable[["PlacedBroker", Message, float], None]


class Reader:
    """A client that is always there and only looks; a :class:`~tieline.core.receiver.Receiver`.

    It inherits from none of the broker's receivers: compiled ones have no heirs.
    """

    is_broker = False
    is_awaited = False
    is_over = False
    is_present = True
    user: str | None = None
    client_id = "reader"

    def __init__(self, look: Callable[[Message, float], None]) -> None:
        self._look = look

    def offer(self, item: Queued, grant: Grant, now: float) -> None:
        """Look at a message."""
        assert isinstance(item, Message)
        self._look(item, now)

    def has_room(self, item: Item, copies: int = 0) -> bool:
        """There always is some."""
        return True

    def lacks_room(self, item: Item) -> bool:
        """There always is some."""
        return False

    def turn_away(self, item: Item, why: object, now: float) -> None:
        """Never called: it has room for everything."""

    @property
    def is_half_empty(self) -> bool:
        """Nobody waits for it."""
        return True

    def promise(self, size: int) -> None:
        """It has room for everything that was promised."""

    def ready_outlet(self, version: int, size: int, grant: Grant) -> Outlet | None:
        """Never past the one who looks."""
        return None

    def redeem(self, size: int) -> None:
        """What was promised came, or never will."""


@dataclass(eq=False)
class Wire:
    """What two nodes are joined by."""

    ends: tuple[Node, Node]
    places: tuple[PlacedBroker, PlacedBroker]
    delay_s: float
    handle: int
    is_cut: bool = False
    #: When the last byte arrives in either direction.
    last: list[float] = field(default_factory=lambda: [0.0, 0.0])

    def other(self, place: PlacedBroker) -> PlacedBroker:
        """Who is at the other end."""
        return self.places[self.places[0] is place]


class PlacedBroker:
    """One broker of a region, or one of its gateways."""

    def __init__(self, network: Network, name: str, region: str, *, is_gateway: bool, life: int) -> None:
        self.network = network
        self.name = name
        self.region = region
        overlay = Overlay(region=region) if is_gateway else Overlay()
        settings = Settings(name=name, mqtt=Mqtt(sys_interval_s=0), overlay=overlay, event=dict(network.events))
        now = network.clock.now
        self.core = core = Broker(settings, now=now)
        incarnation = hash_of(f"{name} {life}")
        self.joined = Joined(core, life=life, incarnation=incarnation)
        self.gateway: Gateway | None = None
        if is_gateway:
            outside = Outside(core, region, life=life, incarnation=incarnation)
            self.gateway = Gateway(core, self.joined, outside, now)
        #: Its only client.
        self.reader = Reader(partial(network.look, self))
        self.wires: dict[int, Wire] = {}
        self.is_alive = True
        self._timer: Timer | None = None
        self._is_woken = False

    @property
    def nodes(self) -> list[Node]:
        """One, or both of a gateway."""
        inside = self.joined.node
        return [inside] if self.gateway is None else [inside, self.gateway.outside.node]

    def want(self, filter_: str, condition: str) -> None:
        """A client asks for what meets a condition."""
        predicate, reader = parse(condition), self.reader
        options = Subscription(filter=spell(Asked(None, filter_, condition)), qos=2)
        wanted: ActiveSubscription = ConditionalSubscription(
            options, 0, reader, None, filter_, predicate, self.core.references
        )
        self.core.routes.subscribe(reader, None, filter_, wanted)
        self.wake()

    def when_known(self, then: Callable[[], None]) -> None:
        """Have something done when everybody in reach knows what is wanted here."""
        if not self.joined.wait(then, self.network.clock.now):
            then()
        self.wake()

    def publish(self, topic: bytes, payload: bytes, qos: int) -> None:
        """Have the core take a message as if a client of it had published that."""
        core, now = self.core, self.network.clock.now
        level = core.priorities.default_level
        message = Message(topic, payload, qos, origin=Origin(f"client of {self.name}"), level=level, at=now)
        core.from_brokers.message(message, now)
        self.wake()

    def arrive(self, wire: Wire, node: Node, data: bytes, _now: float) -> None:
        """Bytes have come over a wire."""
        if wire.is_cut or not self.is_alive:
            return
        side = self.joined if node is self.joined.node or self.gateway is None else self.gateway.outside
        now = self.network.clock.now
        is_behind = side.receive(wire.handle, data, now)
        while is_behind:  # a turn takes no time, so nobody waits for the rest
            is_behind = side.go_on(wire.handle, now)
        self.wake()

    def wake(self) -> None:
        """A turn comes at this moment."""
        if not self._is_woken and self.is_alive:
            self._is_woken = True
            self.network.clock.after(0.0, self._turn)

    def _turn(self, now: float) -> None:
        self._is_woken = False
        if not self.is_alive:
            return
        core = self.core
        core.tick(now)
        (self.joined if self.gateway is None else self.gateway).end_turn(now)
        for node in self.nodes:
            for handle in list(node.doomed):
                self.network.cut(self.wires[handle])
            for handle in list(node.dirty):
                self._write(node, handle, now)
        due = core.timer()
        if due is not None and (self._timer is None or self._timer.action is None or self._timer.when > due):
            self.network.clock.cancel(self._timer)
            self._timer = self.network.clock.at(max(due, now), self._turn)

    def _write(self, node: Node, handle: int, now: float) -> None:
        wire = self.wires[handle]
        way = wire.ends.index(node)
        while handle in node.dirty and (data := node.fill(handle, _ROOM, now)):
            region = self.region if node is self.joined.node else ""
            self.network.written[region] += len(data) + OVERHEAD
            when = wire.last[way] = max(wire.last[way], now + wire.delay_s)
            self.network.clock.at(when, partial(wire.places[1 - way].arrive, wire, wire.ends[1 - way], data))

    def end(self) -> None:
        """The broker is switched off."""
        self.is_alive = False
        self.network.clock.cancel(self._timer)
        for wire in list(self.wires.values()):
            self.network.cut(wire)


class Network:
    """All places, and the wires between them."""

    def __init__(self, events: Mapping[str, Event], look: Seen) -> None:
        """``look`` is told of each message that a client gets."""
        self.clock = Clock()
        self.look = look
        self.events = events
        self.places: list[PlacedBroker] = []
        #: By region, the bytes that were written to its links; under no name, to those between gateways.
        self.written: Counter[str] = Counter()
        self._handles = 0

    def add(self, name: str, region: str, *, is_gateway: bool = False, life: int = 1) -> PlacedBroker:
        """Let one more broker begin, which is joined with nobody yet."""
        place = PlacedBroker(self, name, region, is_gateway=is_gateway, life=life)
        self.places.append(place)
        place.wake()
        return place

    def join(self, one: PlacedBroker, other: PlacedBroker, delay_s: float, *, are_regions: bool = False) -> None:
        """A wire between two brokers of a region, or between gateways."""
        self._handles += 1
        side = -1 if are_regions else 0
        wire = Wire((one.nodes[side], other.nodes[side]), (one, other), delay_s, self._handles)
        for place, node in zip(wire.places, wire.ends, strict=True):
            place.wires[wire.handle] = wire
            node.opened(wire.handle, self.clock.now)
            place.wake()

    def cut(self, wire: Wire) -> None:
        """A wire is no more, and both ends know."""
        if wire.is_cut:
            return
        wire.is_cut = True
        for place, node in zip(wire.places, wire.ends, strict=True):
            del place.wires[wire.handle]
            node.closed(wire.handle, self.clock.now)
            place.wake()


def hash_of(text: str) -> int:
    """A number of 63 bits that is the same in every run."""
    return int.from_bytes(msgspec.json.encode(text)[-24:], "big") * 0x9E3779B97F4A7C15 % (1 << 63)
