"""What each broker wants, as it says itself: grown before a subscription is acknowledged, shrunk lazily.

Theory of operation
-------------------
A broker's interest is a set of filters under a version that only grows, also over its lives.  Whoever learns a newer
version commits it, passes it on, and echoes the version to its owner.  A subscription is granted once every reachable
broker has echoed a version that covers it: what any of them accepts from then on will be sent.  Waiting is bounded, and
a subscription that was granted without an echo is counted.

What an unreachable broker wants is kept: what is published meanwhile is owed to it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from tieline.match.cover.filters import covers
from tieline.match.trees import FilterTree
from tieline.overlay.frame import BadFrame, Kind, Reader, frame, put, put_bytes
from tieline.wire.errors import Violation
from tieline.wire.topics import check_filter

#: Versions of one life.
_PER_LIFE: Final = 1 << 24
#: Levels of a filter that another broker may ask for.
_LEVELS: Final = 256
#: Topics of which it is remembered who wants them.
_MEMORY: Final = 4_096


def interest_body(broker: int, version: int, filters: Iterable[str]) -> bytes:
    """The body of an INTEREST frame, which is also that of a notice that asks for an echo."""
    texts = [put_bytes(text.encode()) for text in sorted(filters)]
    return b"".join((put(broker, version, len(texts)), *texts))


def read_interest(body: bytes) -> tuple[int, int, frozenset[str]]:
    """The broker, the version and the filters."""
    reader = Reader(body)
    broker, version, filters = reader.broker(), reader.integer(), {reader.text() for _ in reader.repeat()}
    for filter in filters:
        try:
            check_filter(filter, _LEVELS)
        except Violation as error:
            raise BadFrame(f"the interest of {broker}: {error}") from None
    return broker, version, frozenset(filters)


@dataclass(slots=True)
class Request:
    """A subscription that waits until it may be acknowledged."""

    number: int
    filter: str
    #: The version of our interest that covers it.
    version: int
    deadline: float


@dataclass(frozen=True, slots=True)
class Granted:
    """A subscription that may be acknowledged, and who has echoed it."""

    number: int
    echoed: frozenset[int]


class Interests:
    """What this broker wants, what the others want, and how far they know of us."""

    def __init__(self, broker: int, life: int, known: dict[int, tuple[int, frozenset[str]]]) -> None:
        self._broker = broker
        self._version = life * _PER_LIFE
        #: The filters of our own, with the number of subscriptions that need each.
        self._needed: dict[str, int] = {}
        #: What was said last; never less than what is needed and was said.
        self._said: frozenset[str] = frozenset()
        #: Whether something is needed that was not said, or said that is not needed.
        self.is_changed = False
        #: By broker, as committed or about to be.
        self.known: dict[int, tuple[int, frozenset[str]]] = {}
        self._tree: FilterTree[set[int]] = FilterTree()
        self._wanted: dict[str, frozenset[int]] = {}
        #: By broker, the version of ours that it has echoed.
        self._echoed: dict[int, int] = {}
        self.requests: list[Request] = []
        self._number = 0
        for other, (version, filters) in known.items():
            if other != broker:
                self.learn(other, version, filters)

    # -- what others want

    def learn(self, broker: int, version: int, filters: frozenset[str]) -> bool:
        """Take in the interest of another broker; whether it is news, which has to be committed and passed on."""
        before, old = self.known.get(broker, (0, frozenset()))
        if broker == self._broker or version <= before:
            return False
        self.known[broker] = version, filters
        for gone in old - filters:
            brokers = self._tree.get(gone)
            if brokers is not None:
                brokers.discard(broker)
                if not brokers:
                    self._tree.remove(gone)
        for new in filters - old:
            brokers = self._tree.get(new)
            if brokers is None:
                self._tree.put(new, {broker})
            else:
                brokers.add(broker)
        self._wanted.clear()
        return True

    def wanted_by(self, topic: str) -> frozenset[int]:
        """The other brokers that want a topic."""
        brokers = self._wanted.get(topic)
        if brokers is None:
            if len(self._wanted) >= _MEMORY:
                self._wanted.clear()
            brokers = self._wanted[topic] = frozenset().union(*self._tree.match(topic))
        return brokers

    @property
    def versions(self) -> dict[int, int]:
        """The version that is known of each broker, ourselves included."""
        return {self._broker: self._version, **{broker: version for broker, (version, _) in self.known.items()}}

    def newer_than(self, versions: dict[int, int]) -> list[bytes]:
        """Frames with everything that is not known to somebody who knows these versions."""
        known = dict(self.known)
        if self._version % _PER_LIFE:  # before anything was said in this life, what the last one said holds
            known[self._broker] = self._version, self._said
        return [
            frame(Kind.INTEREST, interest_body(broker, version, filters))
            for broker, (version, filters) in known.items()
            if version > versions.get(broker, 0)
        ]

    # -- what this broker wants

    def need(self, filter: str, deadline: float) -> int:
        """A subscription begins; the number under which it will be granted."""
        self._needed[filter] = self._needed.get(filter, 0) + 1
        version = self._version
        if not any(covers(said, filter) for said in self._said):
            self.is_changed = True
            version += 1
        self._number += 1
        self.requests.append(Request(self._number, filter, version, deadline))
        return self._number

    def release(self, filter: str) -> None:
        """A subscription ends; the interest shrinks with the next version."""
        count = self._needed[filter] - 1
        if count:
            self._needed[filter] = count
        else:
            del self._needed[filter]
            self.is_changed = True

    def say(self) -> bytes:
        """The next version of our own interest, as a frame to be flooded."""
        self._version += 1
        self._said = frozenset(self._needed)
        self.is_changed = False
        return frame(Kind.INTEREST, self.own_body)

    @property
    def own_body(self) -> bytes:
        return interest_body(self._broker, self._version, self._said)

    def echoed(self, broker: int, version: int) -> None:
        """Another broker has committed a version of our interest."""
        self._echoed[broker] = max(version, self._echoed.get(broker, 0))

    def missing(self, reachable: Iterable[int]) -> set[int]:
        """The brokers whose echo a request waits for."""
        newest = max((request.version for request in self.requests), default=0)
        return {broker for broker in reachable if self._echoed.get(broker, 0) < newest}

    def grant(self, reachable: frozenset[int], now: float) -> tuple[list[Granted], int]:
        """The requests that need wait no longer, and how many of them somebody had not echoed."""
        granted, late, waiting = [], 0, []
        for request in self.requests:
            echoed = frozenset(broker for broker, version in self._echoed.items() if version >= request.version)
            is_known = reachable <= echoed and request.version <= self._version
            if is_known or now >= request.deadline:
                granted.append(Granted(request.number, echoed))
                late += not is_known
            else:
                waiting.append(request)
        self.requests = waiting
        return granted, late
