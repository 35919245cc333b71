"""One broker joined with others: where its core and its node meet.

The core tells what its clients want, and the node tells the others.  What the others want is subscribed on the core's
own routes, for one :class:`~tieline.overlay.receivers.destination.Destination` each, so that a message finds brokers as
it finds sessions.  Each item goes to the node once, with all of its destinations; what arrives from others is routed by
:class:`~tieline.core.inbound.from_brokers.FromBrokers`.

A shell calls :meth:`Joined.end_turn` when it has handled what was ready, and writes what the node has to say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final  # Any: values of JSON

from tieline.conf.published import published
from tieline.core.account import Drop
from tieline.core.broker import Broker
from tieline.core.ports import Prospect
from tieline.overlay.agreeing.agreeing import Agreeing
from tieline.overlay.agreeing.inputs import Counting, chances
from tieline.overlay.carrier.ends import Limits
from tieline.overlay.figures import prospect
from tieline.overlay.frames.frame import ERRANDS
from tieline.overlay.grants import Grants
from tieline.overlay.interests.entries import Entry, entry_of
from tieline.overlay.links.patience import Patience
from tieline.overlay.links.shortage import Shortage
from tieline.overlay.may import Fence, May
from tieline.overlay.node import Node
from tieline.overlay.plans import PlanError, PlanPiece, Plans
from tieline.overlay.receivers.destination import Destination
from tieline.overlay.receivers.incoming import Incoming
from tieline.overlay.receivers.orphans import Orphans
from tieline.overlay.receivers.outgoing import Outgoing
from tieline.overlay.receivers.remote import RemoteInterests
from tieline.overlay.receivers.shared_groups import OwnGroups
from tieline.overlay.receivers.turns import Turns
from tieline.overlay.receivers.writing_off import WritingOff
from tieline.overlay.retained.retaining import Retaining, part
from tieline.overlay.sessions.moves import MOVES, Moves
from tieline.overlay.side import Side
from tieline.overlay.strategies import STRATEGIES
from tieline.overlay.strategies.path import Path
from tieline.overlay.strategies.plan import Plan

#: Topics of the broker itself, which do not cross.
_OWN: Final = "$SYS"
#: What few messages wait for; a stream that comes far is acknowledged at once.
ACK_S: Final = 0.002
#: Units of work that the end of a subscription takes, until others hear of it.
_ENDING: Final = 80
#: A round trip of a LAN takes less.
_NEAR_S: Final = 0.01
#: Bytes that wait for a link, as many as for a client; and those that the next hop has not acknowledged, which are what
#: a busy broker reads of its clients between two looks at the link.
_QUEUE_BYTES, _CUSTODY_BYTES = 8 << 20, 4 << 20
#: Bytes of short messages that may come together, and what a frame has beside the longest message of a client.
_RUN, _BESIDE = 1 << 20, 1 << 17


def patience_of(core: Broker, shortage: Shortage) -> Patience:
    """What may wait for one link, and who decides what goes where there is no room."""
    return Patience(
        near_round_trip_s=_NEAR_S,
        queue_bytes=_QUEUE_BYTES,
        custody_bytes=_CUSTODY_BYTES,
        ack_bytes=_CUSTODY_BYTES // 16,
        longest=max(core.settings.limits.packet_bytes, _RUN) + _BESIDE,
        make_policy=shortage.make_policy,
        dropped=shortage.dropped,
        is_short=shortage.is_short,
    )


def _parted(notes: Iterable[tuple[bytes, bytes]]) -> tuple[list[tuple[bytes, bytes]], list[tuple[bytes, bytes]]]:
    """What was noted of sessions that move, and of everything else."""
    moved: list[tuple[bytes, bytes]] = []
    ends: list[tuple[bytes, bytes]] = []
    for note in notes:
        (moved if note[0][0] in MOVES else ends).append(note)
    return moved, ends


class Joined(Side):
    """The neighbours of one core."""

    def __init__(  # what a shell knows and tests choose
        self,
        core: Broker,
        *,
        life: int,
        incarnation: int,
        strategy: str = "path",
        limits: Limits | None = None,
        notes: Iterable[tuple[bytes, bytes]] = (),
        clock_s: float = 0.0,
        wall: Callable[[float], float] | None = None,
        tombstones: tuple[float, int] = (86_400.0, 16 << 20),
    ) -> None:
        """``clock_s`` is what to add to the broker's time to get seconds since 1970, and ``wall`` does so each time;
        ``tombstones`` are how long, and in how many bytes, it is remembered that a retained message was cleared.
        """
        super().__init__(core)
        retained, notes = part(notes)
        planned, notes = Plans.part(notes)
        moved, ends = _parted(notes)
        self.name = core.settings.name
        self._limits = limits or Limits(ack_s=ACK_S)
        self.shortage = shortage = Shortage(core, lambda: self.names)
        self.node = Node(
            self.name,
            self._written.restore(ends),
            self._deliver,
            core.timers,
            incarnation=incarnation,
            life=life,
            limits=self._limits,
            patience=patience_of(core, shortage),
            strategy=STRATEGIES[strategy],
            spend=self._spend,
        )
        self.node.carrier.sender.expired = shortage.expired
        #: By number, as far as they are known.
        self.names = self.node.directory.names
        #: The other brokers as receivers, by number.
        self.destinations: dict[int, Destination] = {}
        self._strategy = strategy
        #: Those that were installed here; followed where the shortest path is gone by otherwise.
        self.plans = Plans(self.node.number_of, self.node.carrier.sender.go_by, self._keep, planned)
        #: Told when this broker goes by a plan that brokers have agreed on.
        self.on_agreed: Callable[[int, float], None] = lambda _epoch, _now: None
        self.agreeing = self._make_agreeing(incarnation)
        self._choose(0.0)
        self.node.interests.cover(optimally=core.settings.overlay.covering == "optimal", now=0.0)
        sender, membership = self.node.carrier.sender, self.node.membership
        tables = self.plans.tables
        #: The gateways of this region.
        self.turns = turns = Turns(self.names)
        self.outgoing = Outgoing(core, sender, membership, self.destinations, self._limits, tables, turns)
        #: What others want, on the routes of the core.
        self.remote = RemoteInterests(core, self.names, self.destinations, self.outgoing, self.node.counts, turns)
        wall = wall or (lambda now: now + core.journal.epoch_s)
        life_s, most_bytes = tombstones
        self.retaining = Retaining(core, self.node, retained, wall=wall, life_s=life_s, most_bytes=most_bytes)
        self.outgoing.convergence = self.retaining.convergence
        addressing = self.outgoing.addressing
        self.incoming = Incoming(core, self.names, self.node, self.destinations, addressing, self.retaining)
        self._orphans = Orphans(core, self.node, self.destinations, self.outgoing.flush)
        #: Brokers that are gone for good, when somebody says so.
        self.writing_off = WritingOff(core, self.node, self._orphans, self.destinations)
        self._rights: dict[int, May] = {}
        self._make_moves(moved, clock_s)
        self._groups = OwnGroups()
        #: Interests that have begun (True) or ended since others were last told.
        self._changes: list[tuple[Entry, bool]] = []
        self.grants = Grants(self.node, core.timers)
        self.grants.declare(published(core.settings), 0.0)
        if not core.journal.is_volatile:
            core.journal.before_seal = self.seal
        core.routes.neighbours = self
        core.meet(self.moves)
        if core.chronicle is not None:
            core.chronicle.beside = self._carried
        self.grants.follow(self.remote.learned)

    def _make_agreeing(self, seed: int) -> Agreeing:
        node = self.node
        node.rounds = made = Agreeing(
            self.name,
            node.membership,
            Counting(self._core, self._check_strategy),
            timers=self._core.timers,
            send=node.send,
            is_end=node.is_end,
            install=self._install_agreed,
            use=self._go_by_agreed,
            chance=chances(seed),
        )
        return made

    def _make_moves(self, notes: list[tuple[bytes, bytes]], clock_s: float) -> None:
        #: Sessions that come and go.
        self.moves = Moves(
            self._core,
            self.node,
            flush=self.outgoing.flush,
            tell_interest=self._tell_soon,
            origin_of=self.incoming.origin,
            rights=self._right,
            is_full=lambda broker: broker in self.destinations and self.destinations[broker].is_full,
            notes=notes,
            clock_s=clock_s,
        )

    def _keep(self, key: bytes, value: bytes | None) -> None:
        if not self._core.journal.is_volatile:
            self._core.journal.note(key, value)

    def use(
        self, strategy: str, now: float, *, covering: str = "optimal", publishes: Iterable[str] | None = None
    ) -> None:
        """Choose links by another strategy from now on; nothing that is under way is lost."""
        self._strategy = strategy
        self._choose(now)
        if not self._core.from_brokers.is_gateway:
            self.grants.declare(publishes, now)
        self.node.announcing.cover(optimally=covering == "optimal", now=now)
        self.moves.settings_changed()

    def _choose(self, now: float) -> None:
        """Go by the plans that are here, or else by the strategy that is configured."""
        tables = self.plans.tables
        name = Plan.name if tables and self._strategy == Path.name else self._strategy
        if name == self.node.carrier.strategy.name:
            return
        if name == Plan.name:
            self.node.use(partial(Plan, tables=tables), now)
        else:
            self.node.use(STRATEGIES[name], now)

    # -- plans

    def take_plan(self, piece: PlanPiece, now: float) -> bool:
        """Take in a piece of a plan; whether the plan is complete here.  Raises PlanError."""
        self._check_strategy()
        is_complete = self.plans.put(piece)
        self._choose(now)
        return is_complete

    def _check_strategy(self) -> None:
        if self._strategy != Path.name:
            raise PlanError(
                f"this broker goes by {self._strategy}; plans are followed by brokers that go by {Path.name}"
            )

    def _install_agreed(self, piece: PlanPiece, now: float) -> None:
        self.take_plan(piece, now)

    def _go_by_agreed(self, epoch: int, now: float) -> None:
        self.go_by_plan(epoch, now)
        self.on_agreed(epoch, now)

    def go_by_plan(self, epoch: int, now: float) -> None:
        """Let what is published here travel by a plan, or by none (0); raises PlanError."""
        self.outgoing.flush(now)
        self.plans.use(epoch)
        self.node.carrier.sender.trust()
        self._choose(now)

    def lost(self, name: str, why: str, text: str) -> None:
        """The shell has lost the connection to a peer, for a reason with a name."""
        link = self.node.links.get(self.node.number_of(name))
        if link is not None:
            link.meter.ended(why, text)

    # -- what clients of this broker want

    def began(self, filter_: str, condition: str | None, share: str | None = None) -> None:
        """A subscription begins: others hear of it soon."""
        self._change(filter_, condition, share, True)

    def ended(self, filter_: str, condition: str | None, share: str | None = None) -> None:
        """A subscription is over: others hear of it after a while."""
        self._change(filter_, condition, share, False)

    def _change(self, filter_: str, condition: str | None, share: str | None, is_new: bool) -> None:
        if filter_ == _OWN or filter_.startswith(f"{_OWN}/"):
            return
        entry = self._entry(filter_, condition, share)
        if share is not None:
            self._groups.note(entry, is_new=is_new)
        if not self._changes:
            self._core.timers.soon(self._tell_soon)
        self._changes.append((entry, is_new))
        self._core.work.did(self.node.interests.substitutes.effort(entry) if is_new else _ENDING)

    def _entry(self, filter_: str, condition: str | None, share: str | None) -> Entry:
        fingerprint = 0 if condition is None else self.remote.meanings.fingerprint(filter_)
        return entry_of(filter_, share=share or "", condition=condition, fingerprint=fingerprint)

    def refusal(self, filter_: str, condition: str | None, share: str, of_session: int) -> str | None:
        """Why a client with so many groups cannot be a member of one more; None if it can."""
        return self._groups.refusal(self._entry(filter_, condition, share), of_session)

    def wait(self, then: Callable[[], None], now: float) -> bool:
        """Whether a reachable broker does not know yet of what has begun."""
        numbers = self._tell(now)
        if not numbers or not self.node.membership.reachable:
            return False
        self.grants.when_known(numbers, then)
        return True

    def prospect(self, name: str, *, is_assured: bool) -> Prospect:
        """What would become of a message for another broker, by the name that routes know it by."""
        number = next((number for number, known in self.destinations.items() if known.client_id == name), 0)
        return prospect(self.node, number, is_assured=is_assured)

    def _tell_soon(self, now: float) -> None:
        self._tell(now)

    def _tell(self, now: float) -> set[int]:
        """Let the node know what has changed; the numbers of what is not granted yet."""
        changes, self._changes = self._changes, []
        if not changes:
            return set()
        return self.grants.want(changes, now)

    # -- what other brokers may

    def limit(self, rights: Mapping[str, May]) -> None:
        """Let nothing else pass to and from some brokers, by name, than they may read and write; all others may all."""
        by_number = {self.node.number_of(name): may for name, may in rights.items()}
        self.node.fences = {
            number: Fence(number, may, self.node.counts, partial(self._denied, self.names[number]))
            for number, may in by_number.items()
        }
        self.node.questions.rights = by_number
        self.remote.limit(by_number)
        self._rights = by_number

    def _right(self, broker: int) -> May | None:
        return self._rights.get(broker)

    def _denied(self, name: str, topic: bytes, messages: int, level: int) -> None:
        """A broker has sent messages that it may not publish."""
        shown = topic.decode(errors="replace").encode()
        self._core.account.drop(self.now, Drop.DENIED, f"broker {name}", shown, messages, level=level)

    def _carried(self) -> list[tuple[str, dict[str, Any]]]:
        """What came from other brokers in a period, for those who read the events."""
        classes = self._core.priorities.classes.names
        carried = self.node.carrier.taker.carried
        return [("carried", {**told, "class": classes[told["level"]]}) for told in carried.take(self.names)]

    # -- turns and commits

    def end_turn(self, now: float) -> None:
        """Everything that was ready has been handled: what was gathered leaves, and what is safe goes on."""
        self.now = now
        self._orphans.look(now)
        self.outgoing.flush(now)
        self.moves.end_turn(now)
        self._settle(now)
        self.outgoing.reckon(now)
        self.shortage.reckon(self.node.links.values(), self.node.kept_bytes + self.moves.registry.kept_bytes)
        self.retaining.account()

    def seal(self) -> None:
        """A batch is handed to the store: what is retained, owed and moved is part of it."""
        self.outgoing.flush(self.now)
        for note in self.retaining.notes(self.now):
            self._core.journal.note(*note)
        self.moves.post.flush(self.now)
        self._seal_node()

    # -- from brokers to clients

    def receive(self, handle: int, data: bytes, now: float) -> bool:
        """As ever; what is said of sessions that move has the same time."""
        self.moves.post.now = now
        return super().receive(handle, data, now)

    def _deliver(self, origin: int, lane: int, parcels: Sequence[bytes]) -> int:
        if lane == ERRANDS:
            taken = self.moves.take(origin, parcels, self.now)
            if taken < len(parcels):
                self.incoming.offer_again_soon()
            return taken
        if not len(self.moves.passages):
            return self.incoming.deliver(origin, lane, parcels, self.now)
        return self.moves.deliver(origin, lane, parcels, self.incoming, self.now)
