"""What must survive at the ends of a stream: facts as small tuples, the state they add up to, and who waits for them.

Only the ends are durable.  An origin commits what it owes before it sends it.  A destination gives what it takes to its
clients at once, and commits how far it has come together with what that did to their queues, before it says so.
Brokers between them keep what they carry in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from tieline.overlay.entries import Entries, Entry, Known

#: What is done once a fact is safe.
Then = Callable[[float], None]


class Begun(NamedTuple):
    """A life of the broker has begun."""

    life: int


class Owed(NamedTuple):
    """Messages were accepted; by destination, the number of the first in the stream that leads there."""

    lane: int
    payloads: tuple[bytes, ...]
    firsts: dict[int, int]


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
    lane: int
    number: int


class Wanted(NamedTuple):
    """What another broker wants beside what it wanted before, and no longer, as it said itself."""

    broker: int
    version: int
    added: Entries
    removed: frozenset[Entry]


Fact = Begun | Owed | Settled | Taken | Wanted


class Owing:
    """What is owed to one destination in one lane: ``unsettled`` holds the numbers ``settled + 1`` to ``last``."""

    __slots__ = ("last", "settled", "unsettled")

    def __init__(self) -> None:
        self.settled = 0
        self.last = 0
        self.unsettled: dict[int, bytes] = {}

    def add(self, payloads: tuple[bytes, ...]) -> int:
        """Bind the next numbers; the first of them."""
        first = self.last + 1
        for payload in payloads:
            self.last += 1
            self.unsettled[self.last] = payload
        return first

    def settle(self, number: int) -> bool:
        """Forget what is committed at the other end; whether that was news."""
        if number <= self.settled:
            return False
        for settled in range(self.settled + 1, number + 1):
            self.unsettled.pop(settled, None)
        self.settled = number
        self.last = max(self.last, number)
        return True

    def copy(self) -> Owing:
        twin = Owing()
        twin.settled, twin.last, twin.unsettled = self.settled, self.last, dict(self.unsettled)
        return twin


class Ends:
    """What all facts of a broker add up to: a store keeps it, and the next life begins with it."""

    __slots__ = ("interests", "life", "owing", "positions")

    def __init__(self) -> None:
        self.life = 0
        #: By destination and lane.
        self.owing: dict[tuple[int, int], Owing] = {}
        #: By origin and lane, the number of the last message that was taken in.
        self.positions: dict[tuple[int, int], int] = {}
        #: By broker, the version of its interest and its entries.
        self.interests: dict[int, Known] = {}

    def apply(self, facts: Iterable[Fact]) -> None:
        """Add facts that have been committed."""
        for fact in facts:
            if isinstance(fact, Owed):
                for destination in fact.firsts:
                    self.owing.setdefault((destination, fact.lane), Owing()).add(fact.payloads)
            elif isinstance(fact, Taken):
                self.positions[fact.origin, fact.lane] = fact.number
            elif isinstance(fact, Settled):
                self.owing[fact.destination, fact.lane].settle(fact.number)
            elif isinstance(fact, Wanted):
                before = self.interests.get(fact.broker, Known(0, {})).entries
                entries = {entry: terms for entry, terms in before.items() if entry not in fact.removed}
                self.interests[fact.broker] = Known(fact.version, {**entries, **fact.added})
            else:
                self.life = fact.life


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
