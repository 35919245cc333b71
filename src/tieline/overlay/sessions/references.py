"""Where clients may go that cannot stay: what other brokers say of themselves, and what they hear of this one.

A broker whose settings say where clients reach it tells all others, once in each of their lives and whenever that
changes; one that is drained says that nobody should come.  Nothing of this is kept: whoever begins anew hears it again.
A peer with rights is not believed: it could have clients sent anywhere.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tieline.overlay.sessions.errands import Reference
from tieline.overlay.sessions.post import Post

#: Characters of a reference; what is longer is none.
LONGEST: Final = 255


class References:
    """The Server References of joined brokers."""

    def __init__(self, post: Post, own: Callable[[], str]) -> None:
        self._post = post
        #: What others should know of this broker now.
        self._own = own
        #: By broker, the life of it that was told last, and what.
        self._told: dict[int, tuple[int, str]] = {}
        self._known: dict[int, str] = {}
        #: The broker that somebody was sent to last.
        self._last = 0

    def tell(self) -> None:
        """Say what is new to all brokers in reach."""
        own, states = self._own(), self._post.node.membership.states
        for broker in self._post.reachable:
            life, told = self._told.get(broker, (0, ""))
            now = states[broker].life
            if told != own or (own and life != now):
                self._told[broker] = now, own
                self._post.tell(broker, Reference(own))

    def learn(self, broker: int, where: str) -> None:
        """A broker says where clients reach it, or that nobody should come."""
        if where and len(where) <= LONGEST:
            self._known[broker] = where
        else:
            self._known.pop(broker, None)

    def of(self, broker: int) -> str:
        """Where clients reach a broker; empty if it is out of reach, or has not said so."""
        return self._known.get(broker, "") if broker in self._post.reachable else ""

    def next(self) -> str:
        """Where one client should go: brokers in reach take turns; empty if none has said where it is."""
        reachable = self._post.reachable
        able = sorted(broker for broker in self._known if broker in reachable)
        if not able:
            return ""
        self._last = next((broker for broker in able if broker > self._last), able[0])
        return self._known[self._last]
