"""Sessions that move between joined brokers: claimed where their client comes, handed over whole, followed by the rest.

Theory of operation
-------------------
A client comes to B, and the registry says that A keeps its session.  B sends A a *claim*.  A ends its connection to
that client, if it has one, takes the session out and sends it: state, packet ids in use, what waits.  From then on a
stand-in at A passes on what still comes for the session.  When its state is at B, B asks every origin for its *mark*
(:mod:`tieline.overlay.sessions.passage`), and tells A when it needs nothing more.  CONNACK leaves B once the state is
there, and what the client had published at A has been taken by those who were to get it, so that it stays in order.

An old home forwards a claim to where the session went.  A claim that is older than the last connection is declined.  A
session of another user is not handed over, nor one that is subscribed to what the claimant may not read.

Where nobody answered in time, a client has two sessions.  The later epoch keeps its own.  The other broker ends its
connection and hands over what waited and was never sent; subscriptions and packet ids are not merged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from tieline.conf.quantities import bound
from tieline.core.account import Event
from tieline.core.broker import Broker
from tieline.core.client import Connection, Session
from tieline.core.message import Origin
from tieline.core.ports import Refused
from tieline.overlay.frames.fields import BadFrame, Reader, put
from tieline.overlay.may import May
from tieline.overlay.node import Node
from tieline.overlay.receivers.incoming import Incoming
from tieline.overlay.sessions.arrivals import Arrivals
from tieline.overlay.sessions.claims import WAIT_S, Claims
from tieline.overlay.sessions.departures import Departures
from tieline.overlay.sessions.draining import Draining
from tieline.overlay.sessions.errands import (
    AskMark,
    Claim,
    Complete,
    Declined,
    Done,
    Errand,
    Flying,
    Homes,
    Invite,
    Mark,
    Marked,
    Merged,
    NotYet,
    Ready,
    Reference,
    State,
    Subscriptions,
    Tail,
    TailEnd,
    Waiting,
    count_entries,
    read_errand,
)
from tieline.overlay.sessions.passage import HERE
from tieline.overlay.sessions.passage_notes import HELD, PART, PASSAGE
from tieline.overlay.sessions.passages import Passages
from tieline.overlay.sessions.post import Post
from tieline.overlay.sessions.references import References
from tieline.overlay.sessions.registry import CLEAN, Registry
from tieline.wire.reason import Reason

#: The kind of note that holds the epoch of a session.
EPOCH: Final = b"E"[0]
#: All kinds of notes that are about sessions.
MOVES: Final = frozenset((EPOCH, PASSAGE, PART, HELD))
#: How long news wait for more of them, and how often what does not happen by itself is looked after.
_GATHER_S, _LOOK_S, _LOOK_EACH_S = 0.02, 0.25, 0.001
#: Bytes that may be owed to a broker before it is told more news.
_BUSY: Final = 1 << 20
#: What an errand, and each thing that it speaks of, counts towards the work of a turn; a subscription beside what the
#: core counts for it.
_WORK_PER_ERRAND, _WORK_PER_ENTRY, _WORK_PER_SUBSCRIPTION = 300, 40, 600
#: Sessions that are fetched at a time because somebody has offered them.
_MOST_INVITED: Final = 1_000
#: What a broker with rights may send without being asked.
_FROM_LIMITED: Final = (Claim, Homes, AskMark, Mark, NotYet, Done, Declined, Tail, TailEnd, Merged)


class Moves:
    """What one broker knows of sessions at others, and does about them; an Elsewhere of its core."""

    def __init__(  # a session that moves touches core and node alike
        self,
        core: Broker,
        node: Node,
        *,
        flush: Callable[[float], None],
        tell_interest: Callable[[float], None],
        origin_of: Callable[[int, str], Origin],
        rights: Callable[[int], May | None],
        is_full: Callable[[int], bool],
        notes: Iterable[tuple[bytes, bytes]],
        clock_s: float = 0.0,
    ) -> None:
        self._core = core
        self._node = node
        self._rights = rights
        self.post = Post(node, flush, clock_s)
        self.registry = Registry()
        self.passages = Passages(
            core,
            node.broker,
            counts=node.counts,
            name_of=self.post.name,
            origin_of=origin_of,
            position=self.post.position,
            tell=self.post.tell,
            may_read=self._may_read,
            is_full=is_full,
        )
        self.claims = Claims(core, node.counts)
        self._departures = Departures(
            core,
            self.post,
            self.registry,
            self.passages,
            counts=node.counts,
            rights=rights,
            forget=self._forget,
            is_gone=self._is_gone,
            is_claimed=self.claims.is_awaited,
        )
        self._arrivals = Arrivals(
            core,
            self.post,
            self.registry,
            self.passages,
            self.claims,
            counts=node.counts,
            origin_of=origin_of,
            tell_interest=tell_interest,
            keep=self._keep,
        )
        #: Whether this broker is emptied for maintenance.
        self.draining = Draining(core, self.post, self.registry, self.passages, self._tell_soon)
        #: Where clients go that cannot stay.
        self._references = References(self.post, lambda: "" if self.draining.is_on else core.settings.overlay.reference)
        self._notes = list(notes)
        #: Who was in reach at the end of the last turn, and since when others have not been.
        self._seen: frozenset[int] | None = None
        self._away_since: dict[int, float] = {}
        #: How many brokers were known when all sessions on their way here waited for each of them.
        self._named = 0
        self._news_due = False
        self._looks = False
        #: Until when nobody relies on not having heard of a session.
        self._informed_at: float | None = None
        self._handlers: dict[type[tuple[object, ...]], Callable[..., None]] = {
            State: self._arrivals.state,
            AskMark: self._arrivals.ask_mark,
            Mark: self._arrivals.mark,
            NotYet: self._arrivals.not_yet,
            TailEnd: self._arrivals.tail_end,
            Complete: self._arrivals.complete,
            Claim: self._departures.claimed,
        }
        node.on_renewed = self._renewed
        self.passages.on_arrived = self._arrived

    def _may_read(self, broker: int, topic: bytes) -> bool:
        rights = self._rights(broker)
        return rights is None or rights.read.has(topic)

    # -- as the core's Elsewhere

    def seek(self, conn: Connection, now: float, *, is_clean: bool) -> Refused | None:
        """Fetch the session of a client that another broker keeps; raises Again meanwhile."""
        self.post.now = now
        assert conn.login is not None
        client_id, user = conn.login.client_id, conn.login.user
        verdict = self.claims.verdict(conn, client_id)
        if self.draining.is_on:
            return Refused("this broker is emptied for maintenance", Reason.USE_ANOTHER_SERVER)
        if verdict is not None:
            return verdict if isinstance(verdict, Refused) else None
        if is_clean:
            return None
        if client_id in self.claims.pending:
            self.claims.pending[client_id].latest = self.registry.tick(self.post.now_ms)
            self.claims.wait(client_id, conn, now)
        found = self.registry.find(client_id)
        if found is not None and found[1] > self.registry.epoch(client_id):
            self._claim(client_id, user, found[0], conn, now)
            self.claims.wait(client_id, conn, now)
        elif found is None and client_id not in self._core.sessions and not self._is_informed(now):
            self.claims.begin(client_id, 0, 0, user, conn, now)
            self._look_soon(now)
            self.claims.wait(client_id, conn, now)
        return None

    def _claim(self, client_id: str, user: str | None, broker: int, conn: Connection | None, now: float) -> None:
        epoch = self.registry.tick(self.post.now_ms)
        self.claims.begin(client_id, broker, epoch, user, conn, now)
        self.post.tell(broker, Claim(client_id, user, epoch, self._node.name, 0))

    def _is_informed(self, now: float) -> bool:
        """Whether every broker that is known has said which sessions it keeps, or was waited for."""
        if self._informed_at is None:
            self._informed_at = now + WAIT_S
        return now >= self._informed_at or all(broker in self.registry.whole for broker in self.post.others)

    def reference(self) -> str:
        """Where a client may go that cannot stay here; empty if no broker in reach has said so."""
        return self._references.next()

    def reference_of(self, broker: int) -> str:
        """Where clients reach a broker; empty if it is out of reach, or has not said so."""
        return self._references.of(broker)

    def attached(self, session: Session, now: float, *, is_clean: bool) -> None:
        """A client was let in: whatever other brokers have under its id is over."""
        self.post.now = now
        epoch = self.registry.tick(self.post.now_ms)
        self._keep(session.client_id, epoch, is_kept=session.expiry_s > 0, is_clean=is_clean)

    def _keep(self, client_id: str, epoch: int, *, is_kept: bool = True, is_clean: bool = False) -> None:
        self.registry.put(client_id, epoch, is_kept=is_kept, is_clean=is_clean)
        if is_kept and not self._core.journal.is_volatile:
            session = self._core.sessions.get(client_id)
            moves = 0 if session is None else session.origin.moves
            self._core.journal.note(bytes((EPOCH,)) + client_id.encode(), put(epoch, moves))
        self._tell_soon()

    def ended(self, session: Session) -> None:
        """A session is over."""
        self.passages.session_ended(session.client_id)
        self._forget(session.client_id)

    def _forget(self, client_id: str) -> None:
        """A session is not this broker's any more."""
        self.registry.remove(client_id)
        if not self._core.journal.is_volatile:
            self._core.journal.note(bytes((EPOCH,)) + client_id.encode(), None)
        self._tell_soon()

    def restored(self, now: float) -> float:
        """The sessions of the predecessor are back: what was under way goes on."""
        self.post.now = now
        notes, self._notes = self._notes, []
        epochs: dict[str, int] = {}
        for key, value in notes:
            if key[0] == EPOCH:
                client_id, reader = key[1:].decode(), Reader(value)
                epochs[client_id] = reader.integer()
                if client_id in self._core.sessions and not reader.is_over:
                    self._core.sessions[client_id].origin.moves = reader.integer()
        self.passages.restore([note for note in notes if note[0][0] != EPOCH], now)
        for passage in self.passages.leaving.values():
            self.registry.heard(passage.after_epoch, passage.after_epoch)
            self.registry.moved(passage.client_id, passage.after, passage.after_epoch)
            self._departures.resume(passage, now)
        # behind those that have left: some of them have come back since
        for client_id, session in self._core.sessions.items():
            self.registry.put(client_id, epochs.get(client_id, 1), is_kept=session.expiry_s > 0)
        for epoch in epochs.values():
            self.registry.heard(epoch, epoch)
        self._named = 0
        self._core.timers.soon(self._resume)
        return now + WAIT_S if self.post.others else now

    def _resume(self, now: float) -> None:
        for passage in list(self.passages.arriving.values()):
            if passage.is_complete:
                self._arrivals.ask_all(passage, now)
        self._look_soon(now)

    # -- errands

    def take(self, source: int, parcels: Sequence[bytes], now: float) -> int:
        """Run the errands that a broker has sent, as many as others can wait for: how many that were."""
        self.post.now = now
        work = self._core.work
        self._look_soon(now)
        for place, parcel in enumerate(parcels):
            if place and work.is_spent():
                return place
            work.did(_WORK_PER_ERRAND)
            if not parcel:
                self._node.counts.missing += 1  # it was written off
                continue
            try:
                errand, message = read_errand(parcel)
                each = _WORK_PER_SUBSCRIPTION if isinstance(errand, Subscriptions) else _WORK_PER_ENTRY
                work.did(count_entries(errand) * each)
                self._run(errand, message, source, now)
            except BadFrame as error:
                self._node.counts.bad_errands += 1
                name = f"broker {self.post.name(source)}"
                self._core.account.tell(Event("errand_refused", name, "", str(error), is_trouble=True))
        return len(parcels)

    def _run(self, errand: Errand, message: bytes, source: int, now: float) -> None:
        if self._rights(source) is not None and not self._is_asked(errand, source):
            self._node.counts.bad_errands += 1
            return
        if isinstance(errand, Homes):
            self._learn(errand, source, now)
        elif isinstance(errand, Tail):
            self._arrivals.tail(errand, message, source, now)
        elif isinstance(errand, Waiting):
            self._arrivals.waiting(errand, message, source, now)
        elif isinstance(errand, Flying):
            self._arrivals.flying(errand, message, source, now)
        elif isinstance(errand, Merged):
            self._arrivals.merged(errand, message, source, now)
        elif isinstance(errand, Subscriptions):
            self._arrivals.subscriptions(errand)
        elif isinstance(errand, Ready):
            self.claims.ready(errand.client_id, errand.epoch)
        elif isinstance(errand, Declined):
            self.claims.declined(errand.client_id, errand.epoch, errand.why)
        elif isinstance(errand, Marked):
            self._arrivals.marked(errand, now)
        elif isinstance(errand, Invite):
            self._invited(errand, source, now)
        elif isinstance(errand, Reference):
            self._references.learn(source, errand.where)
        elif isinstance(errand, Done):
            self.passages.done(errand.client_id, errand.epoch)
            self.registry.followed(errand.client_id, errand.epoch)
        else:
            self._handlers[type(errand)](errand, source, now)

    def _is_asked(self, errand: Errand, source: int) -> bool:
        """Whether a broker with rights may send this: a session only if it was asked for one."""
        if isinstance(errand, _FROM_LIMITED):
            return True
        if isinstance(errand, State):
            claim = self.claims.pending.get(errand.client_id)
            return claim is not None and claim.broker == source and claim.user == errand.user
        if isinstance(errand, Ready):
            claim = self.claims.pending.get(errand.client_id)
            return claim is not None and claim.broker == source
        if isinstance(errand, Subscriptions | Flying | Complete | Marked | Waiting):
            passage = self.passages.of(errand.client_id, errand.epoch)
            return passage is not None and passage.before == source
        return False

    def _invited(self, errand: Invite, source: int, now: float) -> None:
        """A broker that is emptied offers its sessions: they are fetched as if their clients had come."""
        limit = bound(self._core.settings.limits.sessions)
        for client_id, user, _epoch in errand.entries:
            pending = len(self.claims.pending)
            has_room = pending < _MOST_INVITED and len(self._core.sessions) + pending < limit
            is_here = client_id in self._core.sessions or client_id in self.claims.pending
            if has_room and not is_here and not self.draining.is_on:
                self._claim(client_id, user, source, None, now)

    # -- news

    def _learn(self, homes: Homes, source: int, now: float) -> None:
        is_limited = self._rights(source) is not None
        for client_id, epoch, flags in self.registry.learn(source, homes, self.post.now_ms, is_limited=is_limited):
            session = self._core.sessions.get(client_id)
            mine = self.registry.epoch(client_id)
            if session is None or not (epoch, self.post.name(source)) > (mine, self._node.name):
                continue
            if self.passages.is_arriving(client_id):
                # what is on its way goes on when it is here
                self._core.handovers.part(session, now, is_claimed=False)
            else:
                self._departures.outranked(session, source, epoch, now, is_clean=bool(flags & CLEAN))
        if self.claims.pending and self._is_informed(now):
            self.claims.give_up(lambda claim: not claim.broker)

    def _arrived(self, client_id: str, now: float) -> None:
        """A session is here that may have lost meanwhile: its client has a later one, of which was heard before."""
        session = self._core.sessions.get(client_id)
        later = self.registry.later(client_id, self._node.name, self._node.directory.names)
        if session is not None and later is not None and not self.passages.is_arriving(client_id):
            self.post.now = now
            broker, epoch, is_clean = later
            self._departures.outranked(session, broker, epoch, now, is_clean=is_clean)

    def settings_changed(self) -> None:
        """The settings were read again: others hear of what is new."""
        self._tell_soon()

    def _tell_soon(self) -> None:
        if not self._news_due:
            self._news_due = True
            self._core.timers.at(self.post.now + _GATHER_S, self._tell)

    def _tell(self, now: float) -> None:
        """Tell all brokers in reach what is new, as long as they keep up."""
        self._news_due = False
        self.post.now = now
        owed, states = self._node.carrier.sender.owed_bytes, self._node.membership.states
        self._references.tell()
        is_behind = False
        for broker in self.post.reachable:
            life = states[broker].life
            if owed.get(broker, 0) > _BUSY:
                is_behind = is_behind or self.registry.owes(broker, life)
                continue
            for homes in self.registry.next_step(broker, life):
                self.post.tell(broker, homes)
            is_behind = is_behind or self.registry.owes(broker, life)
        if is_behind:
            self._tell_soon()

    # -- what does not happen by itself

    def _look_soon(self, now: float) -> None:
        if not self._looks:
            self._looks = True
            # where thousands of sessions wait for a broker that is away, looking at all of them is work
            self._core.timers.at(now + _LOOK_S + len(self.passages) * _LOOK_EACH_S, self._look)

    def _look(self, now: float) -> None:
        self._looks = False
        self.post.now = now
        self.passages.look_after(self.post.reachable, self._away_since, now)
        self._departures.look(now)
        if self.claims.pending and self._is_informed(now):
            self.claims.give_up(lambda claim: not claim.broker)
        if len(self.passages) or self._departures.is_waiting or self.claims.pending:
            self._look_soon(now)

    def end_turn(self, now: float) -> None:
        """A turn is over: who has come or gone is noted, and what waits for streams goes on."""
        self.post.now = now
        reachable = self.post.reachable
        if reachable is not self._seen:
            self._seen = reachable
            for broker in self.post.others:
                if broker in reachable:
                    self._away_since.pop(broker, None)
                else:
                    self._away_since.setdefault(broker, now)
            self._tell_soon()
        if len(self._node.directory.names) != self._named:
            self._named = len(self._node.directory.names)
            self.passages.met(self.post.origins, now)
        self._departures.look(now)
        self.post.flush(now)

    def _is_gone(self, broker: int) -> bool:
        """Whether a broker has been out of reach for so long that nobody waits for it."""
        since = self._away_since.get(broker)
        return since is not None and self.post.now - since >= WAIT_S

    def _renewed(self, broker: int) -> None:
        """A broker has begun anew: it has no sessions, and what was on its way to it or from it is not."""
        self.registry.forget(broker)
        self.passages.renewed(broker, self.post.now)
        self._tell_soon()

    # -- messages on their way

    def deliver(self, origin: int, lane: int, parcels: Sequence[bytes], incoming: Incoming, now: float) -> int:
        """Have messages given to their receivers, and known by their numbers: whose they are may depend on those."""
        passages = self.passages
        before = self.post.position(origin, lane) - len(parcels)

        def at(place: int) -> None:
            passages.source = origin, lane, before + place + 1

        incoming.watch = at
        try:
            taken = incoming.deliver(origin, lane, parcels, now)
        finally:
            incoming.watch = None
            passages.source = self._node.broker, HERE, 0
        passages.advanced(origin, lane, before + taken, now)
        return taken
