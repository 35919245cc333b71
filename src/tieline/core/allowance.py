"""What one client is allowed: the broker's limits, those of its listener, and those of its user, whichever is least.

A limit of a listener holds for each of its clients.  A limit of a user holds for all connections of that user together
where that makes a difference (how many there are, how fast they send), so that opening more of them gains nothing.
Clients without a user count as one.

How fast a client sends is told by a :class:`Meter`: a bucket of tokens for messages and one for bytes, each refilled at
its rate and never holding more than one second's worth.  What arrived is charged afterwards, a chunk at a time: the
bucket goes below zero, and the client is not read until it is at zero again.  Nothing is dropped, and over any longer
time the rate holds; a single chunk may exceed it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tieline.conf.quantities import UNLIMITED, Limit, NoLimit, bound
from tieline.conf.schema import Absent, Listener, Settings, UserLimit
from tieline.core.timers import Timers

#: Limits of users that everybody has, and that those have who are nobody in particular.
EVERYBODY = "*"
NOBODY = "-"
#: How long a user's meter is kept after the last connection: reconnecting must not refill it.
REMEMBERED_S = 2.0
#: Rounding leaves debts that no clock can tell from none.
INSTANT_S = 1e-6


class Meter:
    """The two buckets of a connection, or of all connections of a user."""

    __slots__ = ("_byte_rate", "_bytes", "_message_rate", "_messages", "_then")

    def __init__(self, messages_per_s: float | None, bytes_per_s: float | None) -> None:
        """None where there is no limit."""
        self._message_rate = messages_per_s
        self._byte_rate = bytes_per_s
        self._messages = max(1.0, messages_per_s or 0.0)
        self._bytes = bytes_per_s or 0.0
        self._then: float | None = None

    def charge(self, messages: int, size: int, now: float) -> float:
        """Take what has arrived; how many seconds to wait until more may."""
        self._refill(now)
        self._messages -= messages
        self._bytes -= size
        return self.debt_s(now)

    def debt_s(self, now: float) -> float:
        """How many seconds until more may arrive."""
        self._refill(now)
        wait_s = 0.0
        if self._message_rate is not None and self._messages < 0:
            wait_s = -self._messages / self._message_rate
        if self._byte_rate is not None and self._bytes < 0:
            wait_s = max(wait_s, -self._bytes / self._byte_rate)
        return wait_s if wait_s > INSTANT_S else 0.0

    def _refill(self, now: float) -> None:
        passed = 0.0 if self._then is None else now - self._then
        self._then = now
        if self._message_rate is not None:
            self._messages = min(max(1.0, self._message_rate), self._messages + passed * self._message_rate)
        if self._byte_rate is not None:
            self._bytes = min(self._byte_rate, self._bytes + passed * self._byte_rate)


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """The limits of one connection."""

    packet_bytes: int
    queue_bytes: int
    subscriptions: int
    topic_levels: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What may be kept for one user, or for several who count as one."""

    bytes: int
    sessions: int
    subscriptions: int
    retained_messages: int
    retained_bytes: int
    #: What happens when a queue of an absent client is full; None where the class of the message says it.
    absent: Absent | None = None


NO_BOUNDS = Bounds(
    bytes=UNLIMITED,
    sessions=UNLIMITED,
    subscriptions=UNLIMITED,
    retained_messages=UNLIMITED,
    retained_bytes=UNLIMITED,
)


class _User:
    """What the connections of one user have in common."""

    __slots__ = ("connections", "meter")

    def __init__(self, meter: Meter | None) -> None:
        self.connections = 0
        self.meter = meter


class Allowances:
    """The limits of listeners and users, and how much of them is used."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        #: What the listeners say, by their address; the shell enters them.
        self.listeners: dict[str, Listener] = {}
        self._users: dict[str | None, _User] = {}
        #: Most clients are allowed the same: what was worked out, by the limits of listener and user.
        self._made: dict[tuple[Listener, UserLimit | None], Allowance] = {}

    def renew(self, settings: Settings) -> None:
        """Other limits hold from now on; who is connected stays counted."""
        self._settings = settings
        self._made.clear()
        for user, entry in self._users.items():
            entry.meter = _meter(self._limit(user))

    def connect_timeout_s(self, listener: str) -> float:
        """How long a client of a listener may take to say who it is."""
        own = self._listener(listener).connect_timeout_s
        return self._settings.limits.connect_timeout_s if own is None else own

    def of(self, listener: str, user: str | None = None, *, is_known: bool = True) -> Allowance:
        """The limits of a client; ``is_known`` is False until it has said who it is."""
        place = self._listener(listener)
        own = self._limit(user) if is_known else None
        found = self._made.get((place, own))
        if found is None:
            found = self._made[place, own] = self._make(place, own)
        return found

    def _make(self, place: Listener, own: UserLimit | None) -> Allowance:
        limits = self._settings.limits
        theirs: list[Listener | UserLimit] = [place] if own is None else [place, own]
        return Allowance(
            packet_bytes=min(limits.packet_bytes, *(bound(each.packet_bytes) for each in theirs)),
            queue_bytes=min(bound(limits.queue_bytes), *(bound(each.queue_bytes) for each in theirs)),
            subscriptions=min(bound(limits.subscriptions), *(bound(each.subscriptions) for each in theirs)),
            topic_levels=min(limits.topic_levels, *(bound(each.topic_levels) for each in theirs)),
        )

    @property
    def memory_bytes(self) -> int:
        """What may be kept for all clients together."""
        return bound(self._settings.limits.memory_bytes)

    def bounds(self, user: str | None) -> Bounds:
        """What may be kept for a user."""
        limits, own = self._settings.limits, self._limit(user)
        if own is None:
            own = _ANY_USER
        return Bounds(
            bytes=min(bound(limits.user_bytes), bound(own.bytes)),
            sessions=min(bound(limits.user_sessions), bound(own.sessions)),
            subscriptions=min(bound(limits.user_subscriptions), bound(own.subscriptions_total)),
            retained_messages=min(bound(limits.user_retained_messages), bound(own.retained_messages)),
            retained_bytes=min(bound(limits.user_retained_bytes), bound(own.retained_bytes)),
            absent=own.absent,
        )

    def stranger_bounds(self) -> Bounds:
        """What may be kept for all clients that have not said who they are."""
        return replace(NO_BOUNDS, bytes=bound(self._settings.limits.unknown_bytes))

    def most_connections(self, user: str | None) -> Limit:
        """How many connections a user may have."""
        own = self._limit(user)
        return "none" if own is None else own.connections

    def connections(self, user: str | None) -> int:
        """How many connections a user has."""
        entry = self._users.get(user)
        return 0 if entry is None else entry.connections

    def enter(self, listener: str, user: str | None) -> tuple[Meter, ...]:
        """A client of this user was let in: what it is measured by."""
        entry = self._users.get(user)
        if entry is None:
            entry = self._users[user] = _User(_meter(self._limit(user)))
        entry.connections += 1
        meters = (_meter(self._listener(listener)), entry.meter)
        return tuple(meter for meter in meters if meter is not None)

    def meters(self, listener: str, user: str | None) -> tuple[Meter, ...]:
        """The same for a client that is in already, after the limits have changed."""
        entry = self._users[user]
        meters = (_meter(self._listener(listener)), entry.meter)
        return tuple(meter for meter in meters if meter is not None)

    def leave(self, user: str | None, timers: Timers, now: float) -> None:
        """A client of this user has gone."""
        entry = self._users[user]
        entry.connections -= 1
        if entry.connections:
            return
        if entry.meter is None:
            del self._users[user]
        else:
            timers.at(now + entry.meter.debt_s(now) + REMEMBERED_S, lambda _: self._forget(user))

    def _forget(self, user: str | None) -> None:
        entry = self._users.get(user)
        if entry is not None and not entry.connections:
            del self._users[user]

    def _listener(self, address: str) -> Listener:
        return self.listeners.get(address, _ANY_LISTENER)

    def _limit(self, user: str | None) -> UserLimit | None:
        """The first that speaks of the user."""
        named = NOBODY if user is None else user
        return next((each for each in self._settings.limit if each.user in (named, EVERYBODY)), None)


_ANY_LISTENER = Listener(url="")
_ANY_USER = UserLimit(user=EVERYBODY)


def _meter(limit: Listener | UserLimit | None) -> Meter | None:
    if limit is None or (limit.messages_per_s == "none" and limit.bytes_per_s == "none"):
        return None
    return Meter(_rate(limit.messages_per_s), _rate(limit.bytes_per_s))


def _rate(rate: float | NoLimit) -> float | None:
    return None if rate == "none" else rate
