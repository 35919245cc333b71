"""What neighbours tell each other of retained messages: changes once a second, and what differs when a link comes up.

Theory of operation
-------------------
Everything travels in notices from neighbour to neighbour, of the lowest class, and whoever learns something tells its
other neighbours.  So nobody need be known to anybody, and what a broker misses while it is away it gets from whoever is
there when it comes back.

A topic that changes is told once a second, as it is then.  To a neighbour that was sent the write live only its version
is told, and it asks for what has not come.  A frame is answered when it was taken in, and few are under way at a time,
so that a slow link is told less often and not more.

When a link comes up, and now and then while nothing happens, both ends compare what they know
(:mod:`tieline.overlay.retained.retained_compare`); the one with the lesser name begins.

An echo of an interest waits for nobody.  But before it is passed on to a neighbour, what that was not told yet of
topics that the asking broker wants is sent ahead, in the same line: every hop does so, hence who is granted a
subscription has been told all that was accepted before.

Each frame: kind, the epoch that its receiver has begun with, then by kind:

    BEGIN     our epoch and clock, and what we let the neighbour read and write
    ROOT      a digest of everything
    BUCKETS   pairs of a bucket and its digest, of those that are not empty
    LIST      a bucket and whether it is listed at all, then marks of topics with their versions
    WANT      a bucket and marks of topics; the answer to LIST
    VERSIONS  topics with their versions
    ASK       topics; the answer to VERSIONS
    ITEMS     whether an answer is expected, our clock, and items
    GOT       the answer to ITEMS
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Final

from tieline.core.message import Origin
from tieline.core.timers import Timers
from tieline.overlay.counts import Counts
from tieline.overlay.frames.clock import MOST_CLOCK
from tieline.overlay.frames.fields import BadFrame, Reader, put, put_bytes
from tieline.overlay.frames.frame import LEVELS, Notice, Topic
from tieline.overlay.links.directory import Directory
from tieline.overlay.may import Fence
from tieline.overlay.retained.convergence import Convergence
from tieline.overlay.retained.partner import Partner, put_terms, read_terms
from tieline.overlay.retained.retained_compare import Comparing, Kind
from tieline.overlay.retained.retained_item import MOST_TOPICS, ItemsWriter, RetainedItem, read_items, read_versions
from tieline.overlay.retained.versions import BUCKETS, broker_in, version_of

#: How often a topic is told, and how long the first change waits for others.
ROUND_S, GATHER_S = 1.0, 0.02
#: Frames that may be under way, and the size of each: in bytes, and in topics that are taken in at once.
_WINDOW, _FRAME_BYTES, _FRAME_ITEMS = 4, 8_192, 64
#: Bytes that go ahead of an echo at most, and the class in which they and the echo go.
_AHEAD_BYTES: Final = 65_536
_AHEAD_LEVEL: Final = 1
#: How often a link is looked at, when what is under way is taken for lost, and how long nothing has to happen before
#: both ends are compared once more.
LOOK_S, LOST_S, QUIET_S, COMPARE_S = 10.0, 60.0, 3.0, 60.0
#: What a topic that is told, or that a neighbour names, counts towards the work of a turn.
_WORK_PER_TOPIC: Final = 40
#: How often a neighbour hears what our clock shows.
BEAT_S: Final = 1.0


class RetainedSync:
    """All neighbours of one broker."""

    def __init__(  # what it goes by, and what it touches
        self,
        broker: int,
        directory: Directory,
        convergence: Convergence,
        *,
        timers: Timers,
        counts: Counts,
        send: Callable[[int, Notice, float], None],
        say_clock: Callable[[int, int], None],
        fence_of: Callable[[int], Fence | None],
        wanted_by: Callable[[str], frozenset[int]],
        compare_s: float = COMPARE_S,
    ) -> None:
        self._broker = broker
        self._directory = directory
        self._convergence = convergence
        self._timers = timers
        self._counts = counts
        self._send = send
        self._say_clock = say_clock
        self._fence_of = fence_of
        self._wanted_by = wanted_by
        self._compare_s = compare_s
        self._partners: dict[int, Partner] = {}
        self._epoch = 0
        versions = convergence.versions
        comparing = self._comparing = Comparing(versions, timers, counts, self._tell, self._pump, convergence.did)
        self._handlers: dict[Kind, Callable[[Partner, Reader, float], None]] = {
            Kind.ROOT: comparing.on_root,
            Kind.BUCKETS: comparing.on_buckets,
            Kind.LIST: comparing.on_list,
            Kind.WANT: comparing.on_want,
            Kind.VERSIONS: self._on_versions,
            Kind.ASK: self._on_ask,
            Kind.ITEMS: self._on_items,
            Kind.GOT: self._on_got,
        }
        convergence.on_change = self._changed
        convergence.on_pass = self._pass_on

    # -- links

    def up(self, peer: int, now: float) -> None:
        """The link to a peer is up."""
        self._convergence.begin(now)
        fence = self._fence_of(peer)
        self._epoch += 1
        partner = Partner(peer, self._directory.names[peer], None if fence is None else fence.may, self._epoch)
        self._partners[peer] = partner
        self._begin(partner, now)
        self._timers.at(now + BEAT_S, partial(self._beat, partner))
        self._timers.at(now + min(LOOK_S, self._compare_s), partial(self._look, partner))

    def down(self, peer: int) -> None:
        """The link to a peer is down: what it misses is found out when it is up again."""
        partner = self._partners.pop(peer, None)
        if partner is not None:
            partner.is_gone = True
            self._timers.cancel(partner.timer)

    def _begin(self, partner: Partner, now: float) -> None:
        partner.touched_at = now
        clock = self._convergence.clock.read(now)
        self._say(partner, put(Kind.BEGIN, 0, partner.epoch, clock) + put_terms(partner.may), now)

    def _say(self, partner: Partner, body: bytes, now: float, level: int = 0) -> None:
        path = bytes((self._broker,))
        self._send(partner.peer, Notice(Topic.RETAINED, self._broker, partner.peer, body, path, level=level), now)

    def _tell(self, partner: Partner, kind: Kind, body: bytes, now: float, level: int = 0) -> None:
        self._say(partner, put(kind, partner.theirs) + body, now, level)

    def _beat(self, partner: Partner, now: float) -> None:
        if not partner.is_gone:
            self._say_clock(partner.peer, self._convergence.clock.read(now))
            self._timers.at(now + BEAT_S, partial(self._beat, partner))

    def _look(self, partner: Partner, now: float) -> None:
        """Compare once more where nothing happens, and begin anew where nothing is answered."""
        if partner.is_gone:
            return
        self._timers.at(now + min(LOOK_S, self._compare_s), partial(self._look, partner))
        is_quiet = now - self._convergence.changed_at >= QUIET_S
        waits = partner.under_way or partner.listing or not partner.is_open
        if waits and now - partner.touched_at >= LOST_S:
            self._counts.retained_restarts += 1
            self._epoch += 1
            partner.restart(self._epoch)
            self._begin(partner, now)
        elif partner.is_open and partner.is_idle and is_quiet and now - partner.touched_at >= self._compare_s:
            partner.touched_at = now
            self._comparing.begin(partner, now)

    # -- changes

    def _changed(self, topic: bytes, but: int, now: float) -> None:
        """A topic has another version: all neighbours are to know, but the one that it came from."""
        for partner in self._partners.values():
            if partner.peer != but and partner.is_open and partner.add(topic):
                self._pump_soon(partner, now)

    def _pass_on(self, item: RetainedItem, but: int, now: float) -> None:
        """Tell at once what is not kept here."""
        is_ours = item.broker == self._directory.names[self._broker]
        for partner in self._partners.values():
            if partner.peer != but and partner.is_open and partner.may_have(item.topic, is_ours):
                items = ItemsWriter()
                items.add(item, now)
                self._say_items(partner, items, now, is_answered=False)

    def _pump_soon(self, partner: Partner, now: float) -> None:
        if partner.timer is None:
            due = max(now + GATHER_S, partner.round_at)
            partner.timer = self._timers.at(due, partial(self._round, partner))

    def _round(self, partner: Partner, now: float) -> None:
        """A second is over: what has changed is told."""
        partner.timer = None
        if not partner.round and partner.pending:
            partner.round, partner.pending = partner.pending, {}
            partner.round_at = now + ROUND_S
        self._pump(partner, now)

    def _pump(self, partner: Partner, now: float) -> None:
        """Tell as much as may be under way."""
        while partner.is_open and len(partner.under_way) < _WINDOW:
            if not partner.wanted and not partner.round and partner.buckets:
                self._open_bucket(partner, partner.buckets.popleft())
            elif not self._tell_some(partner, now):
                break
        if partner.pending and not partner.round:
            self._pump_soon(partner, now)

    def _open_bucket(self, partner: Partner, number: int) -> None:
        for topic in self._convergence.versions.buckets[number]:
            partner.wanted[topic] = None

    def _tell_some(self, partner: Partner, now: float) -> bool:
        """Fill one frame of items, and one of versions; whether there was something to be told."""
        items, versions = ItemsWriter(), ItemsWriter()
        told: list[bytes] = []
        known: list[bytes] = []
        while items.size < _FRAME_BYTES and items.count + versions.count < _FRAME_ITEMS:
            is_asked = bool(partner.wanted)
            topics = partner.wanted or partner.round
            if not topics:
                break
            topic = next(iter(topics))
            del topics[topic]
            self._convergence.did(_WORK_PER_TOPIC)
            item = self._item_for(partner, topic, now)
            if item is None:
                continue
            if not is_asked and self._convergence.was_sent(topic, partner.peer):
                versions.add_version(topic, item.clock, item.broker)
                known.append(topic)
            else:
                items.add(item, now)
                told.append(topic)
        if known:
            partner.under_way.append(tuple(known))
            self._tell(partner, Kind.VERSIONS, versions.done(), now)
        if told:
            partner.under_way.append(tuple(told))
            self._say_items(partner, items, now)
        if known or told:
            partner.touched_at = now
        return bool(known or told)

    def _item_for(self, partner: Partner, topic: bytes, now: float) -> RetainedItem | None:
        is_ours = broker_in(self._convergence.versions.get(topic)) == self._broker
        return self._convergence.item(topic, now) if partner.may_have(topic, is_ours) else None

    def _say_items(
        self, partner: Partner, items: ItemsWriter, now: float, *, is_answered: bool = True, level: int = 0
    ) -> None:
        self._counts.retained_told += items.count
        head = put(is_answered, self._convergence.clock.read(now))
        self._tell(partner, Kind.ITEMS, head + items.done(), now, level)

    def go_ahead(self, peer: int, asking: int, now: float) -> int:
        """An echo is about to be passed to a peer, for a broker behind it: the class in which it goes, behind what the
        peer is to know first.
        """
        partner = self._partners.get(peer)
        if partner is None or not partner.is_open or not (partner.pending or partner.round or partner.under_way):
            return LEVELS - 1
        ahead: dict[bytes, None] = {}
        for topics in (partner.pending, partner.round, *partner.under_way):
            for topic in topics:
                if asking in self._wanted_by(topic.decode()) and not self._convergence.was_sent(topic, asking):
                    ahead[topic] = None
        items, size, level = ItemsWriter(), 0, LEVELS - 1
        for topic in ahead:
            item = self._item_for(partner, topic, now)
            if item is None:
                continue
            if size + items.size > _AHEAD_BYTES:
                self._counts.retained_late += 1
                continue
            partner.pending.pop(topic, None)
            partner.round.pop(topic, None)
            items.add(item, now)
            if items.size >= _FRAME_BYTES or items.count >= _FRAME_ITEMS:
                size += items.size
                self._say_items(partner, items, now, is_answered=False, level=_AHEAD_LEVEL)
                items, level = ItemsWriter(), _AHEAD_LEVEL
        if items.count:
            self._say_items(partner, items, now, is_answered=False, level=_AHEAD_LEVEL)
            level = _AHEAD_LEVEL
        return level

    # -- what comes

    def heard(self, notice: Notice, now: float) -> None:
        """A neighbour says something; raises BadFrame."""
        partner = self._partners.get(notice.source)
        if partner is None or len(notice.path) != 1:
            self._counts.bad_retained += 1
            return
        reader = Reader(notice.body)
        try:
            kind = Kind(reader.integer())
        except ValueError as error:
            raise BadFrame(str(error)) from None
        epoch = reader.integer()
        if kind is Kind.BEGIN:
            self._begun(partner, reader, now)
        elif epoch == partner.epoch and partner.is_open:
            self._handlers[kind](partner, reader, now)

    def _hear_clock(self, partner: Partner, clock: int, now: float) -> None:
        if clock >= MOST_CLOCK:
            raise BadFrame(f"a clock that shows {clock}")
        if not partner.is_end or not self._convergence.clock.is_far_ahead(clock, now, 60.0):
            self._convergence.clock.hear(clock)

    def beat(self, peer: int, clock: int, now: float) -> None:
        """The clock of a peer has come with its heartbeat."""
        partner = self._partners.get(peer)
        if partner is not None:
            self._hear_clock(partner, clock, now)

    def _begun(self, partner: Partner, reader: Reader, now: float) -> None:
        theirs, clock = reader.integer(), reader.integer()
        if not theirs:
            raise BadFrame("an epoch of 0")
        partner.restart(partner.epoch)
        partner.theirs, partner.terms = theirs, read_terms(reader)
        self._hear_clock(partner, clock, now)
        if not partner.is_end:
            self._convergence.meet(clock)
        if partner.terms is not None:
            # what we may publish and not read is not compared, so it is told
            partner.buckets.extend(number for number in range(BUCKETS) if self._convergence.versions.buckets[number])
        if self._directory.names[self._broker] < partner.name:
            self._comparing.begin(partner, now)
        self._pump(partner, now)

    def _answered(self, partner: Partner, now: float) -> None:
        if partner.under_way:
            partner.under_way.popleft()
        partner.touched_at = now

    def _on_items(self, partner: Partner, reader: Reader, now: float) -> None:
        is_answered, clock = reader.integer(), reader.integer()
        self._hear_clock(partner, clock, now)
        for item in read_items(reader, partial(self._origin, partner), now):
            if partner.may_tell(item.topic, item.broker == partner.name):
                self._convergence.merge(item, partner.peer, now, is_end=partner.is_end)
            else:
                self._counts.retained_denied += 1
        if is_answered:
            self._tell(partner, Kind.GOT, b"", now)

    def _origin(self, partner: Partner, broker: str, client: str, user: str | None) -> Origin:
        # whoever has rights of its own does not say on whose account something is kept
        return self._convergence.origin(broker, client, None if partner.is_end else user)

    def _on_got(self, partner: Partner, reader: Reader, now: float) -> None:
        self._answered(partner, now)
        self._pump(partner, now)

    def _on_versions(self, partner: Partner, reader: Reader, now: float) -> None:
        versions = self._convergence.versions
        missing: list[bytes] = []
        named = read_versions(reader)
        self._convergence.did(_WORK_PER_TOPIC * len(named))
        for topic, clock, name in named:
            broker = self._directory.find(name)
            if broker is None or not partner.may_tell(topic, name == partner.name):
                continue
            if versions.is_newer(version_of(clock, broker), versions.get(topic)):
                missing.append(put_bytes(topic))
        self._tell(partner, Kind.ASK, b"".join((put(len(missing)), *missing)), now)

    def _on_ask(self, partner: Partner, reader: Reader, now: float) -> None:
        self._answered(partner, now)
        count = reader.count()
        if count > MOST_TOPICS:
            raise BadFrame(f"{count} retained messages are asked for at once")
        self._convergence.did(_WORK_PER_TOPIC * count)
        self._want(partner, (reader.raw() for _ in range(count)))
        self._pump(partner, now)

    def _want(self, partner: Partner, topics: Iterable[bytes]) -> None:
        for topic in topics:
            if self._convergence.versions.get(topic):
                partner.wanted[topic] = None

    # -- for those who ask

    @property
    def unfinished(self) -> int:
        """Topics and frames that neighbours have not been told of, or have not answered."""
        partners = self._partners.values()
        return sum(
            len(partner.pending) + len(partner.round) + len(partner.wanted) + len(partner.under_way)
            + len(partner.buckets) + len(partner.differing) + partner.listing + partner.is_digesting
            for partner in partners
        )  # fmt: skip
