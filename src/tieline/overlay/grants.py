"""What waits until all brokers in reach know what this one wants; and what of that they need not know."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Final

from tieline.core.timers import Timers
from tieline.overlay.interests.entries import Entry
from tieline.overlay.interests.interests import Follower
from tieline.overlay.interests.marks import declaration
from tieline.overlay.interests.sparing import Sparing
from tieline.overlay.interests.supplement import Supplement
from tieline.overlay.node import Node

#: What is wanted of others until the core says which QoS its clients have asked for.
_QOS: Final = 2


class Grants:
    """What one node wants, and who waits for that to be known."""

    def __init__(self, node: Node, timers: Timers) -> None:
        self._node = node
        #: What waits until others know of some subscriptions, by the numbers of those.
        self._waiting: list[tuple[set[int], Callable[[], None]]] = []
        #: What others need not hear of, since nothing that meets it is published at them.
        self.sparing = Sparing(self, timers)
        #: What may be published here: anything, or topics of these filters.
        self.published: frozenset[str] | None = None
        self._supplement: Supplement | None = None
        #: Told when somebody has declared something else.
        self.on_declared: Callable[[], None] = lambda: None

    def want(self, changes: Iterable[tuple[Entry, bool]], now: float) -> set[int]:
        """Want some things (True) and others no longer; the numbers of the former that are not known everywhere yet."""
        return self.tell(self.sparing.sort(changes), now)

    def tell(self, changes: Iterable[tuple[Entry, bool]], now: float) -> set[int]:
        """The same of what others have to hear of."""
        numbers = self._node.change([(entry, _QOS, is_new) for entry, is_new in changes], now)
        return set(numbers) - self.take()

    @property
    def said(self) -> Collection[Entry]:
        """What others were told last."""
        return self._node.interests.own.keys()

    @property
    def is_growing(self) -> bool:
        """Whether something is wanted that is still to be told."""
        return self._node.interests.is_growing

    def when_known(self, numbers: Iterable[int], then: Callable[[], None]) -> None:
        """Have something done when all brokers in reach know of what has begun under these numbers."""
        self._waiting.append(({*numbers}, then))

    def take(self) -> set[int]:
        """See what has become known, and do what waited for it; the numbers of that."""
        granted = {grant.number for grant in self._node.granted}
        self._node.granted.clear()
        if granted and self._waiting:
            before, self._waiting = self._waiting, []
            done = []
            for numbers, then in before:
                numbers -= granted
                if numbers:
                    self._waiting.append((numbers, then))
                else:
                    done.append(then)
            for then in done:
                then()
        return granted

    # -- what may be published, here and elsewhere

    def follow(self, follower: Follower) -> None:
        """Tell somebody what every other broker wants, now and whenever it changes."""
        interests = self._node.interests
        self._supplement = Supplement(self._node.name, interests, follower)
        self._supplement.declare(self.published)
        interests.concluded = self._concluded
        interests.follow(self._supplement.learned)
        for broker in interests.known:
            self._concluded(broker)

    def declare(self, filters: Iterable[str] | None, now: float) -> None:
        """Say what may be published here; whoever does not know it yet is taken to want all of it."""
        published = None if filters is None else frozenset(filters)
        if published == self.published:
            return
        before, after = declaration(self.published), declaration(published)
        self.published = published
        if self._supplement is not None:
            self._supplement.declare(published)
        self.tell([*((mark, True) for mark in sorted(after - before))], now)
        # at once: on every link it goes before what is published from now on, so whoever carries that knows of it
        while self.is_growing:
            self._node.announcing.say(now)
        self.tell([*((mark, False) for mark in sorted(before - after))], now)

    def _concluded(self, broker: int) -> None:
        supplement = self._supplement
        if supplement is not None and supplement.concluded(broker):
            self.sparing.declare(self.declarations())
            self.on_declared()

    def declarations(self) -> dict[str, frozenset[str] | None]:
        """What all others that are known have declared, by name."""
        names = self._node.directory.names
        known = {} if self._supplement is None else self._supplement.declared
        return {names[broker]: declared for broker, declared in known.items()}

    @property
    def supplemented(self) -> int:
        """Brokers that are taken to want everything, since they do not know yet what may be published here."""
        return 0 if self._supplement is None else len(self._supplement.added)
