"""One broker joined with others: where its core and its node meet.

The core tells what its clients want, and the node tells the others.  What the others want is subscribed on the core's
own routes, for one :class:`~tieline.overlay.destination.Destination` each, so that a message finds brokers as it finds
sessions.  Each item goes to the node once, with all of its destinations; what arrives from others is routed by
:class:`~tieline.core.inbound.from_brokers.FromBrokers`.

A shell calls :meth:`Joined.end_turn` when it has handled what was ready, and writes what the node has to say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Final
from zlib import crc32

import msgspec

from tieline.core.account import Drop, Event
from tieline.core.broker import Broker
from tieline.core.holdings import Kind as HeldKind
from tieline.core.message import Item, Message, Origin, Queued
from tieline.core.receiver import ActiveSubscription
from tieline.core.routing.route import ConditionalSubscription
from tieline.match.where import Asked, ExpressionError, Predicate, parse, spell
from tieline.overlay.destination import Destination
from tieline.overlay.entries import Entries, Entry, entry_of
from tieline.overlay.fields import BadFrame
from tieline.overlay.frame import lane_of
from tieline.overlay.limits import LONGEST, Limits
from tieline.overlay.links import Patience
from tieline.overlay.may import Fence, May
from tieline.overlay.node import Node
from tieline.overlay.notes import Notes
from tieline.overlay.parcel import Run, Writing, read_parcel, write_run
from tieline.overlay.strategies import STRATEGIES
from tieline.wire.packets import Subscription

#: What is wanted of others until the core says which QoS its clients have asked for.
_QOS: Final = 2
#: Topics of the broker itself, which do not cross.
_OWN: Final = "$SYS"
#: Publishers of other brokers that are remembered.
_ORIGINS: Final = 10_000
#: What few messages wait for; a stream that comes far is acknowledged at once.
_ACK_S: Final = 0.002
#: Bytes that are owed to a broker that keeps up, as with the queue of a client.
_KEEPS_UP: Final = 65_536
#: Bytes of each level that wait for a link, as many as for a client; and those that the next hop has not acknowledged,
#: which are what a busy broker reads of its clients between two looks at the link.
_QUEUE_BYTES, _CUSTODY_BYTES = 8 << 20, 4 << 20


class Joined:
    """The neighbours of one core."""

    def __init__(
        self,
        core: Broker,
        *,
        life: int,
        incarnation: int,
        strategy: str = "path",
        limits: Limits | None = None,
        notes: Iterable[tuple[bytes, bytes]] = (),
    ) -> None:
        self._core = core
        self._notes = Notes()
        self.name = core.settings.name
        self._limits = limits or Limits(ack_s=_ACK_S)
        self.node = Node(
            self.name,
            self._notes.restore(notes),
            self._deliver,
            core.timers,
            incarnation=incarnation,
            life=life,
            limits=self._limits,
            patience=Patience(queue_bytes=_QUEUE_BYTES, custody_bytes=_CUSTODY_BYTES),
            strategy=STRATEGIES[strategy],
        )
        #: Of the event types by which conditions are meant here.
        self._fingerprint = crc32(msgspec.json.encode(core.settings.event))
        self._now = 0.0
        #: By number, as far as they are known.
        self.names = self.node.directory.names
        self.destinations: dict[int, Destination] = {}
        #: By broker, what it wants and what of that it may have.
        self._wants: dict[int, dict[Entry, tuple[Entry, ...]]] = {}
        #: By broker, what it may have: for how many of its wants, and how it is subscribed here.
        self._subscribed: dict[int, dict[Entry, tuple[int, str, ActiveSubscription]]] = {}
        #: By broker, its rights, where it has not all.
        self._rights: dict[int, May] = {}
        self._origins: dict[tuple[int, str], Origin] = {}
        #: Interests that have begun (True) or ended since others were last told.
        self._changes: list[tuple[Entry, bool]] = []
        #: What waits until others know of some subscriptions, by the numbers of those.
        self._waiting: list[tuple[set[int], Callable[[], None]]] = []
        #: The item whose destinations are gathered, and those.
        self._item: Queued | None = None
        self._wanted: list[int] = []
        #: The publisher of the last item, and the lanes into which its messages go.
        self._publisher: Origin | None = None
        self._spread = 0
        #: Parcels for the same destinations in the same lane, which leave together; the last one may still grow.
        self._lane = 0
        self._to: list[int] = []
        self._parcels: list[bytes] = []
        self._growing: Writing | None = None
        self._items: list[Queued] = []
        #: Bytes that are owed, as the account of what is kept has them.
        self._accounted = 0
        #: Brokers to which more is owed since the last turn.
        self._charged: set[int] = set()
        if not core.journal.is_volatile:
            core.journal.before_seal = self._seal
        core.routes.neighbours = self
        self.node.interests.watch(self._learned)

    def use(self, strategy: str, now: float) -> None:
        """Choose links by another strategy from now on; nothing that is under way is lost."""
        if strategy != self.node.carrier.strategy.name:
            self.node.use(STRATEGIES[strategy], now)

    # -- what clients of this broker want

    def began(self, filter_: str, condition: str | None) -> None:
        """A subscription begins: others hear of it soon."""
        self._change(filter_, condition, True)

    def ended(self, filter_: str, condition: str | None) -> None:
        """A subscription is over: others hear of it after a while."""
        self._change(filter_, condition, False)

    def _change(self, filter_: str, condition: str | None, is_new: bool) -> None:
        if filter_ == _OWN or filter_.startswith(f"{_OWN}/"):
            return
        entry = entry_of(filter_, condition=condition, fingerprint=self._fingerprint)
        if not self._changes:
            self._core.timers.soon(self._tell_soon)
        self._changes.append((entry, is_new))

    def wait(self, then: Callable[[], None], now: float) -> bool:
        """Whether a reachable broker does not know yet of what has begun."""
        numbers = self._tell(now)
        if not numbers or not self.node.membership.reachable:
            return False
        self._waiting.append((numbers, then))
        return True

    def _tell_soon(self, now: float) -> None:
        self._tell(now)

    def _tell(self, now: float) -> set[int]:
        """Let the node know what has changed; the numbers of what is not granted yet."""
        changes, self._changes = self._changes, []
        if not changes:
            return set()
        numbers = self.node.change([(entry, _QOS, is_new) for entry, is_new in changes], now)
        return set(numbers) - self._take_grants()

    def _take_grants(self) -> set[int]:
        granted = {grant.number for grant in self.node.granted}
        self.node.granted.clear()
        if granted and self._waiting:
            still = []
            for numbers, then in self._waiting:
                numbers -= granted
                if numbers:
                    still.append((numbers, then))
                else:
                    then()
            self._waiting = still
        return granted

    # -- what other brokers want

    def _learned(self, number: int, added: Entries, removed: frozenset[Entry]) -> None:
        """A broker wants something else than before: it is on the routes before it is echoed."""
        destination = self.destinations.get(number)
        if destination is None:
            name = self.names[number]
            destination = self.destinations[number] = Destination(number, name, self)
        wants = self._wants.setdefault(number, {})
        rights = self._rights.get(number)
        for entry in added:
            if entry not in wants and not entry.share:
                wants[entry] = (entry,) if rights is None else rights.read.narrow(entry)
                self._hold(destination, wants[entry])
        # a set of both would be no frozenset, which compiled code takes it for
        for entry in [entry for entry in removed if entry in wants]:
            self._release(destination, wants.pop(entry))

    def _hold(self, destination: Destination, entries: tuple[Entry, ...]) -> None:
        """Have a broker on the routes of some entries; several of its wants may come to the same."""
        held = self._subscribed.setdefault(destination.number, {})
        for entry in entries:
            if entry in held:
                times, spelled, subscription = held[entry]
                held[entry] = times + 1, spelled, subscription
            else:
                held[entry] = 1, *self._subscribe(destination, entry)

    def _release(self, destination: Destination, entries: tuple[Entry, ...]) -> None:
        held = self._subscribed[destination.number]
        for entry in entries:
            times, spelled, subscription = held.pop(entry)
            if times > 1:
                held[entry] = times - 1, spelled, subscription
            else:
                self._core.routes.cancel(destination, spelled, subscription)

    def limit(self, rights: Mapping[str, May]) -> None:
        """Let nothing else pass to and from some brokers, by name, than they may read and write; all others may all."""
        self._rights = {self.node.number_of(name): may for name, may in rights.items()}
        self.node.fences = {
            number: Fence(number, may, self.node.counts, partial(self._denied, self.names[number]))
            for number, may in self._rights.items()
        }
        for number, wants in self._wants.items():
            destination, may = self.destinations[number], self._rights.get(number)
            for entry, had in list(wants.items()):
                wants[entry] = (entry,) if may is None else may.read.narrow(entry)
                if wants[entry] != had:
                    self._hold(destination, wants[entry])
                    self._release(destination, had)

    def _denied(self, name: str, topic: bytes, messages: int, level: int) -> None:
        """A broker has sent messages that it may not publish."""
        shown = topic.decode(errors="replace").encode()
        self._core.account.drop(self._now, Drop.DENIED, f"broker {name}", shown, messages, level=level)

    def _subscribe(self, destination: Destination, entry: Entry) -> tuple[str, ActiveSubscription]:
        predicate = self._predicate(destination, entry)
        spelled = entry.filter if predicate is None else spell(Asked(None, entry.filter, entry.condition))
        options = Subscription(filter=spelled, qos=2, retain_as_published=True)
        subscription = ActiveSubscription(options, 0)
        if predicate is not None:
            subscription = ConditionalSubscription(
                options, 0, destination, None, entry.filter, predicate, self._core.references
            )
        self._core.routes.subscribe(destination, None, entry.filter, subscription)
        return spelled, subscription

    def _predicate(self, destination: Destination, entry: Entry) -> Predicate | None:
        """The condition of an entry; None without one, or where only the broker that asks can tell what it means."""
        if not entry.condition or entry.fingerprint != self._fingerprint:
            return None
        try:
            return parse(entry.condition)
        except ExpressionError as error:
            text = f"condition: {error}"
            self._core.account.tell(Event("interest_refused", destination.client_id, "", text, is_trouble=True))
            return None

    # -- from clients to brokers

    def collect(self, item: Queued, number: int, now: float) -> None:
        """One more broker wants an item."""
        if item.qos:
            self._core.journal.expected += 1  # its acknowledgement waits for what is owed
        if item is self._item:
            self._wanted.append(number)
            return
        self._close_item(now)
        self._item, self._wanted = item, [number]

    def _close_item(self, now: float) -> None:
        item = self._item
        if item is None:
            return
        self._item = None
        if item.origin is not self._publisher:
            self._publisher, self._spread = item.origin, crc32(item.origin.client.encode())
        lane = lane_of(item.level, item.qos > 0, self._spread)
        if lane != self._lane or self._wanted != self._to:
            self._send(now)
            self._lane, self._to = lane, self._wanted
        if not isinstance(item, Message):
            self._close_parcel()
            self._parcels.append(write_run(item))
        else:
            if item.size > LONGEST:
                self._send(now)  # the others shall not be refused with it
            growing = self._growing
            if growing is None or not growing.takes(item):
                self._close_parcel()
                growing = self._growing = Writing(item)
            growing.add(item, now)
        self._items.append(item)

    def _close_parcel(self) -> None:
        growing = self._growing
        if growing is not None:
            self._growing = None
            self._parcels.append(growing.done())

    def _send(self, now: float) -> None:
        self._close_parcel()
        if not self._parcels:
            return
        parcels, items = tuple(self._parcels), self._items
        self._parcels, self._items = [], []
        self._charged.update(self._to)
        if not self.node.carrier.sender.publish(self._lane, parcels, frozenset(self._to), now):
            for item in items:
                why, names = Drop.QUEUE_FULL, [self.destinations[number].client_id for number in self._to]
                topic = getattr(item, "topic", b"")
                for name in names:
                    self._core.account.drop(now, why, name, topic, item.messages, level=item.level, since=item.at)
        sender = self.node.carrier.sender
        for number in self._to:
            if sender.owed_bytes.get(number, 0) >= self._limits.owed_bytes:
                self.destinations[number].is_full = True  # at once, and not at the end of a long turn

    def end_turn(self, now: float) -> None:
        """Everything that was ready has been handled: what was gathered leaves, and what is safe goes on."""
        self._now = now
        self._close_item(now)
        self._send(now)
        self._settle(now)
        charged, self._charged = self._charged, set()
        self._account()
        for number, destination in self.destinations.items():
            if destination.is_full or number in charged:
                destination.is_full = self._owes_much(destination)
            if destination.is_awaited and not destination.is_full:
                self._core.holds.release_publishers(destination, now)

    def _settle(self, now: float) -> None:
        if self._core.journal.is_volatile:
            while (sealed := self.node.seal()) is not None:
                self.node.committed(sealed[0], now)
        self._take_grants()

    def _seal(self) -> None:
        """A batch is handed to the store: what is owed, and how far streams have come, are part of it."""
        self._close_item(self._now)
        self._send(self._now)
        sealed = self.node.seal()
        if sealed is None:
            return
        token, facts = sealed
        journal = self._core.journal
        for key, value in self._notes.write(facts):
            journal.note(key, value)
        journal.then(partial(self._committed, token))

    def _committed(self, token: int) -> None:
        self.node.committed(token, self._now)

    def _owes_much(self, destination: Destination) -> bool:
        """Whether so much is owed to a broker that nothing more should be accepted for it, reachable or not.

        Once that is so, half of it has to be settled first.  Where all memory is taken, whoever does not keep up is
        full, as with the queues of clients.
        """
        sender, number = self.node.carrier.sender, destination.number
        if sender.owes_much(number, 0.5 if destination.is_full else 1.0):
            return True
        return sender.owed_bytes.get(number, 0) > _KEEPS_UP and self._core.holdings.refusal(0) is not None

    def _account(self) -> None:
        owed = sum(self.node.carrier.sender.owed_bytes.values())
        if owed != self._accounted:
            self._core.holdings.broker.take(HeldKind.OWED, owed - self._accounted)
            self._accounted = owed

    def turn_away(self, name: str, item: Item, why: Drop, now: float) -> None:
        """Name what a broker should have got and does not get."""
        self._core.account.drop(now, why, name, item.topic, item.messages, level=item.level, since=item.at)

    # -- from brokers to clients

    def receive(self, handle: int, data: bytes, now: float) -> None:
        """Bytes have come from a peer."""
        self._now = now
        self.node.receive(handle, data, now)
        self._settle(now)

    def _deliver(self, origin: int, lane: int, parcels: Sequence[bytes]) -> int:
        inlet, now = self._core.from_brokers, self._now
        for parcel in parcels:
            if not parcel:
                self.node.counts.missing += 1
                continue
            try:
                item = read_parcel(parcel, partial(self._origin, origin), now)
            except BadFrame as error:
                self._refuse(origin, str(error))
                continue
            if isinstance(item, Run):
                refused = not inlet.run(item.packets, item.version, item.origin, item.level, now)
            else:
                refused = False
                for message in item:
                    refused |= not inlet.message(message, now)
            if refused:
                self._refuse(origin, "a message that no client could have sent")
        return len(parcels)

    def _refuse(self, origin: int, text: str) -> None:
        self.node.counts.bad_parcels += 1
        name = self.names[origin]
        self._core.account.tell(Event("parcel_refused", f"broker {name}", "", text, is_trouble=True))

    def _origin(self, broker: int, client: str) -> Origin:
        origin = self._origins.get((broker, client))
        if origin is None:
            if len(self._origins) >= _ORIGINS:
                self._origins.clear()
            owner = self._core.holdings.owner(None)
            name = self.names[broker]
            origin = self._origins[broker, client] = Origin(client, 0, owner, name)
        return origin
