"""How fast a client sends, and how long it has to wait when that is too fast.

A bucket of tokens for messages and one for bytes, each refilled at its rate and never holding more than one second's
worth.  What arrived is charged afterwards, a chunk at a time: the bucket goes below zero, and the client is not read
until it is at zero again.  Nothing is dropped, and over any longer time the rate holds; a single chunk may exceed it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tieline.core.connection import CONNECTED, Hold

if TYPE_CHECKING:
    from tieline.core.broker import Broker
    from tieline.core.connection import Connection


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


def pace(broker: Broker, conn: Connection, messages: int, size: int, now: float) -> None:
    """Charge what a connection has sent; one that is too fast is not read for a while."""
    wait_s = max(meter.charge(messages, size, now) for meter in conn.meters)
    if wait_s > 0 and conn.state is CONNECTED and conn.hold is None:
        broker.suspend(conn, Hold.RATE, now)
        broker.timers.at(now + wait_s, lambda due: _release(broker, conn, due))


def _release(broker: Broker, conn: Connection, now: float) -> None:
    """Read it again, unless others of its user have spent what it waited for."""
    if conn.hold is not Hold.RATE:
        return
    wait_s = max((meter.debt_s(now) for meter in conn.meters), default=0.0)
    if wait_s > 0:
        broker.timers.at(now + wait_s, lambda due: _release(broker, conn, due))
    else:
        broker.resume(conn, now)
