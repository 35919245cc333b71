"""Retained messages of joined brokers: of each topic all keep the newest write, whoever has accepted it.

Theory of operation
-------------------
What is retained is a map from topics to writes, and the newest write wins (:mod:`tieline.overlay.retained.versions`):
it does not matter in which order, by which ways and how often writes come.  A topic that was cleared, or whose message
has expired, keeps its version without a message (it is *gone*), so that an older write does not come back; after a day
that is forgotten, and then a broker that was away for longer may bring it back.

Writes come in three ways.  Clients of this broker make them (:meth:`Convergence.kept`).  Brokers whose clients want a
topic are sent each message of it (:meth:`Convergence.arrived`), with its clock.  And neighbours tell each other what
they may not know (:meth:`Convergence.merge`, :mod:`tieline.overlay.retained.retained_sync`).  What comes by the last
way is given to the clients that are subscribed here, too, if its origin did not know that somebody here wants it: it
says to whom it was sent.  So whoever is subscribed has in the end what is retained, also where a message with QoS 0 was
lost, or where nobody could know of a subscription while brokers were apart.

A broker without a store that begins again is told what an earlier start of it had accepted or was sent live: that is
given to whoever subscribed before it was told.  What is sent live once more of such a topic, and is not newer, was
accepted before anybody subscribed to it here, and is not given behind that.

A message for which there is no room here is passed on, and remembered as *lacking*, so that nobody sends it again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Final, NamedTuple

from tieline.core.broker import Broker
from tieline.core.holdings import Kind
from tieline.core.message import Message, Origin
from tieline.overlay.counts import Counts
from tieline.overlay.frames.clock import HybridClock, clock_of
from tieline.overlay.frames.fields import Reader, put
from tieline.overlay.links.directory import Directory
from tieline.overlay.retained.retained_item import RetainedItem
from tieline.overlay.retained.versions import VERSION_BYTES, Versions, broker_in, clock_in, version_of
from tieline.wire.errors import ProtocolError
from tieline.wire.topics import check_name

#: Why there is no message: somebody has cleared it, it has expired, or there is no room for it here.
_CLEARED, _EXPIRED, _LACKING = 1, 2, 3
#: Under which notes are kept, and how they say that there is a message.
NOTE: Final = b"K"
_HELD: Final = 0
#: Levels of a topic: whoever accepted it may keep more than clients of this broker may use.
_LEVELS: Final = 65_535
#: What a topic takes while it is known that nothing is retained there, beside its name and version, about.
_GONE_BYTES: Final = 250
#: Publishers of other brokers that are remembered, and topics of which a live message was overtaken.
_ORIGINS, _OVERTAKEN = 10_000, 10_000
#: For how long a live message with QoS 0 may be under way.
_UNDER_WAY_S: Final = 10.0
#: What a write that a neighbour tells of counts towards the work of a turn.
_WORK_PER_ITEM: Final = 600
#: How often is looked for what need not be remembered any more.
_SWEEP_S: Final = 60.0
#: A broker that has rights of its own may not be ahead by more: nobody could write after it.
_AHEAD_S: Final = 3_600.0


class Gone(NamedTuple):
    """A topic of which the newest write is known, and no message is kept."""

    until: float
    qos: int
    why: int


class Convergence:
    """The retained messages of one core, as one of those that agree."""

    def __init__(  # what it goes by, and what it touches
        self,
        core: Broker,
        directory: Directory,
        broker: int,
        clock: HybridClock,
        counts: Counts,
        *,
        wall: Callable[[float], float],
        notes: Iterable[tuple[bytes, bytes]] = (),
        life_s: float = 86_400.0,
        most_bytes: int = 16 << 20,
    ) -> None:
        self._core = core
        self._directory = directory
        self._broker = broker
        self.clock = clock
        self._counts = counts
        self._wall = wall
        self._notes: dict[bytes, bytes] | None = {key[1:]: value for key, value in notes}
        self.life_s = life_s
        self.most_bytes = most_bytes
        self.versions = Versions(directory.names)
        #: By topic; the one that was entered longest ago first.
        self._gone: dict[bytes, Gone] = {}
        self.gone_bytes = 0
        #: By topic, the brokers that were sent the newest write live; equal sets are one object.
        self._live: dict[bytes, bytes] = {}
        self._sets: dict[bytes, bytes] = {}
        #: The last write that was accepted here, and its clock.
        self._latest: Message | None = None
        self._latest_clock = 0
        #: By topic and broker, which message with QoS 0 was given to clients before it came live, and when.
        self._overtaken: dict[tuple[bytes, int], tuple[int, float]] = {}
        #: What has a clock up to this was written before this start, of which nothing was kept; 0 until that is known.
        self._before = 0
        #: By topic and broker, what was sent live to an earlier start and was given here.
        self._bygone: dict[tuple[bytes, int], int] = {}
        self._origins: dict[tuple[str, str, str | None], Origin] = {}
        #: Topics whose notes are to be written.
        self._unnoted: dict[bytes, None] = {}
        #: Called with a topic that has another version, and the neighbour that need not hear of it; and with what is
        #: not kept here and has to be told at once.
        self.on_change: Callable[[bytes, int, float], None]
        self.on_pass: Callable[[RetainedItem, int, float], None]
        #: Bytes of versions, as the account of what is kept has them; and when something changed last.
        self.accounted = 0
        self.changed_at = 0.0

    def did(self, units: int) -> None:
        """Whoever tells neighbours of topics, or hears of them, has done so much work."""
        self._core.work.did(units)

    # -- how it begins

    def begin(self, now: float) -> None:
        """Take in what the predecessor has left: what was retained while nobody was joined gets its version now."""
        if self._notes is None:
            return
        notes, self._notes = self._notes, None
        for topic, value in notes.items():
            self._restore(topic, value, now)
        for message in self._core.retained.match("#"):
            if message is not None and not self.versions.get(message.topic):
                clock = max(1, clock_of(self._wall(message.at)))
                self._take_in(message.topic, version_of(clock, self._broker), None, is_news=True)
        self._core.timers.at(now + _SWEEP_S, self._sweep)

    def _restore(self, topic: bytes, value: bytes, now: float) -> None:
        reader = Reader(value)
        clock, broker, kind, first, second = (reader.integer() for _ in range(5))
        live = reader.rest()
        version = version_of(clock, broker)
        message = self._core.retained.get(topic.decode())
        gone: Gone | None = None
        if kind != _HELD:
            if message is None:
                gone = Gone(now + first / 1000 - self._wall(now), second, kind)
        elif message is None:
            until = now + self.life_s
            if second and second / 1000 <= self._wall(now):
                gone = Gone(until, 0, _EXPIRED)
            else:
                # cleared while this broker was alone: that is newer than what was cleared, and than nothing else
                gone, version = Gone(until, 0, _CLEARED), version_of(clock + 1, self._broker)
        if message is not None and (kind != _HELD or message.number != first):
            return  # written while this broker was alone
        self._take_in(topic, version, gone, is_news=kind == _HELD and gone is not None)
        if live:
            self._live[topic] = self._sets.setdefault(live, live)

    def _take_in(self, topic: bytes, version: int, gone: Gone | None, *, is_news: bool) -> None:
        self.versions.put(topic, version)
        self.clock.hear(clock_in(version))
        if gone is not None:
            self._gone[topic] = gone
            self.gone_bytes += len(topic) + _GONE_BYTES
        if is_news and not self._core.journal.is_volatile:
            self._unnoted[topic] = None

    def meet(self, clock: int) -> None:
        """A neighbour says what its clock shows: the first time, all that it knows was written before this start."""
        if not self._before and self._core.journal.is_volatile:
            self._before = clock

    # -- what clients of this broker do

    def kept(self, message: Message, now: float, *, is_held: bool) -> None:
        """A message was to be retained, and was unless there is no room for it."""
        if message.origin.broker or message.topic.startswith(b"$"):
            return
        self.begin(now)
        clock = self.clock.tick(now)
        self._latest, self._latest_clock = message, clock
        gone = self._gone_with(message, now, is_held=is_held)
        self._become(message.topic, version_of(clock, self._broker), gone, b"", self._broker, now)
        if gone is not None and gone.why == _LACKING:
            name = self._directory.names[self._broker]
            self.on_pass(RetainedItem(message.topic, clock, name, (), message, message.qos), self._broker, now)

    def _gone_with(self, message: Message, now: float, *, is_held: bool) -> Gone | None:
        if message.payload:
            return None if is_held else Gone(now + self.life_s, message.qos, _LACKING)
        return Gone(now + self.life_s, message.qos, _CLEARED)

    def expired(self, topic: bytes, now: float) -> None:
        """A retained message is over: its version stays, so that no older one comes back."""
        if self.versions.get(topic):
            self._become(topic, self.versions.get(topic), Gone(now + self.life_s, 0, _EXPIRED), b"", self._broker, now)

    def stamp(self, message: Message) -> int:
        """The clock of a message that was just accepted here; 0 if it is not known any more."""
        if message is self._latest:
            return self._latest_clock
        if self._core.retained.get(message.topic.decode()) is message:
            return clock_in(self.versions.get(message.topic))
        return 0

    def sent(self, topic: bytes, clock: int, brokers: Collection[int]) -> None:
        """A message of ours leaves for some brokers that want it."""
        if self.versions.get(topic) == version_of(clock, self._broker):
            live = bytes(sorted(brokers))
            self._live[topic] = self._sets.setdefault(live, live)
            if not self._core.journal.is_volatile:
                self._unnoted[topic] = None

    # -- what comes from other brokers

    def arrived(  # all that is said of it
        self, message: Message, clock: int, user: str | None, broker: int, live: bytes, now: float, *, is_end: bool
    ) -> bool:
        """A message came live: it is kept if it is the newest; whether clients here are to get it."""
        self.begin(now)
        if is_end and self.clock.is_far_ahead(clock, now, _AHEAD_S):
            self._counts.clocks_refused += 1
            return True
        self.clock.hear(clock)
        topic, version = message.topic, version_of(clock, broker)
        known = self.versions.get(topic)
        if not known and not _is_shared(topic):
            return True
        if user is not None:
            message.origin = self.origin(self._directory.names[broker], message.origin.client, user)
        if self.versions.is_newer(version, known):
            self._keep(message, version, live, broker, now)
            return True
        if not message.qos and clock <= self._overtaken.get((topic, broker), (0, 0.0))[0]:
            # it, or what was written behind it, has come by another way and was given to everybody here
            self._counts.overtaken += 1
            return False
        if clock <= self._bygone.get((topic, broker), 0):
            self._counts.overtaken += 1
            return False
        return True

    def merge(self, item: RetainedItem, source: int, now: float, *, is_end: bool) -> None:
        """A neighbour tells of a write."""
        if is_end and self.clock.is_far_ahead(item.clock, now, _AHEAD_S):
            self._counts.clocks_refused += 1
            return
        topic = item.topic
        broker = self._directory.find(item.broker)
        if broker is None or not _is_shared(topic):
            self._counts.bad_retained += 1
            return
        self.clock.hear(item.clock)
        version, known = version_of(item.clock, broker), self.versions.get(topic)
        if not self.versions.is_newer(version, known):
            self._counts.retained_known += 1
            return
        self._counts.retained_taken += 1
        self._core.work.did(_WORK_PER_ITEM)
        numbers = (self._directory.find(name) for name in item.live)
        live = bytes(sorted(number for number in numbers if number is not None))
        is_given = self._is_given(item, broker, live)
        if item.message is not None:
            is_held = self._keep(item.message, version, live, source, now)
            if not is_held:
                self.on_pass(item, source, now)
            if is_given:
                self._give(item.message, version, live, now)
            return
        gone = Gone(now + min(item.left_s, self.life_s), item.qos, _EXPIRED if item.has_expired else _CLEARED)
        before = self._gone.get(topic)
        # clients were not told that a message has expired, and would hear live that the topic is cleared
        had = self._core.retained.get(topic.decode()) is not None or (before is not None and before.why == _EXPIRED)
        clear = Message(topic, b"", item.qos, retain=True, origin=self.origin(item.broker, "", None), at=now)
        self._core.retained.keep(clear, now)
        self._become(topic, version, gone, live, source, now)
        if is_given and had and not item.has_expired:
            self._give(clear, version, live, now)

    def _is_given(self, item: RetainedItem, broker: int, live: bytes) -> bool:
        """Whether clients here are to get a write that a neighbour tells of, since it neither was nor will be live."""
        if broker == self._broker:
            return self._core.journal.is_volatile  # an earlier start has accepted it
        if self._broker not in live or not item.qos:
            return True
        return item.clock <= self._before

    def _keep(self, message: Message, version: int, live: bytes, source: int, now: float) -> bool:
        """Keep a message of another broker in the place of the one before it; whether there is room."""
        is_held = self._core.retained.keep(message, now)
        gone = self._gone_with(message, now, is_held=is_held)
        self._become(message.topic, version, gone, live, source, now)
        return is_held

    def _give(self, message: Message, version: int, live: bytes, now: float) -> None:
        """Let clients here have what comes by another way than live."""
        key = message.topic, broker_in(version)
        if message.qos and self._broker in live:
            self._bygone.pop(key, None)
            self._bygone[key] = clock_in(version)
            if len(self._bygone) > _OVERTAKEN:
                del self._bygone[next(iter(self._bygone))]
        elif not message.qos:
            self._overtaken.pop(key, None)
            self._overtaken[key] = clock_in(version), now
            if len(self._overtaken) > _OVERTAKEN:
                del self._overtaken[next(iter(self._overtaken))]
        self._core.from_brokers.late(message, now)

    def origin(self, broker: str, client: str, user: str | None) -> Origin:
        """A publisher of another broker."""
        key = broker, client, user
        origin = self._origins.get(key)
        if origin is None:
            if len(self._origins) >= _ORIGINS:
                self._origins.clear()
            origin = self._origins[key] = Origin(client, 0, self._core.holdings.owner(user), broker)
        return origin

    def _become(self, topic: bytes, version: int, gone: Gone | None, live: bytes, but: int, now: float) -> None:
        """A topic has another version, with a message or without one."""
        self.versions.put(topic, version)
        if self._gone.pop(topic, None) is not None:
            self.gone_bytes -= len(topic) + _GONE_BYTES
        if gone is not None:
            self._gone[topic] = gone
            self.gone_bytes += len(topic) + _GONE_BYTES
            while self.gone_bytes > self.most_bytes:
                self._counts.tombstones_forgotten += 1
                self._forget(next(iter(self._gone)))
        if live:
            self._live[topic] = self._sets.setdefault(live, live)
        else:
            self._live.pop(topic, None)
        if not self._core.journal.is_volatile:
            self._unnoted[topic] = None
        self.changed_at = now
        self.on_change(topic, but, now)

    # -- what is forgotten

    def _forget(self, topic: bytes) -> None:
        del self._gone[topic]
        self.gone_bytes -= len(topic) + _GONE_BYTES
        self.versions.remove(topic)
        self._live.pop(topic, None)
        if not self._core.journal.is_volatile:
            self._unnoted[topic] = None

    def _sweep(self, now: float) -> None:
        """Forget what has been gone for long enough."""
        self._core.retained.expire(now)
        for topic in [topic for topic, gone in self._gone.items() if gone.until <= now]:
            self._forget(topic)
        for key in [key for key, (_clock, at) in self._overtaken.items() if at + _UNDER_WAY_S <= now]:
            del self._overtaken[key]
        if len(self._sets) > len(self._live) + 1_000:
            self._sets = {live: live for live in self._live.values()}
        self._core.timers.at(now + _SWEEP_S, self._sweep)

    # -- for those who tell others, and for the store

    def item(self, topic: bytes, now: float) -> RetainedItem | None:
        """What is to be told of a topic; None if nothing is known, or there is no room for it here."""
        version = self.versions.get(topic)
        if not version:
            return None
        clock, name = clock_in(version), self._directory.names[broker_in(version)]
        live = tuple(self._directory.names[number] for number in self._live.get(topic, b""))
        gone = self._gone.get(topic)
        if gone is not None:
            if gone.why == _LACKING or gone.until <= now:
                return None
            left_s = gone.until - now
            return RetainedItem(topic, clock, name, live, None, gone.qos, left_s, gone.why == _EXPIRED)
        message = self._core.retained.get(topic.decode())
        if message is None or (message.expires is not None and message.expires <= now):
            return None
        return RetainedItem(topic, clock, name, live, message, message.qos)

    def was_sent(self, topic: bytes, broker: int) -> bool:
        """Whether a broker was sent the newest write live, by whoever accepted it."""
        return broker in self._live.get(topic, b"") or broker == broker_in(self.versions.get(topic))

    def notes(self, now: float) -> Iterator[tuple[bytes, bytes | None]]:
        """The notes that are different since the last call."""
        self.begin(now)
        unnoted, self._unnoted = self._unnoted, {}
        retained, to_wall = self._core.retained, self._wall(now) - now
        for topic in unnoted:
            version = self.versions.get(topic)
            if not version:
                yield NOTE + topic, None
                continue
            head = clock_in(version), broker_in(version)
            gone = self._gone.get(topic)
            message = None if gone is not None else retained.get(topic.decode())
            if gone is not None and gone.why != _LACKING:
                tail = put(*head, gone.why, max(0, int((gone.until + to_wall) * 1000)), gone.qos)
            elif message is not None:
                expires = 0 if message.expires is None else max(1, int((message.expires + to_wall) * 1000))
                tail = put(*head, _HELD, message.number, expires)
            else:
                yield NOTE + topic, None  # whoever has it tells again
                continue
            yield NOTE + topic, tail + self._live.get(topic, b"")

    def account(self) -> None:
        """Count what versions take."""
        size = self.versions.count * VERSION_BYTES + self.gone_bytes
        if size != self.accounted:
            self._core.holdings.broker.take(Kind.RETAINED, size - self.accounted)
            self.accounted = size


def _is_shared(topic: bytes) -> bool:
    """Whether other brokers may tell of a topic."""
    try:
        check_name(topic.decode(), _LEVELS)
    except (ProtocolError, UnicodeDecodeError):
        return False
    return not topic.startswith(b"$")
