"""What a cluster head keeps of subscriptions: who wants what behind each link, and what is told over which of them.

Theory of operation
-------------------
A link leads to another cluster or to a sink.  Of each link the table holds the interests that came over it.  Over some
links it tells on what it holds from all the others: in a tree only to the cluster above, among peers to every
neighbour.  What is told is decided by the covering forest of that link, the broker's own
(:mod:`tieline.match.cover.forest`), or is everything, where covering is switched off.

With advertisements, an interest is told over a link only if something behind that link can sense its topic.

The table neither sends nor knows of time: each change returns what is to be said.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Final, Literal, NamedTuple, Protocol

from tieline.match.cover.forest import NOTHING, Changes, Forest
from tieline.match.cover.interests import Interest

Covering = Literal["none", "suboptimal", "optimal"]
#: A cluster by its number, a sink by minus one minus its number.
Link = int


def link_of_sink(sink: int) -> Link:
    """The link that leads to a sink."""
    return -1 - sink


class Telling(NamedTuple):
    """Something to be said over a link: an interest begins or ends there."""

    link: Link
    is_new: bool
    interest: int


class Told(Protocol):
    """What decides which interests are told over a link; the covering forest does."""

    @property
    def forwarded(self) -> Iterator[Interest]: ...

    def add(self, id: Hashable, interest: Interest) -> Changes: ...

    def remove(self, id: Hashable) -> Changes: ...


class Everything:
    """Tells each interest that somebody holds: covering switched off."""

    def __init__(self) -> None:
        self._held: dict[Hashable, Interest] = {}
        self._holders: dict[Interest, int] = {}

    @property
    def forwarded(self) -> Iterator[Interest]:
        return iter(self._holders)

    def add(self, id: Hashable, interest: Interest) -> Changes:
        if id in self._held:
            return NOTHING
        self._held[id] = interest
        self._holders[interest] = self._holders.get(interest, 0) + 1
        return Changes((interest,)) if self._holders[interest] == 1 else NOTHING

    def remove(self, id: Hashable) -> Changes:
        interest = self._held.pop(id)
        self._holders[interest] -= 1
        if self._holders[interest]:
            return NOTHING
        del self._holders[interest]
        return Changes((), (interest,))


class _Side:
    """One link of a table."""

    def __init__(self, told: Told | None, topics: frozenset[str] | None) -> None:
        #: The interests that came over it.
        self.held: set[int] = set()
        #: What is told over it; None if nothing is.
        self.told = told
        #: The topics that can be sensed behind it, None if that does not matter.
        self.topics = topics
        #: What is not told only because nothing behind the link can sense it.
        self.withheld: set[tuple[Link, int]] = set()


class HeadTable:
    """The subscriptions that one cluster head knows."""

    def __init__(self, covering: Covering, interests: Sequence[Interest]) -> None:
        self._covering: Final = covering
        #: All interests by id; an id stands for an interest on the air.
        self._interests: Final = interests
        self._ids: Final = {interest: id for id, interest in reversed(list(enumerate(interests)))}
        self._sides: dict[Link, _Side] = {}

    def __len__(self) -> int:
        """How many entries the table has."""
        return sum(len(side.held) for side in self._sides.values())

    @property
    def links(self) -> list[Link]:
        return list(self._sides)

    def entries(self) -> list[tuple[Link, int]]:
        """Every entry, as a head hands them over."""
        return [(link, id) for link, side in self._sides.items() for id in sorted(side.held)]

    def held(self, link: Link) -> set[int]:
        side = self._sides.get(link)
        return set() if side is None else set(side.held)

    def told(self, link: Link) -> list[int]:
        """The interests that the other end of a link should know from here, in a fixed order."""
        side = self._sides.get(link)
        if side is None or side.told is None:
            return []
        return sorted(self._ids[interest] for interest in side.told.forwarded)

    def open(self, link: Link, *, tells: bool, topics: frozenset[str] | None = None) -> list[Telling]:
        """Begin a link; what it should hear at once."""
        if link in self._sides:
            return []
        if not tells:
            self._sides[link] = _Side(None, topics)
            return []
        told: Told = Everything() if self._covering == "none" else Forest(self._covering)
        side = self._sides[link] = _Side(told, topics)
        found = []
        for origin, other in self._sides.items():
            if origin != link:
                for id in sorted(other.held):
                    found += self._tell(link, side, origin, id)
        return found

    def close(self, link: Link) -> list[Telling]:
        """End a link, with all that came over it; what the others should hear."""
        found = self.forget(link)
        self._sides.pop(link, None)
        return found

    def forget(self, link: Link) -> list[Telling]:
        """Drop what came over a link; what the others should hear."""
        side = self._sides.get(link)
        return [] if side is None else [said for id in sorted(side.held) for said in self.cancel(link, id)]

    def add(self, link: Link, id: int) -> list[Telling]:
        """Somebody behind a link wants something; what the other links should hear."""
        side = self._sides.get(link)
        if side is None or id in side.held:
            return []
        side.held.add(id)
        return [
            said for other, one in self._sides.items() if other != link and one.told is not None
            for said in self._tell(other, one, link, id)
        ]  # fmt: skip

    def cancel(self, link: Link, id: int) -> list[Telling]:
        """Nobody behind a link wants something any more; what the other links should hear."""
        side = self._sides.get(link)
        if side is None or id not in side.held:
            return []
        side.held.remove(id)
        found = []
        for other, one in self._sides.items():
            if other == link or one.told is None:
                continue
            if (link, id) in one.withheld:
                one.withheld.remove((link, id))
                continue
            found += self._said(other, one.told.remove((link, id)))
        return found

    def advertise(self, link: Link, topics: frozenset[str]) -> list[Telling]:
        """More can be sensed behind a link; what it should hear now."""
        side = self._sides.get(link)
        if side is None or side.topics is None:
            return []
        side.topics |= topics
        found = []
        for origin, id in sorted(side.withheld):
            if self._interests[id].filter in side.topics:
                side.withheld.remove((origin, id))
                found += self._tell(link, side, origin, id)
        return found

    def wanting(self, matching: frozenset[int]) -> list[Link]:
        """The links over which some interest in an event came."""
        return [link for link, side in self._sides.items() if not side.held.isdisjoint(matching)]

    def _tell(self, link: Link, side: _Side, origin: Link, id: int) -> list[Telling]:
        assert side.told is not None, "only links that are told something have a forest"
        interest = self._interests[id]
        if side.topics is not None and interest.filter not in side.topics:
            side.withheld.add((origin, id))
            return []
        return self._said(link, side.told.add((origin, id), interest))

    def _said(self, link: Link, changes: Changes) -> list[Telling]:
        new = [Telling(link, True, self._ids[interest]) for interest in changes.forward]
        return new + [Telling(link, False, self._ids[interest]) for interest in changes.cancel]
