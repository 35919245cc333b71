"""Failed logins: how many an address, and a user, may have before they are refused unheard.

Theory of operation
-------------------
Each failure adds one to the count of its address and to that of the user it named; counts decay evenly, so that the
allowed number is forgiven in a minute.  Above it, logins are refused without being checked.

Counting by user alone would let anybody lock anybody out.  So an address from which a user has come in lately is only
counted as an address, whatever happens to that user's name elsewhere.

All tables are bounded.  When one is full, the entry that was touched longest ago makes room.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from tieline.conf.schema import NoLimit

#: The time in which the allowed number of failures is forgiven.
PERIOD_S: Final = 60.0
#: Entries of each table.
MOST: Final = 10_000


class Failures:
    """Counts of failed logins."""

    def __init__(self, allowed: int | NoLimit, most: int = MOST) -> None:
        """Lock out after ``allowed`` failures in a period; remember ``most`` addresses and as many users."""
        self._is_off = allowed == "none"
        self._allowed = 0.0 if allowed == "none" else float(allowed)
        self._most = most
        self._addresses: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._users: OrderedDict[str, tuple[float, float]] = OrderedDict()
        #: Addresses from which users have come in, newest last.
        self._trusted: OrderedDict[tuple[str, str], None] = OrderedDict()

    def __len__(self) -> int:
        """How many entries there are, of all kinds."""
        return len(self._addresses) + len(self._users) + len(self._trusted)

    def refusal(self, address: str, user: str, now: float) -> str | None:
        """Why a login is not even checked; None when it is."""
        if self._is_off:
            return None
        if self._count(self._addresses, address, now) >= self._allowed:
            return "too many failed logins from this address"
        if self._count(self._users, user, now) >= self._allowed and (user, address) not in self._trusted:
            return "too many failed logins for this user"
        return None

    def failed(self, address: str, user: str, now: float) -> None:
        """Count a failed login against its address, and against its user unless known to come from there."""
        if self._is_off:
            return
        self._add(self._addresses, address, now)
        if (user, address) not in self._trusted:
            self._add(self._users, user, now)

    def succeeded(self, address: str, user: str) -> None:
        """A login succeeded: the address is known for this user."""
        self._trusted[user, address] = None
        self._trusted.move_to_end((user, address))
        if len(self._trusted) > self._most:
            self._trusted.popitem(last=False)

    def _count(self, table: OrderedDict[str, tuple[float, float]], key: str, now: float) -> float:
        count, then = table.get(key, (0.0, now))
        return max(0.0, count - (now - then) * self._allowed / PERIOD_S)

    def _add(self, table: OrderedDict[str, tuple[float, float]], key: str, now: float) -> None:
        # one that goes on and on is not held against its user for longer than a period
        table[key] = (min(self._count(table, key, now) + 1.0, self._allowed + 1.0), now)
        table.move_to_end(key)
        if len(table) > self._most:
            table.popitem(last=False)


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
