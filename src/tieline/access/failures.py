"""Failed logins: how many an address, and a user, may have before they are refused unheard.

Theory of operation
-------------------
Each failure adds one to the count of its address and to that of the user it named; counts decay evenly, so that the
allowed number is forgiven in a minute.  Above it, logins are refused without being checked.

Counting by user alone would let anybody lock anybody out, and so would counting by address alone, where many stand
behind one.  So a user who has come in from an address lately has a count of its own there: neither what happens to that
name elsewhere nor what strangers do at the same address keeps the user out.

All tables are bounded.  When one is full, the entry that was touched longest ago makes room.  A name may be 64 KiB
long: of a long one no more than a digest is kept.
"""

from __future__ import annotations

from collections import OrderedDict
from hashlib import sha256
from math import ceil
from typing import Final, TypeVar

from tieline.conf.quantities import NoLimit

#: The time in which the allowed number of failures is forgiven.
PERIOD_S: Final = 60.0
#: Whoever waits exactly as long as it takes would be a moment too early.
_A_MOMENT_S: Final = 0.1
#: Entries of each table.
MOST: Final = 10_000
#: Characters of a name above which its digest stands for it.
LONG: Final = 64

K = TypeVar("K")


class Failures:
    """Counts of failed logins."""

    def __init__(self, allowed: int | NoLimit, most: int = MOST) -> None:
        """Lock out after ``allowed`` failures in a period; remember ``most`` addresses and as many users."""
        self._is_off = allowed == "none"
        self._allowed = 0.0 if allowed == "none" else float(allowed)
        self._most = most
        self._addresses: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._users: OrderedDict[str, tuple[float, float]] = OrderedDict()
        #: Users and the addresses from which they have come in, newest last; with what failed there in their name.
        self._trusted: OrderedDict[tuple[str, str], tuple[float, float]] = OrderedDict()

    def __len__(self) -> int:
        """How many entries there are, of all kinds."""
        return len(self._addresses) + len(self._users) + len(self._trusted)

    def refusal(self, address: str, user: str, now: float) -> str | None:
        """Why a login is not even checked; None when it is."""
        if self._is_off:
            return None
        user = _short(user)
        if (user, address) in self._trusted:
            is_too_often = self._count(self._trusted, (user, address), now) >= self._allowed
            return "too many failed logins for this user from this address" if is_too_often else None
        if self._count(self._addresses, address, now) >= self._allowed:
            return "too many failed logins from this address"
        if self._count(self._users, user, now) >= self._allowed:
            return "too many failed logins for this user"
        return None

    def patience(self, address: str, user: str, now: float) -> tuple[int | None, float]:
        """How many logins of a user from there may still fail, None for any number; if none, the seconds to wait."""
        if self._is_off:
            return None, 0.0
        user = _short(user)
        if (user, address) in self._trusted:
            count = self._count(self._trusted, (user, address), now)
        else:
            count = max(self._count(self._addresses, address, now), self._count(self._users, user, now))
        if count < self._allowed:
            return ceil(self._allowed - count), 0.0
        return 0, (count - self._allowed) * PERIOD_S / self._allowed + _A_MOMENT_S

    def failed(self, address: str, user: str, now: float) -> None:
        """Count a failed login against its address, and against its user unless known to come from there."""
        if self._is_off:
            return
        user = _short(user)
        self._add(self._addresses, address, now)
        if (user, address) in self._trusted:
            self._trusted[user, address] = self._one_more(self._trusted, (user, address), now)
        else:
            self._add(self._users, user, now)

    def succeeded(self, address: str, user: str) -> None:
        """A login succeeded: the address is known for this user."""
        user = _short(user)
        # what has failed stays counted: whoever guesses must not gain by every login of the user
        self._trusted[user, address] = self._trusted.get((user, address), (0.0, 0.0))
        self._trusted.move_to_end((user, address))
        if len(self._trusted) > self._most:
            self._trusted.popitem(last=False)

    def _count(self, table: OrderedDict[K, tuple[float, float]], key: K, now: float) -> float:
        count, then = table.get(key, (0.0, now))
        return max(0.0, count - (now - then) * self._allowed / PERIOD_S)

    def _add(self, table: OrderedDict[str, tuple[float, float]], key: str, now: float) -> None:
        table[key] = self._one_more(table, key, now)
        table.move_to_end(key)
        if len(table) > self._most:
            table.popitem(last=False)

    def _one_more(self, table: OrderedDict[K, tuple[float, float]], key: K, now: float) -> tuple[float, float]:
        # one that goes on and on is not held against its user for longer than a period
        return min(self._count(table, key, now) + 1.0, self._allowed + 1.0), now


def _short(user: str) -> str:
    """What a table knows a user by."""
    return user if len(user) <= LONG else sha256(user.encode("utf-8", "surrogatepass")).hexdigest()


def address_of(peer: str) -> str:
    """The peer without its port, which changes with every connection; of IPv6, the network that one host has."""
    host = peer.rpartition(":")[0]
    if host.startswith("[") and not host.startswith("[::ffff:"):
        return ":".join(_expanded(host[1:-1])[:4])
    return host


def _expanded(host: str) -> list[str]:
    """The eight groups of an IPv6 address."""
    head, gap, tail = host.partition("%")[0].partition("::")
    first = head.split(":") if head else []
    last = tail.split(":") if tail else []
    return [*first, *(["0"] * (8 - len(first) - len(last)) if gap else []), *last]
