"""A broker is emptied for maintenance: its clients are sent away at a pace, and their sessions go to other brokers.

New clients are refused.  Those that are connected are told to use another server, where their protocol has words for
that.  Sessions whose clients are away are offered to brokers in reach, a few at a time: each of them claims what it is
offered, as if the client had come to it, so nothing is lost.  Who does not claim is not asked again for a while.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from tieline.core.broker import Broker
from tieline.core.client import CONNECTED, Session
from tieline.overlay.sessions.errands import Invite
from tieline.overlay.sessions.passages import Passages
from tieline.overlay.sessions.post import Post
from tieline.overlay.sessions.registry import Registry
from tieline.wire.reason import Reason

#: How often something is done, how many clients are sent away then, and how many sessions are offered at once.
_STEP_S: Final = 0.1
_CLIENTS: Final = 50
_OFFERS: Final = 100
#: How long an offer is waited for.
_PATIENCE_S: Final = 5.0


class Progress(NamedTuple):
    """What is left of a broker."""

    is_draining: bool
    connections: int
    sessions: int
    #: Sessions that have left and whose new home still needs something of this broker.
    leaving: int
    #: Bytes that are owed to other brokers.
    owed_bytes: int
    #: Brokers in reach.
    others: int

    @property
    def is_done(self) -> bool:
        """Whether it may be ended without loss."""
        return self.is_draining and not (self.connections or self.sessions or self.leaving or self.owed_bytes)


class Draining:
    """Whether a broker is emptied, and how far that is."""

    def __init__(
        self, core: Broker, post: Post, registry: Registry, passages: Passages, changed: Callable[[], None]
    ) -> None:
        self._core = core
        #: Told when it begins or stops: others send no clients here meanwhile.
        self._changed = changed
        self._post = post
        self._registry = registry
        self._passages = passages
        self.is_on = False
        #: By client id, until when an offer is waited for, and to whom it was made.
        self._offers: dict[str, tuple[float, int]] = {}
        #: By broker, until when it is offered nothing, because it did not claim.
        self._shy: dict[int, float] = {}

    def begin(self, now: float) -> None:
        """Let nobody in any more, and send everybody away."""
        if not self.is_on:
            self.is_on = True
            self._changed()
            self._core.timers.at(now, self._step)

    def stop(self) -> None:
        """Go on as before with what is left."""
        self.is_on = False
        self._changed()
        self._offers.clear()

    def progress(self) -> Progress:
        """What is left to be done before this broker may stop."""
        owed = sum(self._post.node.carrier.sender.owed_bytes.values())
        connected = sum(conn.state is CONNECTED for conn in self._core.connections)
        sessions = len(self._core.sessions)
        others = len(self._post.reachable)
        return Progress(self.is_on, connected, sessions, len(self._passages.leaving), owed, others)

    def _step(self, now: float) -> None:
        if not self.is_on:
            return
        self._post.now = now
        self._send_away(now)
        self._offer(now)
        self._core.timers.at(now + _STEP_S, self._step)

    def _send_away(self, now: float) -> None:
        connected = [conn for conn in self._core.connections if conn.state is CONNECTED]
        for conn in connected[:_CLIENTS]:
            text = "this broker is emptied for maintenance"
            self._core.shut(conn, "drained", now, reason=Reason.USE_ANOTHER_SERVER, text=text)

    def _offer(self, now: float) -> None:
        sessions = self._core.sessions
        for client_id, (until, broker) in list(self._offers.items()):
            if client_id not in sessions:
                del self._offers[client_id]
            elif now >= until:
                del self._offers[client_id]
                self._shy[broker] = now + _PATIENCE_S
        room = _OFFERS - len(self._offers)
        if room <= 0:
            return
        invited: dict[int, list[tuple[str, str | None, int]]] = {}
        for session in self._absent(room):
            broker = self._choose(invited, now)
            if not broker:
                return
            self._offers[session.client_id] = now + _PATIENCE_S, broker
            epoch = self._registry.epoch(session.client_id)
            invited.setdefault(broker, []).append((session.client_id, session.user, epoch))
        for broker, entries in invited.items():
            self._post.tell(broker, Invite(entries))

    def _absent(self, most: int) -> list[Session]:
        found: list[Session] = []
        for session in self._core.sessions.values():
            if len(found) >= most:
                break
            if session.connection is None and session.expiry_s and session.client_id not in self._offers:
                found.append(session)
        return found

    def _choose(self, invited: dict[int, list[tuple[str, str | None, int]]], now: float) -> int:
        """The broker that has the fewest sessions, of those that take some; 0 if nobody does."""
        keeps = self._registry.elsewhere
        able = [broker for broker in self._post.reachable if self._shy.get(broker, 0.0) <= now]
        return min(able, key=lambda broker: (keeps.get(broker, 0) + len(invited.get(broker, ())), broker), default=0)
