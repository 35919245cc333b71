"""What a socket and its turns know of each other, so that a link needs nothing of the loop that serves it."""

from __future__ import annotations

import select
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from tieline.core.broker import Broker


class Watched(Protocol):
    """Something with a file descriptor in the set."""

    fd: int

    def handle(self, events: int, now: float, is_alone: bool) -> None:
        """It is ready; ``is_alone`` when nothing else is."""


class Turns(ABC):
    """Whoever gives descriptors their turns; :class:`tieline.net.loop.Loop` does.

    A class and not a protocol, since links ask it for every message, and compiled code finds the methods of a class at
    once.
    """

    def __init__(self, broker: Broker, read_budget: int) -> None:
        self.broker = broker
        #: Bytes that one connection may send before the urgent ones are looked at again.
        self.read_budget = read_budget

    @abstractmethod
    def watch(self, watched: Watched) -> None:
        """Add a descriptor, for reading."""

    @abstractmethod
    def modify(self, watched: Watched, events: int) -> None:
        """Change what a descriptor is watched for."""

    @abstractmethod
    def forget(self, watched: Watched) -> None:
        """Remove a descriptor, before it is closed."""

    @abstractmethod
    def move(self, fd: int, events: int, other: select.epoll, *, is_back: bool) -> None:
        """Move a descriptor to another set, or back."""

    @abstractmethod
    def gone(self, link: Watched) -> None:
        """A write found that the peer is gone: closed after this turn."""

    @abstractmethod
    def serve(self, link: Watched, events: int, now: float, is_alone: bool) -> None:
        """Handle one ready descriptor."""

    @abstractmethod
    def flush(self, now: float) -> None:
        """Write to every changed connection, once, and hand over to the store what has changed."""
