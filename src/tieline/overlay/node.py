"""One broker among others: takes bytes and time, and gives bytes; sockets and virtual wires drive the same code.

A shell calls :meth:`Node.opened` for every connection, whoever has dialled, :meth:`Node.receive` with what came,
:meth:`Node.fill` for what there is room for, and :meth:`Node.closed`; and it fires the timers that it has given to the
node.  After each call it looks into ``dirty`` (connections with something to write) and ``doomed`` (connections to be
ended), and commits what :meth:`Node.seal` gives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from itertools import chain
from math import inf
from typing import Final

from tieline.core.timers import Timers
from tieline.overlay.announcing import Announcing
from tieline.overlay.carrier.carrier import Carrier
from tieline.overlay.carrier.credit import Crediting
from tieline.overlay.carrier.durable import Begun, Ends, Fact, Journal, Named
from tieline.overlay.carrier.ends import Limits
from tieline.overlay.carrier.incarnations import Incarnations
from tieline.overlay.carrier.taker import Deliver
from tieline.overlay.counts import Counts
from tieline.overlay.frames.fields import BadFrame, Reader, put
from tieline.overlay.frames.frame import Data, Kind, Notice, Numbered, Topic, frame, lane_of, read_numbered, readdressed
from tieline.overlay.frames.hello import Hello, Refused, put_names, read_hello, read_names
from tieline.overlay.frames.packing import Packer
from tieline.overlay.interests.entries import Entry
from tieline.overlay.interests.interests import Granted, Interests, life_of
from tieline.overlay.links.connections import Connections
from tieline.overlay.links.directory import Directory
from tieline.overlay.links.links import Connection, Link, Phase
from tieline.overlay.links.patience import Patience
from tieline.overlay.may import Fence
from tieline.overlay.membership import LinkState, Membership, read_link_state
from tieline.overlay.neighbour_service import NeighbourService, NoNeighbourService, NoRounds, Rounds
from tieline.overlay.questions import Questions
from tieline.overlay.strategies.path import Path
from tieline.overlay.strategies.strategy import Strategy

#: How often a broker may claim to live later than somebody says.
OUTLIVE_S: Final = 1.0
#: What frames count towards the work of a turn, beside what they cause elsewhere and what their bytes take: a link
#: state has all ways looked for again, an entry of an interest is a subscription.
_WORK: Final = {
    Kind.LINK_STATE: 500, Kind.INTEREST: 150, Kind.NAMES: 800, Kind.DATA: 150, Kind.VOID: 100, Kind.NOTICE: 150,
    Kind.SEGMENT: 100, Kind.LAST: 200,
}  # fmt: skip
_LEAST_WORK: Final = 25
#: And each message of a frame, for its place in a stream; each link of a link state, for being read.
_WORK_PER_PLACE: Final = 10
_WORK_PER_NEIGHBOUR: Final = 20
_BYTES_PER_WORK: Final = 32
#: Bytes of a sentence that are read.
MOST_WORDS: Final = 500


def _spend_freely(units: int) -> bool:  # noqa: ARG001 - as those who count take it
    """Nobody waits: a test or a simulation has all the time there is."""
    return False


def _ignore(broker: int) -> None:
    pass


class Node:
    """Membership, interests and the carrier of one broker, and the links to its peers."""

    def __init__(  # one for each thing that tests and simulations replace
        self,
        name: str,
        ends: Ends,
        deliver: Deliver,
        timers: Timers,
        *,
        incarnation: int,
        life: int = 0,
        patience: Patience | None = None,
        limits: Limits | None = None,
        strategy: Callable[[Membership, Counts], Strategy] = Path,
        carrier: type[Carrier] = Carrier,
        spend: Callable[[int], bool] = _spend_freely,
    ) -> None:
        """``spend`` is told what was done, in units of work, and whether others should have their turn first."""
        self.name = name
        self._spend = spend
        #: The shell commits the first seal, which holds the life, before it opens a link.
        self.life = max(ends.life + 1, life)
        #: That of the store, if it has one; ``incarnation`` is for a new one, and random.
        self.incarnation = ends.incarnation or incarnation
        #: Tells this start from every other one.
        self._start = (self.incarnation + self.life) % (1 << 64)
        self.counts = Counts()
        self._patience = patience or Patience()
        self._timers = timers
        self._journal = Journal()
        self.connections = Connections(self._patience, timers, self.counts, self._lost)
        self._journal.note(Begun(self.life, self.incarnation))
        self.directory = Directory(ends.names)
        #: The number by which we mean ourselves.
        self.broker = broker = self.number_of(name)
        self.membership = Membership(broker, self.life, self.incarnation, self.directory.names)
        for other, known in ends.incarnations.items():
            # so that nobody who lived before that is taken for it, and a clock that was set back is noticed
            self.membership.heard(LinkState(other, ends.lives[other], 0, known[-1], {}))
        self.interests = Interests(broker, self.life, ends.interests)
        #: By peer.
        self.links: dict[int, Link] = {}
        #: By peer, what may pass its link, where not everything may.
        self.fences: dict[int, Fence] = {}
        #: What neighbours tell each other beside what is carried.
        self.neighbour_service: NeighbourService = NoNeighbourService()
        #: Plans that neighbours agree on.
        self.rounds: Rounds = NoRounds()
        self._outlived_at = -inf
        #: A life that is to be claimed when that may be done again; 0 if there is none.
        self._claim = 0
        #: Told of a broker that has begun anew, or is heard of for the first time.
        self.on_renewed: Callable[[int], None] = _ignore
        self.carrier = carrier(
            broker,
            ends,
            incarnations=Incarnations(self.incarnation, self.life, ends),
            links=self.links,
            membership=self.membership,
            strategy=strategy(self.membership, self.counts),
            timers=self._timers,
            journal=self._journal,
            counts=self.counts,
            deliver=deliver,
            send=self.send,
            limits=limits or Limits(),
        )
        self._make_parts(timers)

    def _make_parts(self, timers: Timers) -> None:
        """What goes between brokers beside messages: room on links, questions, and what each wants."""
        broker = self.broker
        self.crediting = Crediting(
            broker,
            self.directory.names,
            links=self.links,
            incarnations=self.carrier.incarnations,
            timers=timers,
            counts=self.counts,
            limit=self.carrier.sender.limit,
            find=self.directory.find,
            pass_notice=self.carrier.pass_notice,
        )
        pass_notice, first = self.carrier.pass_notice, self._start & 0xFFFF_FFFF
        self.questions = Questions(broker, self.membership, timers, self.counts, pass_notice, first=first)
        self.announcing = Announcing(
            broker,
            self.interests,
            membership=self.membership,
            connections=self.connections,
            timers=timers,
            journal=self._journal,
            counts=self.counts,
            pass_notice=self.carrier.pass_notice,
        )

    # -- what clients do

    def publish(  # what the carrier has to know of a parcel
        self,
        parcels: tuple[bytes, ...],
        *,
        level: int,
        assured: bool,
        spread: int,
        destinations: frozenset[int],
        now: float,
        expires: bool = False,
    ) -> bool:
        """Have parcels carried to brokers; False if too much is owed to one of them already, and then to none.

        Order is kept between parcels of equal level, assurance and spread.  Assured ones leave after their commit.
        """
        lane = lane_of(level, assured, spread)
        return self.carrier.sender.publish(lane, parcels, destinations, now, expires=expires)

    def room(self, now: float) -> None:
        """There may be room for messages that were not taken."""
        self.carrier.taker.offer_again(now)

    def use(self, strategy: Callable[[Membership, Counts], Strategy], now: float) -> None:
        """Choose links in another way from now on; other brokers need not do the same, nor at the same time."""
        self.carrier.use(strategy(self.membership, self.counts), now)

    def subscribe(self, entry: Entry, qos: int, now: float) -> int:
        """Want something here; the number under which it will appear in ``granted``."""
        return self.change([(entry, qos, True)], now)[0]

    def change(self, changes: Iterable[tuple[Entry, int, bool]], now: float) -> list[int]:
        """Want some things (True) and others no longer, in one go; the numbers of the former, as of :meth:`subscribe`.

        What waits is looked through once for all of them, and not once for each.
        """
        return self.announcing.change(changes, now)

    def unsubscribe(self, entry: Entry, qos: int, now: float) -> None:
        """Want it no longer; others hear of it after a while."""
        self.change([(entry, qos, False)], now)

    def write_off(self, broker: int) -> int:
        """Take a broker to be gone for good: it wants nothing, and no link leads to it; how much it wanted.

        What is owed to it is its owner's to write off.  Should it come back, it is as if it had never been away, but
        that it misses what was published meanwhile.
        """
        link = self.links.get(broker)
        if link is not None and link.connection is None:
            del self.links[broker]
        wanted = self.announcing.write_off(broker)
        self.on_renewed(broker)
        return wanted

    # -- names

    def number_of(self, name: str) -> int:
        """The number by which a broker is meant here; one that was not known gets the next, and peers hear of it."""
        number = self.directory.find(name)
        if number is None:
            number = self.directory.add(name)
            self._journal.note(Named(number, name))
            self.connections.tell_all(frame(Kind.NAMES, put_names({number: name})))
        return number

    def _learn_names(self, connection: Connection, names: dict[int, str]) -> None:
        connection.theirs.learn({theirs: self.number_of(name) for theirs, name in names.items()})

    def _outlive(self, life: int, now: float) -> None:
        """Somebody knows of a later life of ours than this: that is over, so ours has to be later still."""
        if life <= self.life:
            return
        if now - self._outlived_at < OUTLIVE_S:
            # somebody else may have our name; or another one knows of a still later life, and tells us only once
            if not self._claim:
                self._timers.at(self._outlived_at + OUTLIVE_S, self._claim_again)
            self._claim = max(self._claim, life)
            return
        self._outlived_at = now
        self.counts.outlived += 1
        self.life = life
        self._journal.note(Begun(life, self.incarnation))
        self.carrier.incarnations.outlive(life)
        self.interests.outlive(life, now)
        self.connections.tell_peers(self.membership.outlive(life).bytes)
        self.announcing.changed()

    def _claim_again(self, now: float) -> None:
        life, self._claim = self._claim, 0
        self._outlive(life, now)

    # -- connections

    def opened(self, handle: int, now: float, cost: int = 1, name: str = "") -> None:
        """A connection to some peer is there; who it is, it says itself, and is refused unless it has proven that name.

        The cost counts for the length of ways.
        """
        connection = self.connections.open(handle, now, cost, name)
        hello = Hello(
            self.name,
            self.incarnation,
            self.life,
            self._start,
            self._patience.longest,
            self.directory.names,
            self.interests.versions,
        )
        self.connections.tell(connection, hello.bytes)

    def receive(self, handle: int, data: bytes, now: float) -> bool:
        """Bytes have come; what breaks the protocol ends the connection.

        True if some of them wait for :meth:`go_on`; nothing more should be read before that.
        """
        connection = self.connections.find(handle)
        if connection is None:
            return False
        if connection.link is not None:
            connection.link.meter.bytes_in += len(data)
        frames = connection.inbox.take(data)
        connection.coming = frames if connection.coming is None else chain(connection.coming, frames)
        return self.go_on(handle, now)

    def go_on(self, handle: int, now: float) -> bool:
        """Look at what has come, until others should have their turn; whether something still waits."""
        connection = self.connections.find(handle)
        if connection is None or connection.coming is None:
            return False
        connection.heard_at = now
        units = 0
        try:
            while not self._spend(units):
                if connection.update is not None:
                    units = self.announcing.go_on(connection.update, connection)
                    continue
                found = connection.next_frame()
                if found is None:
                    return False
                kind, body = found
                connection.admit(kind)
                if kind is Kind.PACKED and connection.inner is None:
                    connection.inner = connection.unpack(body)
                else:
                    self._handle(connection, kind, body, now)
                if connection.is_over:
                    break
                units = _WORK.get(kind, _LEAST_WORK) + len(body) // _BYTES_PER_WORK
        except Refused as refusal:
            self.connections.refuse(connection, str(refusal), now)
        except BadFrame:
            self.counts.bad_frames += 1
            self.connections.end(connection, now, "bad_frames")
        else:
            if not connection.is_over:
                return True
        connection.coming = connection.inner = None
        return False

    def fill(self, handle: int, room: int, now: float) -> bytes:
        """What is to be written next on a connection, about as much as there is room for."""
        data = self.connections.fill(handle, room, now)
        link = self.connections.link(handle)
        if link is not None:
            self.crediting.filled(link, now)
        return data

    def tune(self, handle: int, cost: int, now: float, *, is_packed: bool) -> None:
        """Another cost of a connection from now on, and whether what is written is compressed where room is short."""
        connection = self.connections.find(handle)
        if connection is None:
            return
        if not is_packed:
            connection.packer = None
        elif connection.packer is None:
            connection.packer = Packer()
        link = connection.link
        if cost != connection.cost:
            connection.cost = cost
            if link is not None and connection.phase is Phase.UP:
                self.connections.tell_peers(self.membership.connect(link.peer, cost).bytes)
                self._view_changed(now)

    def packs(self, handle: int) -> bool:
        """Whether the peer compresses what it sends."""
        connection = self.connections.find(handle)
        return connection is not None and connection.unpacker is not None

    def note_rate(self, handle: int, bytes_per_s: float) -> None:
        """So much leaves a connection in a second: what waits for it beyond that waits better at its origin."""
        link = self.connections.link(handle)
        if link is not None:
            link.line.note_rate(bytes_per_s)

    def closed(self, handle: int, now: float) -> None:
        """A connection is no more."""
        self.connections.closed(handle, now)

    @property
    def dirty(self) -> set[int]:
        """Connections with something to write."""
        return self.connections.dirty

    @property
    def doomed(self) -> set[int]:
        """Connections to be ended."""
        return self.connections.doomed

    @property
    def granted(self) -> list[Granted]:
        """Subscriptions that may be acknowledged since the owner last looked."""
        return self.announcing.granted

    def _lost(self, link: Link, now: float) -> None:
        self.crediting.lost(link.peer)
        self.neighbour_service.down(link.peer)
        self.connections.tell_peers(self.membership.disconnect(link.peer).bytes)
        self.rounds.down(link.peer, now)
        self._view_changed(now)

    # -- commits

    def seal(self) -> tuple[int, list[Fact]] | None:
        """Facts to be committed together, under a token; None if nothing has changed.

        What the owner did with messages that it took since the last seal has to be part of the same commit.
        """
        self.carrier.taker.seal()
        return self._journal.seal()

    def committed(self, token: int, now: float) -> None:
        """The facts of a token are safe: what waited for that is done."""
        self._journal.committed(token, now)

    # -- frames

    def _handle(self, connection: Connection, kind: Kind, body: bytes, now: float) -> None:
        link = connection.link
        if kind is Kind.HELLO:
            self._greeted(connection, read_hello(body), now)
        elif kind is Kind.REFUSED:
            self.counts.refused_peers += 1
            self.connections.refusals.append((connection.handle, True, body[:MOST_WORDS].decode(errors="replace")))
            self.connections.end(connection, now, "refused")
        elif kind is Kind.NAMES:
            self._learn_names(connection, read_names(Reader(body)))
        elif kind is Kind.LINK_STATE:
            self._learn_state(connection, read_link_state(body, connection.theirs.table), now)
        elif kind is Kind.INTEREST:
            is_fenced = self._fence(connection) is not None
            self.announcing.learn(readdressed(body, connection.theirs.table), connection, is_fenced=is_fenced)
        elif kind is Kind.PING:
            self.connections.pinged(connection, body, now)
        elif link is None:
            pass
        elif kind is Kind.RESUME:
            self._resumed(connection, link, body, now)
        elif kind is Kind.CLOCK:
            self.neighbour_service.beat(link.peer, Reader(body).integer(), now)
        elif kind is Kind.HOP_ACK:
            link.acknowledged(Reader(body).integer())
            if link.has_more:
                self.connections.dirty.add(connection.handle)
        elif kind is Kind.REST:
            self._handle(connection, Kind.INTEREST, connection.gathering.interest(body, now), now)
        elif kind is Kind.SEGMENT:
            connection.gathering.add(body, now)
        elif kind is Kind.PACKED:
            raise BadFrame("a packed frame in a packed frame")
        else:
            since = now
            if kind is Kind.LAST:
                kind, body, since = connection.gathering.finish(body, now)
            number, item = read_numbered(kind, body, since, connection.theirs.table)
            if item.path[-1:] != bytes((link.peer,)):
                raise BadFrame("a path that does not end with who sends it")
            owed = link.owes_ack
            if not link.arrived(number, len(body)):
                self.counts.gaps += 1
                self.connections.end(connection, now, "gap")
                return
            link.meter.came(item, len(body))
            if link.is_ack_due:
                self.connections.dirty.add(connection.handle)
            elif not owed:
                self._timers.at(now + self._patience.ack_s, partial(self._ack_hop, connection, link))
            if isinstance(item, Data):
                self._spend(item.count * _WORK_PER_PLACE)
            fence = self.fences.get(link.peer)
            passed = item if fence is None else fence.comes(item)
            if passed is not None:
                self._arrived(passed, now)

    def fence_of(self, peer: int) -> Fence | None:
        """What may pass the link to a peer; None if that is everything."""
        return self.fences.get(peer)

    def is_end(self, peer: int) -> bool:
        """Whether a peer has rights, and speaks for itself alone."""
        return peer in self.fences

    def _fence(self, connection: Connection) -> Fence | None:
        return None if connection.link is None else self.fences.get(connection.link.peer)

    def _ack_hop(self, connection: Connection, link: Link, now: float) -> None:
        if link.connection is connection and link.owes_ack:
            link.is_ack_due = True
            self.connections.dirty.add(connection.handle)

    def _learn_state(self, connection: Connection, said: LinkState, now: float) -> None:
        self._spend(len(said.neighbours) * _WORK_PER_NEIGHBOUR)
        fence = self._fence(connection)
        state = said if fence is None else fence.states(said, self.broker)
        if state is None:
            return
        if not self.membership.has_room(state):
            self.counts.links_refused += 1
        elif self.membership.heard(state):
            # ways are looked for anew among all links
            self._spend(self.membership.ends)
            self._renewed(state)
            self.connections.tell_peers(state.bytes, but=connection)
            self._view_changed(now)
        elif self.membership.is_outlived(state):
            self._outlive(state.life + 1, now)

    def _renewed(self, state: LinkState) -> None:
        is_known = self.carrier.incarnations.is_known(state.broker)
        if self.carrier.heard(state.broker, state.incarnation, state.life):
            self.interests.forgotten(state.broker)
            if is_known:
                # of one that is heard of for the first time nothing was lost
                self.on_renewed(state.broker)

    def _greeted(self, connection: Connection, hello: Hello, now: float) -> None:
        proven = self.connections.proven(connection)
        if proven is not None and hello.name != proven:
            raise BadFrame(f"the peer has proven to be {proven}, and says it is {hello.name}")
        peer = self._admit(hello, now)
        link = self.links.get(peer)
        if link is None:
            link = self.links[peer] = Link(peer, self._patience, self.counts)
        connection.go(Phase.RESUMING)
        if link.connection is not None:
            self.counts.replaced += 1
            self.connections.end(link.connection, now, "replaced")
        self._learn_names(connection, hello.names)
        link.greeted(connection, hello)
        state = LinkState(peer, hello.life, 0, hello.incarnation, {})
        if self.membership.heard(state):
            self._renewed(state)
        self.connections.tell(connection, frame(Kind.RESUME, put(link.start, link.received)))
        table = connection.theirs.table
        versions = {table[theirs]: version for theirs, version in hello.versions.items() if table[theirs]}
        life = life_of(versions.get(self.broker, 0))
        if life > self.life:
            self._outlive(life + 1, now)
        for state in self.membership.states.values():
            self.connections.tell(connection, state.bytes)
        self.announcing.introduce(connection, versions, now)

    def _admit(self, hello: Hello, now: float) -> int:
        """The number of a peer; raises :class:`Refused` if it cannot be had, and BadFrame if it is over already."""
        name = hello.name
        if name == self.name:
            raise Refused(f"both brokers are called {name}: give one of them another name")
        if name not in hello.names.values():
            raise BadFrame("a broker that has no number for itself")
        peer = self.number_of(name)
        link, state = self.links.get(peer), self.membership.states.get(peer)
        if state is not None and state.incarnation == hello.incarnation and hello.life < state.life:
            raise BadFrame("an earlier life of the peer")
        old = None if link is None else link.connection
        # a broker that was killed is heard no more; two of one name both are
        if link is not None and old is not None and link.incarnation != hello.incarnation:
            if old.phase is Phase.UP and now - old.heard_at < self._patience.suspect_s:
                raise Refused(f"another broker is called {name} and is connected: give one of them another name")
        elif state is not None and state.incarnation != hello.incarnation and self._is_elsewhere(peer):
            raise Refused(f"another broker is called {name} and is joined elsewhere: give one of them another name")
        return peer

    def _is_elsewhere(self, peer: int) -> bool:
        """Whether a broker is in reach that is no neighbour; one that was killed is not, once its neighbours know."""
        return peer in self.membership.reachable and peer not in self.membership.neighbours

    def _resumed(self, connection: Connection, link: Link, body: bytes, now: float) -> None:
        reader = Reader(body)
        start, received = reader.integer(), reader.integer()
        connection.go(Phase.UP)
        link.meter.changed_at = now
        link.resumed(received if start == self._start else 0)
        self.connections.tell_peers(self.membership.connect(link.peer, connection.cost).bytes)
        self.connections.dirty.add(connection.handle)
        self._view_changed(now)
        self.neighbour_service.up(link.peer, now)

    def _arrived(self, item: Numbered, now: float) -> None:
        if not isinstance(item, Notice) or item.target != self.broker:
            if not isinstance(item, Notice) or self.questions.may_pass(item):
                self.carrier.arrived(item, now)
        elif item.topic is Topic.RETAINED:
            self.neighbour_service.heard(item, now)
        elif item.topic is Topic.AGREEING:
            self.rounds.heard(item, now)
        elif item.topic is Topic.END_ACK:
            self.carrier.sender.settled(item, now)
        elif item.topic is Topic.CREDIT:
            self.crediting.heard(item, now)
        elif item.topic is Topic.ECHO:
            self.announcing.echoed(item.source, Reader(item.body).integer(), now)
        elif item.topic is Topic.QUESTION:
            self.questions.came(item, now)
        elif item.topic is Topic.ANSWER:
            self.questions.answered(item, now)
        else:
            self.announcing.asked(item.source, Reader(item.body).integer())

    def _view_changed(self, now: float) -> None:
        self.carrier.view_changed(now)
        self.announcing.grant(now)

    def say_clock(self, peer: int, clock: int) -> None:
        """Tell a peer what our clock shows."""
        connection = self.links[peer].connection
        if connection is not None:
            self.connections.tell(connection, frame(Kind.CLOCK, put(clock)))

    def send(self, peer: int, item: Numbered, now: float) -> None:
        """Have something sent to a peer, as far as it may have it."""
        link = self.links[peer]
        fence = self.fences.get(peer)
        passed = item if fence is None else fence.leaves(item)
        self.crediting.offer(link, passed, now, is_single=self.carrier.strategy.is_single)
        if link.connection is not None:
            self.connections.dirty.add(link.connection.handle)

    # -- for those who ask

    @property
    def unfinished(self) -> int:
        """Everything that is still owed, held, parked, in custody or to be committed."""
        return self.carrier.unfinished + sum(map(len, self.links.values())) + len(self._journal)

    @property
    def kept_bytes(self) -> int:
        """What others want, and messages that came too early or have no way, beside what links hold."""
        return self.interests.kept_bytes + self.carrier.taker.held.bytes + self.carrier.parked_bytes

    def check(self) -> None:
        """What always holds, for tests."""
        self.carrier.check()
        for link in self.links.values():
            link.check()
