"""Brokers on a ring that crash around their commits, stand still, join and leave, over links that are cut.

Everything that is left to chance comes from one generator, so a seed is a history.  What a broker's store has applied
survives a crash, whether or not the broker was told; everything else is lost.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Final

from tieline.overlay.ring.dispatch import DISPATCHES
from tieline.overlay.ring.events import Event, RingSubscription, Spaces
from tieline.overlay.ring.identifiers import identifier_of
from tieline.overlay.ring.merging import Digests
from tieline.overlay.ring.messages import Data, Peer
from tieline.overlay.ring.node import RingEnds, RingNode, RingWorld
from tieline.overlay.ring.promises import Batch, Taken
from tieline.overlay.ring.settings import RingSettings
from tieline.sim.clock import Clock
from tieline.sim.ring.workload import spaces

#: What a commit takes, and until a link says that it could not hand something over: at once, or for want of an answer.
_COMMIT_S: Final = 0.005
_RESET_S: Final = 0.02
_SILENT_S: Final = 2.5
SPACES: Final[Spaces] = spaces(4)
#: Quicker than by default, so that a history of some seconds sees many periods.
SETTINGS: Final = RingSettings(stabilise_s=0.5, margin_s=1.25, shrink_s=1.0, again_s=2.0, growth_s=8.0)
#: How a node is made; mutants of the kit make others.
Make = Callable[..., RingNode]


@dataclass(eq=False)
class Message:
    """One publication."""

    text: bytes
    origin: str
    lane: int
    number: int
    at: float
    event: Event
    is_assured: bool
    #: How often its origin had begun when it was published.
    life: int
    is_accepted: bool = False


@dataclass(eq=False)
class Store:
    """What a broker has applied: what it owes, how far it has taken, and what its clients' queues hold."""

    incarnation: int
    numbers: dict[int, int] = field(default_factory=dict)
    owed: dict[tuple[int, int], Batch] = field(default_factory=dict)
    positions: dict[tuple[int, int, int], int] = field(default_factory=dict)
    log: list[bytes] = field(default_factory=list)

    def ends(self, *, has_lived: bool) -> RingEnds:
        owed = tuple(self.owed[key] for key in sorted(self.owed))
        return RingEnds(
            has_lived=has_lived,
            incarnation=self.incarnation,
            owed=owed,
            numbers=self.numbers,
            positions=self.positions,
        )


@dataclass(eq=False)
class Grant:
    """Since when a subscription is acknowledged, and whether everybody had echoed it."""

    subscription: RingSubscription
    life: int
    at: float = 0.0
    is_echoed: bool = False


@dataclass(eq=False)
class Broker:
    """A place where a broker runs: its store and its clients survive it."""

    name: str
    number: int
    store: Store
    node: RingNode | None = None
    life: int = 0
    is_silent: bool = False
    has_left: bool = False
    is_leaving: bool = False
    #: While it stands still, what it has not got; None while it runs.
    standing: list[tuple[Peer, bytes]] | None = None
    #: When it last crashed or stood still for too long.
    away_at: float = 0.0
    crashes_at: str = ""
    grants: list[Grant] = field(default_factory=list)
    given: list[bytes] = field(default_factory=list)

    @property
    def peer(self) -> Peer:
        return Peer(identifier_of(self.name), self.name)


class RingHistory:
    """All brokers of one history."""

    def __init__(self, random: Random, make: Make = RingNode, dispatch: str = "arcs") -> None:
        self.random = random
        self.clock = Clock()
        self.brokers: dict[str, Broker] = {}
        self.messages: list[Message] = []
        self.story: list[str] = []
        self.cuts: set[frozenset[str]] = set()
        self._delays: dict[frozenset[str], float] = {}
        self._make = make
        self._dispatch = dispatch

    def tell(self, text: str) -> None:
        self.story.append(f"{self.clock.now - 1000:7.3f} {text}")

    # -- brokers

    def start(self, name: str, via: str | None) -> Broker:
        """A broker begins, for the first time or again, and joins the ring of another one."""
        broker = self.brokers.get(name)
        if broker is None:
            broker = Broker(name, len(self.brokers), Store(self.random.getrandbits(30)))
            self.brokers[name] = broker
        broker.life += 1
        life = broker.life
        world = RingWorld(
            alarms=_Alarms(self, broker, life),
            send=partial(self._send, broker, life),
            deliver=partial(self._deliver, broker, life),
            commit=partial(self._commit, broker, life),
        )
        broker.node = self._make(
            broker.peer,
            world,
            merging=Digests(SPACES, 200),
            dispatch=DISPATCHES[self._dispatch](),
            spaces=SPACES,
            settings=SETTINGS,
            ends=broker.store.ends(has_lived=life > 1),
        )
        self.tell(f"{name} begins, by {via}")
        broker.node.begin(None if via is None else self.brokers[via].peer, self.clock.now)
        for subscription in {grant.subscription: None for grant in broker.grants}:
            self.subscribe(name, subscription)
        return broker

    def somebody(self, besides: str = "") -> str | None:
        """A broker that runs and is on the ring."""
        names = [
            name
            for name, broker in self.brokers.items()
            if name != besides and broker.node is not None and broker.node.upkeep.is_joined and not broker.is_leaving
        ]
        return self.random.choice(names) if names else None

    def crash(self, name: str, for_s: float, *, is_silent: bool = False) -> None:
        """A broker ends without a word, and begins again after some time."""
        broker = self.brokers[name]
        if broker.node is None or broker.is_leaving:
            return
        self.tell(f"{name} crashes for {for_s:.2f} s{', silently' if is_silent else ''}")
        broker.node, broker.is_silent, broker.standing = None, is_silent, None
        broker.away_at = self.clock.now
        self.clock.after(for_s, partial(self._restart, name))

    def _restart(self, name: str, now: float) -> None:
        via = self.somebody(name)
        if via is None:
            self.clock.after(0.2, partial(self._restart, name))
        else:
            self.start(name, via)

    def stand(self, name: str, for_s: float) -> None:
        """A broker does nothing for some time, and then goes on as if nothing had happened."""
        broker = self.brokers[name]
        if broker.node is None or broker.standing is not None or broker.is_leaving:
            return
        self.tell(f"{name} stands still for {for_s:.2f} s")
        broker.standing = []
        broker.away_at = self.clock.now
        self.clock.after(for_s, partial(self._go_on, broker, broker.life))

    def _go_on(self, broker: Broker, life: int, now: float) -> None:
        if broker.standing is None or broker.life != life or broker.node is None:
            return
        waiting, broker.standing = broker.standing, None
        broker.away_at = now
        for peer, data in waiting:
            broker.node.receive(peer, data, now)

    def leave(self, name: str) -> None:
        """A broker goes for good, once it owes nothing."""
        broker = self.brokers[name]
        if broker.node is None or broker.standing is not None or not broker.node.upkeep.is_joined:
            return
        self.tell(f"{name} leaves")
        broker.is_leaving = True
        broker.node.leave(self.clock.now)
        self._look_left(broker, self.clock.now)

    def _look_left(self, broker: Broker, now: float) -> None:
        if broker.node is not None and broker.node.has_left:
            broker.node, broker.has_left = None, True
            self.tell(f"{broker.name} has left")
        elif broker.node is not None:
            self.clock.after(0.1, partial(self._look_left, broker))

    def cut(self, one: str, other: str, for_s: float) -> None:
        """Nothing gets from one broker to another for some time."""
        pair = frozenset((one, other))
        self.tell(f"{one} and {other} are cut off from each other for {for_s:.2f} s")
        self.cuts.add(pair)
        self.clock.after(for_s, lambda _now: self.cuts.discard(pair))

    # -- clients

    def subscribe(self, name: str, subscription: RingSubscription) -> None:
        broker = self.brokers[name]
        if broker.node is None or broker.standing is not None or broker.is_leaving:
            return
        grant = Grant(subscription, broker.life)
        broker.grants.append(grant)
        broker.node.subscribe(subscription, partial(self._granted, grant), self.clock.now)

    def _granted(self, grant: Grant, now: float, is_echoed: bool) -> None:
        grant.at, grant.is_echoed = now, is_echoed

    def publish(self, name: str, event: Event, lane: int, *, is_assured: bool) -> None:
        broker = self.brokers[name]
        if broker.node is None or broker.standing is not None or broker.is_leaving:
            return
        message = Message(event.payload, name, lane, len(self.messages), self.clock.now, event, is_assured, broker.life)
        if not is_assured:
            self.messages.append(message)
            broker.node.publish([event], lane, self.clock.now)
        elif broker.node.publish_assured([event], lane, partial(self._accepted, message), self.clock.now):
            self.messages.append(message)

    @staticmethod
    def _accepted(message: Message, now: float) -> None:
        message.is_accepted, message.at = True, now

    # -- stores

    def _commit(self, broker: Broker, life: int, batch: Batch, is_owed: bool, then: Callable[[float], None]) -> None:
        def apply() -> None:
            if is_owed:
                broker.store.owed[batch.lane, batch.number] = batch
                broker.store.numbers[batch.lane] = max(batch.number, broker.store.numbers.get(batch.lane, 0))
            else:
                del broker.store.owed[batch.lane, batch.number]

        self.clock.after(_COMMIT_S, partial(self._apply, broker, life, apply, then))

    def _deliver(
        self, broker: Broker, life: int, data: Data, taken: Taken | None, then: Callable[[float], None]
    ) -> None:
        wanted = {grant.subscription for grant in broker.grants}
        texts = [sent.event.payload for sent in data.events if any(one.may_want(sent.event) for one in wanted)]
        if taken is None:
            broker.given += texts
            then(self.clock.now)
            return

        def apply() -> None:
            assert taken is not None
            broker.store.positions[taken.origin, taken.incarnation, taken.lane] = taken.number
            broker.store.log += texts

        self.clock.after(_COMMIT_S, partial(self._apply, broker, life, apply, then))

    def _apply(
        self, broker: Broker, life: int, apply: Callable[[], None], then: Callable[[float], None], now: float
    ) -> None:
        if broker.life != life or broker.node is None:
            return
        crash, broker.crashes_at = broker.crashes_at, ""
        if crash != "before":
            apply()
        if crash:
            self.crash(broker.name, self.random.uniform(0.1, 1.5))
        else:
            then(now)

    # -- links

    def _send(self, sender: Broker, life: int, peer: Peer, data: bytes) -> None:
        pair = frozenset((sender.name, peer.link))
        if pair not in self._delays:
            self._delays[pair] = self.random.uniform(0.002, 0.05)
        self.clock.after(self._delays[pair], partial(self._arrive, sender, life, peer, data, self.clock.now))

    def _arrive(  # a message and where it is from
        self, sender: Broker, life: int, peer: Peer, data: bytes, sent: float, now: float
    ) -> None:
        target = self.brokers.get(peer.link)
        if target is None or target.node is None or frozenset((sender.name, peer.link)) in self.cuts:
            is_silent = target is not None and target.is_silent and target.node is None
            wait = _SILENT_S if is_silent else _RESET_S
            self.clock.after(wait, partial(self._return, sender, life, peer, data, sent))
        elif target.standing is not None:
            target.standing.append((sender.peer, data))
        else:
            target.node.receive(sender.peer, data, now)

    def _return(  # a message and where it was to go
        self, sender: Broker, life: int, peer: Peer, data: bytes, sent: float, now: float
    ) -> None:
        if sender.life == life and sender.node is not None and sender.standing is None:
            sender.node.refused(peer, data, sent, now)


class _Alarms:
    """The clock, for one life of a broker; while it stands still, everything waits."""

    def __init__(self, world: RingHistory, broker: Broker, life: int) -> None:
        self._world, self._broker, self._life = world, broker, life

    def at(self, when: float, action: Callable[[float], None]):  # type: ignore[no-untyped-def]  # the clock's timer
        return self._world.clock.at(max(when, self._world.clock.now), partial(self._call, action))

    def cancel(self, timer) -> None:  # type: ignore[no-untyped-def]  # the clock's timer
        self._world.clock.cancel(timer)

    def _call(self, action: Callable[[float], None], now: float) -> None:
        broker = self._broker
        if broker.life != self._life or broker.node is None:
            return
        if broker.standing is not None:
            self._world.clock.after(0.05, partial(self._call, action))
        else:
            action(now)
