"""Who is shown every message that is accepted: the log that captures some, and counts that somebody has asked for."""

from __future__ import annotations

from typing import Protocol

from tieline.core.message import Burst, Message


class ArrivalObserver(Protocol):
    """Somebody who wants to see accepted messages, in the order of arrival."""

    def message(self, message: Message, packet_id: int = 0, *, dup: bool = False) -> None:
        """One message was accepted, under the packet id of its publisher; 0 if it has none."""

    def burst(self, burst: Burst) -> None:
        """QoS 0 messages were accepted as they came."""


class Arrivals:
    """Accepted messages, for those who watch; nobody does on most brokers, and the hot path asks only that."""

    __slots__ = ("is_watched", "observers")

    def __init__(self) -> None:
        self.observers: tuple[ArrivalObserver, ...] = ()
        self.is_watched = False

    def watch(self, observer: ArrivalObserver) -> None:
        """Show everything to one more, after those who watch already."""
        self.observers = (*self.observers, observer)
        self.is_watched = True

    def unwatch(self, observer: ArrivalObserver) -> None:
        """Show nothing more to one of them; one that does not watch is fine."""
        self.observers = tuple(one for one in self.observers if one is not observer)
        self.is_watched = bool(self.observers)

    def message(self, message: Message, packet_id: int = 0, *, dup: bool = False) -> None:
        """Show a message to everybody who watches; callers ask ``is_watched`` first."""
        for observer in self.observers:
            observer.message(message, packet_id, dup=dup)

    def burst(self, burst: Burst) -> None:
        """Show QoS 0 messages as they came, in the same way."""
        for observer in self.observers:
            observer.burst(burst)
