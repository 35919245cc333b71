"""Brokers joined by virtual cables that are cut, fall silent and heal; brokers that crash around their commits.

Everything that is left to chance comes from one generator, so a seed is a history.  A broker's store is a value: what
was applied to it survives a crash, whether or not the broker was told; everything else is lost.  A volatile broker has
no store, and its clock may have been set back when it begins again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from operator import itemgetter
from random import Random
from typing import Final, ParamSpec

from tieline.core.timers import Timer, Timers
from tieline.overlay.carrier.durable import Ends, Fact
from tieline.overlay.carrier.notes import Note, Notes
from tieline.overlay.carrier.taker import Deliver
from tieline.overlay.counts import Counts
from tieline.overlay.frames.frame import Kind, is_assured, read_numbered
from tieline.overlay.frames.inbox import Inbox
from tieline.overlay.interests.digests import is_digest, read_digest
from tieline.overlay.interests.entries import Entry, entry_of
from tieline.overlay.membership import Membership
from tieline.overlay.node import Node
from tieline.overlay.strategies.strategy import Strategy
from tieline.sim.clock import Clock
from tieline.wire.topics import matches

P = ParamSpec("P")
#: How a broker is made: its name, its store, whom to give messages to, its timers, a new incarnation and the clock.
Make = Callable[[str, Ends, Deliver, Timers, int, int], Node]
#: How a strategy is made.
Choice = Callable[[Membership, Counts], Strategy]
#: By filter, when it was granted, and who had echoed it in which start, as far as was known then; None while it waits.
Grants = dict[str, tuple[float, dict[int, int]] | None]
#: Bytes that may wait in the kernel of a sender.
_KERNEL: Final = 4_096


@dataclass(eq=False)
class Message:
    """One publication, and what became of it at its origin."""

    text: bytes
    origin: int
    flow: tuple[int, str, int]
    number: int
    at: float
    wanted_by: frozenset[int]
    #: What it measures; conditions ask for it.
    value: int
    #: The start of its origin in which it was accepted.
    start: int
    is_accepted: bool = False


def wish_of(filter: str) -> Entry:
    """The entry of a filter, which may have a condition behind a question mark."""
    bare, _, condition = filter.partition("?")
    return entry_of(bare, condition=condition or None, fingerprint=1 if condition else 0)


def wants(entry: Entry, topic: str, value: int) -> bool:
    """Whether a message is among what an entry says."""
    if not entry.condition or not matches(entry.filter, topic):
        return matches(entry.filter, topic)
    if is_digest(entry.condition):
        return read_digest(entry.condition).holds({"v": value}.get)
    return value > int(entry.condition.partition(">")[2])


def numbers_of(node: Node, brokers: frozenset[int]) -> frozenset[int]:
    """The world's numbers of brokers, which a node knows by its own."""
    return frozenset(int(node.directory.names[broker][1:]) for broker in brokers)


class Direction:
    """One direction of a connection: bytes arrive in order, after the time that the line takes, or never."""

    def __init__(self, world: World, delay_s: float, rate: float) -> None:
        self._world = world
        self._delay_s = delay_s
        self._rate = rate
        self.free_at = 0.0
        self._last = 0.0
        self.is_silent = False
        self._kept: list[bytes] = []
        self.arrive: Callable[[bytes], None] = lambda data: None

    @property
    def waiting_s(self) -> float:
        """How long until there is room in the kernel."""
        return self.free_at - _KERNEL / self._rate - self._world.clock.now

    def send(self, data: bytes) -> None:
        now = self._world.clock.now
        self.free_at = max(now, self.free_at) + len(data) / self._rate
        self._last = max(self._last, self.free_at + self._delay_s)
        self._world.clock.at(self._last, partial(self._arrive, data))

    def _arrive(self, data: bytes, now: float) -> None:
        if self.is_silent or self._kept:
            self._kept.append(data)
        else:
            self.arrive(data)

    def speak(self) -> None:
        """What was lost is sent again, as TCP would."""
        self.is_silent = False
        kept, self._kept = self._kept, []
        for data in kept:
            self.arrive(data)


class Connection:
    """Both directions between two brokers, and which ends know that it is over."""

    def __init__(self, world: World, cable: Cable, handle: int) -> None:
        self.cable = cable
        self.handle = handle
        self.is_dead = False
        self.out = {end: Direction(world, cable.delay_s, cable.rate) for end in cable.ends}
        for end, direction in self.out.items():
            direction.arrive = partial(world.arrive, self, cable.other(end))


class Cable:
    """What two brokers are joined by."""

    def __init__(self, one: int, other: int, delay_s: float, rate: float) -> None:
        self.ends = one, other
        self.delay_s = delay_s
        self.rate = rate
        self.is_cut = False
        #: The newest connection.
        self.connection: Connection | None = None

    def other(self, end: int) -> int:
        return self.ends[self.ends[0] == end]


@dataclass(eq=False)
class Broker:
    """A place where a broker runs: its store and its clients survive it."""

    number: int
    is_volatile: bool = False
    #: What its clock is off by.
    clock_s: float = 0.0
    #: What all committed facts add up to; and the same as notes, from which a life begins.
    ends: Ends = field(default_factory=Ends)
    store: dict[bytes, bytes] = field(default_factory=dict)
    notes: Notes = field(default_factory=Notes)
    node: Node | None = None
    timers: Timers = field(default_factory=Timers)
    #: Assured messages that were taken in and are not sealed: what the queues of clients would be.
    taken: list[bytes] = field(default_factory=list)
    #: Until when the receivers of each lane have no room.
    full_until: dict[int, float] = field(default_factory=dict)
    #: Assured messages in the order in which they were committed here; with a volatile broker, since it began.
    logs: list[list[bytes]] = field(default_factory=list)
    #: When each life began; and by incarnation, the last start with it.
    began: list[float] = field(default_factory=list)
    incarnations: dict[int, int] = field(default_factory=dict)
    #: Messages with QoS 0, for each life.
    given: list[list[bytes]] = field(default_factory=list)
    #: It wants nothing more, and it has left for ever.
    is_leaving: bool = False
    has_left: bool = False
    #: Filters of clients, with the time of the grant and who had echoed it.
    filters: Grants = field(default_factory=dict)
    requests: dict[int, str] = field(default_factory=dict)
    open: dict[int, Connection] = field(default_factory=dict)
    unsealed: list[Message] = field(default_factory=list)
    is_committing: bool = False
    #: Where the broker crashes at its next commit: before it, or between it and the news of it.
    crashes_at: str = ""
    timer: Timer | None = None
    is_blocked: set[int] = field(default_factory=set)

    @property
    def name(self) -> str:
        return f"b{self.number}"


class World:
    """The brokers of one history and the cables between them."""

    def __init__(self, random: Random, make: Make) -> None:
        self.clock = Clock()
        self.random = random
        self._make = make
        self.story: list[str] = []
        self.brokers: dict[int, Broker] = {}
        self.cables: list[Cable] = []
        self.messages: list[Message] = []
        self._handles = 0
        self._numbers: dict[tuple[int, str, int], int] = {}
        self._began = self.clock.now
        #: Frames that were sent to a broker of their own path.
        self.loops: list[str] = []

    @property
    def elapsed(self) -> float:
        return self.clock.now - self._began

    def tell(self, text: str) -> None:
        self.story.append(f"{self.elapsed:7.3f}  {text}")

    def later(self, after_s: float, do: Callable[P, None], *args: P.args, **kwargs: P.kwargs) -> None:
        """Let something happen so many seconds from now."""
        self.clock.after(after_s, lambda _now: do(*args, **kwargs))

    def set_clock(self, number: int, off_s: float) -> None:
        """Move what a broker takes for the time."""
        self.tell(f"the clock of {number} is set by {off_s}")
        self.brokers[number].clock_s += off_s

    def part(self, for_s: float) -> None:
        """Cut every cable between some of the brokers and the others."""
        numbers = sorted(self.brokers)
        island = set(self.random.sample(numbers, self.random.randint(1, len(numbers) - 1)))
        self.tell(f"{sorted(island)} become an island")
        for cable in self.cables:
            if len(island.intersection(cable.ends)) == 1:
                self.cut(cable, for_s)

    # -- brokers

    def start(self, number: int) -> None:
        broker = self.brokers.setdefault(number, Broker(number))
        given: list[bytes] = []
        broker.given.append(given)
        broker.began.append(self.clock.now)
        if broker.is_volatile or not broker.logs:
            broker.logs.append([])
        if broker.is_volatile:
            broker.ends, broker.store = Ends(), {}
            broker.filters = dict.fromkeys(broker.filters)
        broker.timers, broker.taken = Timers(), []
        deliver = partial(self._give, broker, given)
        clock = int((self.clock.now + broker.clock_s) * 100) if broker.is_volatile else 0
        incarnation = self.random.getrandbits(64)
        broker.notes = Notes()
        ends = broker.notes.restore(sorted(broker.store.items()))
        assert _state(ends) == _state(broker.ends), f"{number} has noted something else than it knew"
        node = self._make(broker.name, ends, deliver, broker.timers, incarnation, clock)
        broker.node = node
        broker.incarnations[node.incarnation] = len(broker.began)
        token, facts = node.seal() or (0, [])
        broker.ends.apply(facts)
        _keep(broker, list(broker.notes.write(facts)))
        node.committed(token, self.clock.now)
        broker.is_committing, broker.crashes_at = False, ""
        broker.requests.clear()
        for filter in broker.filters:
            self._subscribe(broker, node, filter)
        self.tell(f"{number} begins life {node.life}")
        self.serve(broker)

    def _give(self, broker: Broker, given: list[bytes], origin: int, lane: int, payloads: Sequence[bytes]) -> int:
        """What an application does: assured messages wait for the seal, and now and then there is no room for one."""
        if not is_assured(lane):
            given += payloads
            return len(payloads)
        if broker.full_until.get(lane, 0.0) > self.clock.now:
            return 0
        taken = len(payloads)
        if not self.random.randrange(50):
            broker.full_until[lane] = self.clock.now + self.random.choice((0.1, 0.5, 3.0))
            taken = self.random.randint(0, taken)
        broker.taken += payloads[:taken]
        return taken

    def use(self, number: int, strategy: Choice) -> None:
        """A broker chooses links in another way, until it is started again."""
        broker = self.brokers[number]
        if broker.node is not None:
            self.tell(f"{number} changes its strategy")
            broker.node.use(strategy, self.clock.now)
            self.serve(broker)

    def crash(self, number: int, back_after_s: float, why: str = "") -> None:
        broker = self.brokers[number]
        if broker.node is None:
            return
        self.tell(f"{number} crashes {why}, back in {back_after_s:.2f}")
        broker.node = None
        broker.unsealed.clear()
        for connection in list(broker.open.values()):
            self.break_off(connection, but=number)
        broker.open.clear()
        self.clock.cancel(broker.timer)
        self.clock.after(back_after_s, lambda _now: self.start(number))

    def leave(self, number: int) -> None:
        """A broker wants nothing more, and is switched off for ever once others know that and nothing is unfinished."""
        broker = self.brokers[number]
        if broker.node is None or broker.is_leaving or not self._can_spare(number, without_leaving=True):
            return
        self.tell(f"{number} is going to leave")
        broker.is_leaving = True
        for filter in broker.filters:
            broker.node.unsubscribe(wish_of(filter), 1, self.clock.now)
        broker.filters.clear()
        self.serve(broker)
        self.clock.after(1.0, partial(self._leave, broker))

    def stays_whole(self, *, without: Cable | None = None) -> bool:
        """Whether all brokers are joined by cables other than those that are cut, and this one."""
        return self._are_joined(set(self.brokers), [c for c in self.cables if c is not without and not c.is_cut])

    @staticmethod
    def _are_joined(numbers: set[int], cables: list[Cable]) -> bool:
        found: set[int] = set()
        front = [min(numbers)]
        while front:
            number = front.pop()
            if number in numbers and number not in found:
                found.add(number)
                front += [cable.other(number) for cable in cables if number in cable.ends]
        return found == numbers

    def _can_spare(self, number: int, *, without_leaving: bool) -> bool:
        """Whether all others are joined without a broker, and without those that are about to leave."""
        others = {
            other.number
            for other in self.brokers.values()
            if not (other.has_left or (without_leaving and other.is_leaving))
        }
        return self._are_joined(others - {number}, self.cables)

    def _leave(self, broker: Broker, now: float) -> None:
        number, node = broker.number, broker.node
        others = [other for other in self.brokers.values() if other is not broker and not other.has_left]
        is_known = all(other.node is not None and not _knows_wishes(other.node, broker.name) for other in others)
        is_needed = any(_owes(other, broker.name) for other in others if other.node is not None)
        if (
            node is None
            or node.unfinished
            or not is_known
            or is_needed
            or not self._can_spare(number, without_leaving=False)
        ):
            self.clock.after(0.25, partial(self._leave, broker))
            return
        self.tell(f"{number} leaves")
        broker.has_left, broker.node = True, None
        for connection in list(broker.open.values()):
            self.break_off(connection, but=number)
        broker.open.clear()
        self.clock.cancel(broker.timer)

    def serve(self, broker: Broker) -> None:
        """What a shell does after each call."""
        node = broker.node
        if node is None:
            return
        now = self.clock.now
        for handle in sorted(node.doomed):
            node.closed(handle, now)
            connection = broker.open.pop(handle)
            self.break_off(connection, but=broker.number)
        self._commit(broker, node)
        for granted in node.granted:
            filter = broker.requests.pop(granted.number)
            if broker.filters.get(filter) is None and not broker.is_leaving:
                echoed = self._starts(node, granted.echoed)
                broker.filters[filter] = now, echoed
                self.tell(f"{broker.number} grants {filter}, echoed by {sorted(echoed)}")
        node.granted.clear()
        for handle in sorted(node.dirty - broker.is_blocked):
            self._write(broker, node, handle)
        due = broker.timers.next()
        if due is not None and (broker.timer is None or broker.timer.action is None or broker.timer.when > due):
            self.clock.cancel(broker.timer)
            broker.timer = self.clock.at(max(due, now), partial(self._tick, broker))

    def _starts(self, node: Node, echoed: frozenset[int]) -> dict[int, int]:
        """By broker that has echoed, the start of it that a node knows: the echo of an earlier one does not count."""
        brokers = {broker: self.brokers[int(node.directory.names[broker][1:])] for broker in echoed}
        last = node.carrier.incarnations.last
        return {each.number: each.incarnations[last(broker)] for broker, each in brokers.items()}

    def _tick(self, broker: Broker, now: float) -> None:
        if broker.node is not None:
            broker.timers.fire(now)
            self.serve(broker)

    def _write(self, broker: Broker, node: Node, handle: int) -> None:
        direction = broker.open[handle].out[broker.number]
        while handle in node.dirty:
            waiting_s = direction.waiting_s
            if waiting_s > 0:
                broker.is_blocked.add(handle)
                self.clock.after(waiting_s + 0.0001, partial(self._writable, broker, handle))
                break
            data = node.fill(handle, _KERNEL, self.clock.now)
            if not data:
                break
            self._read_paths(node, broker.open[handle].cable.other(broker.number), data)
            direction.send(data)

    def _read_paths(self, node: Node, receiver: int, data: bytes) -> None:
        """Listen at the line: a path ends with who sends, and holds neither anybody twice nor who is to receive."""
        to = node.directory.find(f"b{receiver}")
        for kind, body in Inbox().take(data):
            if kind in {Kind.DATA, Kind.VOID, Kind.NOTICE}:
                path = read_numbered(kind, body, 0.0)[1].path
                if path[-1:] != bytes((node.broker,)) or len({*path, to}) <= len(path):
                    names = [node.directory.names[number] for number in path]
                    self.loops.append(f"{node.name} sends b{receiver} a {kind.name} with the path {names}")

    def _writable(self, broker: Broker, handle: int, now: float) -> None:
        broker.is_blocked.discard(handle)
        self.serve(broker)

    def _commit(self, broker: Broker, node: Node) -> None:
        if broker.is_committing:
            return
        sealed = node.seal()
        messages, broker.unsealed = broker.unsealed, []
        taken, broker.taken = broker.taken, []
        if sealed is None:
            for message in messages:
                message.is_accepted = True
            return
        broker.is_committing = True
        notes = list(broker.notes.write(sealed[1]))
        takes_s = self.random.uniform(0.001, 0.01)
        self.clock.after(takes_s, partial(self._apply, broker, node, sealed, notes, messages, taken))

    def _apply(
        self,
        broker: Broker,
        node: Node,
        sealed: tuple[int, list[Fact]],
        notes: list[Note],
        messages: list[Message],
        taken: list[bytes],
        now: float,
    ) -> None:
        if broker.node is not node:
            return
        if broker.crashes_at == "before":
            self.crash(broker.number, self.random.uniform(0.1, 1.5), "before a commit")
            return
        broker.ends.apply(sealed[1])
        _keep(broker, notes)
        broker.logs[-1] += taken
        for message in messages:
            message.is_accepted = True
        if broker.crashes_at == "after":
            self.crash(broker.number, self.random.uniform(0.1, 1.5), "after a commit")
            return
        self.clock.after(self.random.uniform(0, 0.003), partial(self._committed, broker, node, sealed[0]))

    def _committed(self, broker: Broker, node: Node, token: int, now: float) -> None:
        if broker.node is node:
            broker.is_committing = False
            node.committed(token, now)
            self.serve(broker)

    # -- cables

    def join(self, one: int, other: int, delay_s: float, rate: float) -> None:
        cable = Cable(one, other, delay_s, rate)
        self.cables.append(cable)
        self._dial(cable, self.clock.now)

    def _dial(self, cable: Cable, now: float) -> None:
        """The first end dials again and again, unless it believes to be connected; the other may believe so."""
        one, other = (self.brokers[end] for end in cable.ends)
        is_open = any(connection.cable is cable for connection in one.open.values())
        if one.node and other.node and not cable.is_cut and not is_open:
            self._handles += 1
            connection = cable.connection = Connection(self, cable, self._handles)
            for broker in (one, other):
                broker.open[self._handles] = connection
                assert broker.node is not None
                broker.node.opened(self._handles, now)
                self.serve(broker)
        self.clock.after(self.random.uniform(0.05, 0.2), partial(self._dial, cable))

    def arrive(self, connection: Connection, end: int, data: bytes) -> None:
        broker = self.brokers[end]
        if not connection.is_dead and broker.node is not None and connection.handle in broker.open:
            broker.node.receive(connection.handle, data, self.clock.now)
            self.serve(broker)

    def break_off(self, connection: Connection, but: int = 0) -> None:
        """Nothing arrives any more; each end notices after a while."""
        connection.is_dead = True
        for end in connection.cable.ends:
            if end != but and connection.handle in self.brokers[end].open:
                self.clock.after(self.random.uniform(0.01, 0.6), partial(self._notice, connection, end))

    def _notice(self, connection: Connection, end: int, now: float) -> None:
        broker = self.brokers[end]
        if broker.node is not None and broker.open.pop(connection.handle, None) is not None:
            broker.node.closed(connection.handle, now)
            self.serve(broker)

    def cut(self, cable: Cable, for_s: float) -> None:
        if cable.is_cut:
            return
        self.tell(f"{cable.ends} is cut for {for_s:.2f}")
        cable.is_cut = True
        if cable.connection is not None and not cable.connection.is_dead:
            self.break_off(cable.connection)
        self.clock.after(for_s, partial(self._heal, cable))

    def _heal(self, cable: Cable, now: float) -> None:
        cable.is_cut = False

    def silence(self, cable: Cable, end: int, for_s: float) -> None:
        connection = cable.connection
        if connection is not None and not connection.is_dead and not connection.out[end].is_silent:
            self.tell(f"{end} is not heard by {cable.other(end)} for {for_s:.2f}")
            connection.out[end].is_silent = True
            self.clock.after(for_s, lambda _now: connection.out[end].speak())

    # -- clients

    def subscribe(self, number: int, filter: str) -> None:
        broker = self.brokers[number]
        if broker.node is not None and not broker.is_leaving and filter not in broker.filters:
            broker.filters[filter] = None
            self._subscribe(broker, broker.node, filter)
            self.serve(broker)

    def _subscribe(self, broker: Broker, node: Node, filter: str) -> None:
        broker.requests[node.subscribe(wish_of(filter), 1, self.clock.now)] = filter

    def _wanted_by(self, node: Node, topic: str, value: int) -> frozenset[int]:
        """The brokers to which a message goes, as a node knows them."""
        known = node.interests.known.items()
        return frozenset(broker for broker, (_, entries) in known if any(wants(each, topic, value) for each in entries))

    def publish(self, number: int, publisher: int, topic: str, qos: int, level: int, count: int) -> None:
        broker = self.brokers[number]
        if broker.node is None or broker.is_leaving:
            return
        node, now, flow = broker.node, self.clock.now, (publisher, topic, qos)
        messages: list[tuple[frozenset[int], Message]] = []
        for _ in range(count):
            position = self._numbers[flow] = self._numbers.get(flow, 0) + 1
            value = self.random.randrange(100)
            text = f"{publisher}|{topic}|{qos}|{position}|".encode() + bytes(self.random.randrange(500))
            to = self._wanted_by(node, topic, value)
            wanted_by = numbers_of(node, to)
            messages.append((to, Message(text, number, flow, position, now, wanted_by, value, len(broker.began))))
        for to, together in groupby(messages, key=itemgetter(0)):
            run = [message for _, message in together]
            payloads = tuple(message.text for message in run)
            if node.publish(payloads, level=level, assured=qos > 0, spread=publisher, destinations=to, now=now):
                self.messages += run
                broker.unsealed += run
        self.serve(broker)


def _knows_wishes(node: Node, name: str) -> bool:
    number = node.directory.find(name)
    return number is not None and number in node.interests.known and bool(node.interests.known[number].entries)


def _owes(broker: Broker, name: str) -> bool:
    assert broker.node is not None
    number = broker.node.directory.find(name)
    outgoing = broker.node.carrier.sender.outgoing.items()
    return any(to == number and stream.owing.unsettled for (to, _lane), stream in outgoing)


def _keep(broker: Broker, notes: list[Note]) -> None:
    for key, value in notes:
        if value is None:
            broker.store.pop(key, None)
        else:
            broker.store[key] = value


def _state(ends: Ends) -> list[object]:
    """Everything that a life begins with, to be compared."""
    owing = {key: (each.settled, each.last, each.unsettled, each.base, each.bases) for key, each in ends.owing.items()}
    plain = ends.life, ends.incarnation, ends.names, ends.incarnations, ends.lives, ends.positions, ends.interests
    return [*plain, owing]
