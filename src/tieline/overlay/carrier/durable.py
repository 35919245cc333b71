"""What must survive at the ends of a stream: facts as small tuples, the state they add up to, and who waits for them.

Only the ends are durable.  An origin commits what it owes before it sends it.  A destination gives what it takes to its
clients at once, and commits how far it has come together with what that did to their queues, before it says so.
Brokers between them keep what they carry in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from tieline.overlay.interests.entries import Entries, Entry, Known

#: Incarnations of each broker that are remembered.
_INCARNATIONS: Final = 8
#: What a message that is owed takes in memory beside its bytes, about.
_OWED_BYTES: Final = 150
#: What is done once a fact is safe.
Then = Callable[[float], None]


class Begun(NamedTuple):
    """A life of the broker has begun; an incarnation is one as long as the store is."""

    life: int
    incarnation: int


class Named(NamedTuple):
    """A broker is known by a number from now on."""

    number: int
    name: str


class Renewed(NamedTuple):
    """A broker has begun anew without what it knew: its streams and those that lead to it begin with 1.

    If that turns out to be wrong, because somebody had told of an earlier incarnation, they go on where they were.
    """

    broker: int
    incarnation: int
    #: In which it was heard of.
    life: int


class Owed(NamedTuple):
    """Messages were accepted; by destination, the number of the first in the stream that leads there."""

    lane: int
    payloads: tuple[bytes, ...]
    firsts: dict[int, int]


class Replaced(NamedTuple):
    """Something else is owed in the place of a message."""

    destination: int
    lane: int
    number: int
    payload: bytes


class Settled(NamedTuple):
    """A destination has committed a stream up to a number."""

    destination: int
    lane: int
    number: int


class Taken(NamedTuple):
    """Messages of another broker were taken in; the number is that of the last one.

    What became of them is the owner's to commit, together with this.
    """

    origin: int
    incarnation: int
    lane: int
    number: int


class Wanted(NamedTuple):
    """What another broker wants beside what it wanted before, and no longer, as it said itself."""

    broker: int
    version: int
    added: Entries
    removed: frozenset[Entry]


Fact = Begun | Named | Renewed | Owed | Replaced | Settled | Taken | Wanted


def add_incarnation(before: tuple[int, ...], incarnation: int) -> tuple[int, ...]:
    """The incarnations of a broker that are remembered; the last is the one that counts."""
    return (*(other for other in before if other != incarnation), incarnation)[-_INCARNATIONS:]


class Owing:
    """What is owed to one destination in one lane: ``unsettled`` holds the numbers ``settled + 1`` to ``last``.

    On links these numbers are smaller by ``base``, so that they begin with 1 for each incarnation of the destination.
    """

    __slots__ = ("base", "bases", "bytes", "last", "settled", "unsettled")

    def __init__(self) -> None:
        self.base = 0
        #: By incarnation of the destination.
        self.bases: dict[int, int] = {}
        self.settled = 0
        self.last = 0
        self.unsettled: dict[int, bytes] = {}
        #: What those take in memory, about.
        self.bytes = 0

    def add(self, payloads: tuple[bytes, ...]) -> int:
        """Bind the next numbers; the first of them."""
        first = self.last + 1
        for payload in payloads:
            self.last += 1
            self.unsettled[self.last] = payload
            self.bytes += len(payload) + _OWED_BYTES
        return first

    def put_back(self, number: int, payload: bytes) -> None:
        """A message is still owed since an earlier life."""
        self.unsettled[number] = payload
        self.bytes += len(payload) + _OWED_BYTES

    def replace(self, number: int, payload: bytes) -> None:
        """Something else is owed in the place of a message that is not settled."""
        self.bytes += len(payload) - len(self.unsettled[number])
        self.unsettled[number] = payload

    def settle(self, number: int) -> bool:
        """Forget what is committed at the other end; whether that was news."""
        if number <= self.settled:
            return False
        for settled in range(self.settled + 1, number + 1):
            payload = self.unsettled.pop(settled, None)
            if payload is not None:
                self.bytes -= len(payload) + _OWED_BYTES
        self.settled = number
        self.last = max(self.last, number)
        return True

    def renew(self, incarnations: tuple[int, ...]) -> None:
        """The last of these incarnations counts: what is unsettled begins with 1 for it, if it is not an old one."""
        self.bases = {known: base for known, base in self.bases.items() if known in incarnations}
        self.base = self.bases.setdefault(incarnations[-1], self.settled)

    def copy(self) -> Owing:
        twin = Owing()
        twin.base, twin.bases = self.base, dict(self.bases)
        twin.settled, twin.last, twin.unsettled = self.settled, self.last, dict(self.unsettled)
        twin.bytes = self.bytes
        return twin


class Ends:
    """What all facts of a broker add up to: a store keeps it, and the next life begins with it."""

    __slots__ = ("incarnation", "incarnations", "interests", "life", "lives", "names", "owing", "positions")

    def __init__(self) -> None:
        self.life = 0
        #: 0 before the first life.
        self.incarnation = 0
        #: By number, the brokers that are known.
        self.names: dict[int, str] = {}
        #: By broker, the incarnations that it has had, the last of which the numbers of its streams belong to.
        self.incarnations: dict[int, tuple[int, ...]] = {}
        #: By broker, the life in which the last of those was heard of first.
        self.lives: dict[int, int] = {}
        #: By destination and lane.
        self.owing: dict[tuple[int, int], Owing] = {}
        #: By origin, its incarnation and lane, the number of the last message that was taken in.
        self.positions: dict[tuple[int, int, int], int] = {}
        #: By broker, the version of its interest and its entries.
        self.interests: dict[int, Known] = {}

    def apply(self, facts: Iterable[Fact]) -> None:
        """Add facts that have been committed."""
        for fact in facts:
            if isinstance(fact, Owed):
                for destination in fact.firsts:
                    self._owing(destination, fact.lane).add(fact.payloads)
            elif isinstance(fact, Taken):
                self.positions[fact.origin, fact.incarnation, fact.lane] = fact.number
            elif isinstance(fact, Replaced):
                self.owing[fact.destination, fact.lane].replace(fact.number, fact.payload)
            elif isinstance(fact, Settled):
                self.owing[fact.destination, fact.lane].settle(fact.number)
            elif isinstance(fact, Wanted):
                before = self.interests.get(fact.broker, Known(0, {})).entries
                entries = {entry: terms for entry, terms in before.items() if entry not in fact.removed}
                self.interests[fact.broker] = Known(fact.version, {**entries, **fact.added})
            elif isinstance(fact, Named):
                self.names[fact.number] = fact.name
            elif isinstance(fact, Renewed):
                self._renew(fact)
            else:
                self.life, self.incarnation = fact

    def _owing(self, destination: int, lane: int) -> Owing:
        owing = self.owing.get((destination, lane))
        if owing is None:
            owing = self.owing[destination, lane] = Owing()
            if destination in self.incarnations:
                owing.renew(self.incarnations[destination])
        return owing

    def _renew(self, fact: Renewed) -> None:
        known = self.incarnations[fact.broker] = add_incarnation(
            self.incarnations.get(fact.broker, ()), fact.incarnation
        )
        self.lives[fact.broker] = fact.life
        for (destination, _lane), owing in self.owing.items():
            if destination == fact.broker:
                owing.renew(known)
        for key in [key for key in self.positions if key[0] == fact.broker and key[1] not in known]:
            del self.positions[key]


class Journal:
    """Facts that wait to be committed, and what is done once they are."""

    __slots__ = ("_facts", "_sealed", "_thens", "_token")

    def __init__(self) -> None:
        self._facts: list[Fact] = []
        self._thens: list[Then] = []
        self._token = 0
        #: By token, what waits for that commit.
        self._sealed: dict[int, list[Then]] = {}

    def __len__(self) -> int:
        return len(self._facts) + sum(map(len, self._sealed.values()))

    def note(self, fact: Fact, then: Then | None = None) -> None:
        """Have a fact committed, and something done after that."""
        self._facts.append(fact)
        if then is not None:
            self._thens.append(then)

    def note_all(self, facts: Iterable[Fact], then: Then) -> None:
        """Have facts committed together, and something done after that."""
        self._facts += facts
        self._thens.append(then)

    def seal(self) -> tuple[int, list[Fact]] | None:
        """The facts since the last call, to be committed together under a token; None if there are none."""
        if not self._facts:
            return None
        self._token += 1
        facts, self._facts = self._facts, []
        self._sealed[self._token], self._thens = self._thens, []
        return self._token, facts

    def committed(self, token: int, now: float) -> None:
        """The facts of a token are safe."""
        for then in self._sealed.pop(token):
            then(now)
