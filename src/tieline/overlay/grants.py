"""What waits until all brokers in reach know what this one wants."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from tieline.overlay.interests.entries import Entry
from tieline.overlay.node import Node

#: What is wanted of others until the core says which QoS its clients have asked for.
_QOS: Final = 2


class Grants:
    """What one node wants, and who waits for that to be known."""

    def __init__(self, node: Node) -> None:
        self._node = node
        #: What waits until others know of some subscriptions, by the numbers of those.
        self._waiting: list[tuple[set[int], Callable[[], None]]] = []

    def want(self, changes: Iterable[tuple[Entry, bool]], now: float) -> set[int]:
        """Want some things (True) and others no longer; the numbers of the former that are not known everywhere yet."""
        numbers = self._node.change([(entry, _QOS, is_new) for entry, is_new in changes], now)
        return set(numbers) - self.take()

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
