"""What is kept in memory because of clients: bytes by kind, and by whom they are caused.

Theory of operation
-------------------
Every byte that a client can make the broker keep is counted when it is kept and when it is let go, by the room that
keeps it, under a :class:`Kind` and for an :class:`Owner`: a user, all clients without a user, all who have not said yet
who they are, or the broker itself.  Sizes are what things take in this process, about; a test compares them with what
the process really grows by.

What waits in queues changes with every message, and is counted twice, neither time per owner and message.  All queues
together are exact (:class:`tieline.sched.queue.Pool`).  Of its owner a queue *borrows*, in pieces, once it holds more
than a client that keeps up would (:class:`tieline.sched.queue.Lender`).

Whoever is about to keep something for a client asks :meth:`Owner.refusal` first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import Final

from tieline.core.allowance import NO_BOUNDS, Allowances, Bounds
from tieline.sched.queue import Pool
from tieline.wire.packets import Will

#: What a session takes by itself, and a connection with its socket, about.
SESSION_BYTES: Final = 3_200
CONNECTION_BYTES: Final = 5_600
#: A remembered right or alias, beside the topic.
TOPIC_BYTES: Final = 100
#: A will, and one user property of it, beside their text.
WILL_BYTES: Final = 800
PROPERTY_BYTES: Final = 200
#: What all connections together remember of what they may publish to; when it is more, a connection begins anew.
MOST_RIGHTS: Final = 67_108_864


class Kind(StrEnum):
    """The kinds of things that clients make the broker keep, as they are counted and shown."""

    QUEUED = "queued"  # messages that wait or are in flight
    OWED = "owed"  # messages that other brokers have not committed
    LINKS = (
        "links"  # what waits for links to other brokers, is under way on them, or has come too early; what they want
    )
    RETAINED = "retained"  # retained messages, and the tree in which they are found
    WILLS = "wills"  # of clients that are connected, and of those whose delay has not passed
    SESSIONS = "sessions"  # sessions themselves, and their packet ids
    SUBSCRIPTIONS = "subscriptions"  # filters, and conditions ready to be asked
    CONNECTIONS = "connections"  # connections themselves, and their topic aliases
    UNPARSED = "unparsed"  # beginnings of packets and frames, and what waits for its turn to be parsed
    UNSENT = "unsent"  # encoded, and not taken by the network
    RIGHTS = "rights"  # what connections are known to be allowed
    ROUTES = "routes"  # which topics go to whom, and what was last sent of them; forgotten when there is no room


class Owner:
    """Somebody on whose account things are kept."""

    __slots__ = (
        "_all",
        "borrowed",
        "bounds",
        "bytes",
        "kept",
        "name",
        "retained",
        "sessions",
        "spilled",
        "user",
        "weight",
    )

    def __init__(self, name: str, bounds: Bounds, all_: Holdings, user: str | None = None) -> None:
        #: As refusals call it.
        self.name = name
        self.bounds = bounds
        self.user = user
        self._all = all_
        #: Bytes by kind, without what waits in queues, and their sum.
        self.kept: dict[Kind, int] = {}
        self.bytes = 0
        #: What its queues have borrowed.
        self.borrowed = 0
        self.sessions = 0
        #: Of its subscriptions, as limits count them.
        self.weight = 0
        #: Retained messages.
        self.retained = 0
        #: Bytes that wait in the store alone, for all its sessions.
        self.spilled = 0

    def __repr__(self) -> str:
        return f"<Owner {self.name}: {self.used} bytes>"

    @property
    def used(self) -> int:
        """Bytes kept for it, with what its queues have borrowed."""
        return self.bytes + self.borrowed

    @property
    def is_idle(self) -> bool:
        """Whether nothing is kept for it."""
        return not (self.bytes or self.borrowed or self.sessions or self.retained or self.spilled)

    def take(self, kind: Kind, size: int) -> None:
        """Count what is kept from now on."""
        kept, total = self.kept, self._all.kept
        kept[kind] = kept.get(kind, 0) + size
        total[kind] += size
        self.bytes += size
        self._all.bytes += size

    def give(self, kind: Kind, size: int) -> None:
        """Count what is no longer kept."""
        self.take(kind, -size)

    def refusal(self, size: int) -> str | None:
        """Why so much more is not kept for it; None if it is."""
        if self.used + size > self.bounds.bytes:
            return f"what is kept for {self.name} may take {self.bounds.bytes} bytes"
        return self._all.refusal(size)

    # -- as the lender of queues

    def lend(self, size: int) -> bool:
        """Let a queue grow by so much; False if there is no room for that."""
        if self.refusal(size) is not None:
            return False
        self.borrowed += size
        return True

    def has_room(self, size: int) -> bool:
        """Whether a queue could borrow so much."""
        return self.refusal(size) is None

    def owe(self, size: int) -> None:
        """A queue has grown by so much, which it may; or has shrunk, if it is negative."""
        self.borrowed += size


class Holdings:
    """Everything that is kept."""

    __slots__ = ("_allowances", "_owners", "broker", "bytes", "kept", "most", "pool", "remembered", "strangers")

    def __init__(self, allowances: Allowances, pool: Pool) -> None:
        self._allowances = allowances
        #: What waits in all queues.
        self.pool = pool
        self._owners: dict[str | None, Owner] = {}
        #: Bytes by kind, without what waits in queues and what is remembered of routes; and their sum.
        self.kept: dict[Kind, int] = dict.fromkeys(Kind, 0)
        self.bytes = 0
        #: What routes and references take; whoever remembers them has a bound of its own for it.
        self.remembered: Callable[[], int] = int
        self.most = allowances.memory_bytes
        #: Whoever has not said who it is, all together; and the broker itself.
        self.strangers = Owner("those who have not said who they are", allowances.stranger_bounds(), self)
        self.broker = Owner("the broker", NO_BOUNDS, self)

    def renew(self) -> None:
        """Other limits hold from now on; what is kept stays."""
        self.most = self._allowances.memory_bytes
        self.strangers.bounds = self._allowances.stranger_bounds()
        for user, owner in self._owners.items():
            owner.bounds = self._allowances.bounds(user)

    def owner(self, user: str | None) -> Owner:
        """The account of a user, or of all clients without one."""
        found = self._owners.get(user)
        if found is None:
            name = "clients without a user" if user is None else f"user {user}"
            found = self._owners[user] = Owner(name, self._allowances.bounds(user), self, user)
        return found

    def forget_idle(self, user: str | None) -> None:
        """A client has gone, or a session has ended: its user need not be known any more if nothing is kept for it."""
        found = self._owners.get(user)
        if found is not None and found.is_idle:
            del self._owners[user]

    def owners(self) -> Iterator[tuple[str | None, Owner]]:
        """Everybody for whom something is kept, by user."""
        return iter(self._owners.items())

    @property
    def total(self) -> int:
        """All bytes of all kinds."""
        return self.bytes + self.pool.bytes + self.remembered()

    def refusal(self, size: int) -> str | None:
        """Why the broker keeps no more; None if it does."""
        if self.bytes + self.pool.bytes + size > self.most:
            return f"what is kept for all clients may take {self.most} bytes"
        return None

    def by_kind(self) -> dict[Kind, int]:
        """Bytes of every kind, as they are now."""
        return self.kept | {Kind.QUEUED: self.pool.bytes, Kind.ROUTES: self.remembered()}


def session_bytes(client_id: str) -> int:
    """What a session takes by itself."""
    return SESSION_BYTES + 2 * len(client_id)


def will_bytes(will: Will) -> int:
    """What a will takes while it may still be published."""
    properties = will.properties
    size = WILL_BYTES + 2 * len(will.topic) + len(will.payload)
    size += len(properties.get("correlation_data", b"")) + 2 * len(properties.get("response_topic", ""))
    size += 2 * len(properties.get("content_type", ""))
    return size + sum(
        PROPERTY_BYTES + 2 * (len(name) + len(value)) for name, value in properties.get("user_property", ())
    )
