"""A broker in virtual time: what :mod:`tieline.net.loop` does with sockets and a clock, done with links and a number.

The core does not notice the difference.  A turn takes no time, so what bounds the work between two looks at urgent
connections (:mod:`tieline.net.urgent`) has nothing to bound here; everything that decides what is written when, to
whom and in which order is the same.
"""

from __future__ import annotations

from tieline.core.broker import Broker
from tieline.core.client import Connection
from tieline.core.timers import Timer
from tieline.sim.clock import Clock
from tieline.sim.endpoint import Endpoint, pair
from tieline.sim.link import IDEAL, Split, Way
from tieline.sim.port import Port

#: Bytes read in one turn before what they caused is written.
FLUSH_AFTER = 65_536


class VirtualBroker:
    """Drives one broker, one turn at a time.

    The broker is the caller's own, with its settings, its store and its access; it begins at ``clock.now``.  Whoever
    calls one of its doors from outside (``committed``, ``decided``, ``stop``) calls :meth:`poke` afterwards.
    """

    def __init__(self, clock: Clock, broker: Broker) -> None:
        self.clock = clock
        self.broker = broker
        self._ports: set[Port] = set()
        #: Ports that can be read or written, in the order in which that was found.
        self._ready: dict[Port, None] = {}
        #: A turn comes at this moment.
        self._is_woken = False
        #: When the broker has something to do without anybody being ready.
        self._alarm: Timer | None = None
        self.is_alive = True
        self._arm()

    # -- connections

    def dial(
        self, there: Way = IDEAL, back: Way = IDEAL, *, split: Split | None = None, listener: str = ""
    ) -> Endpoint:
        """Somebody connects, over a way there and a way back; their end of it."""
        theirs, ours = pair(self.clock, there, back, split=split)
        self.accept(ours, listener=listener)
        return theirs

    def accept(self, end: Endpoint, *, listener: str = "", peer: str = "", node_level: int | None = None) -> Connection:
        """Serve the client at the other end; its level is that of its listener."""
        peer = peer or f"virtual:{self.broker.account.connections}"
        conn = self.broker.open(self.clock.now, listener=listener, peer=peer, node_level=node_level)
        port = Port(self, end, conn)
        conn.link = port
        self._ports.add(port)
        end.watch(lambda: self.note(port))
        self._arm()
        return conn

    def kill(self) -> None:
        """End the process of the broker as a crash would: its connections break, and nothing is done any more."""
        self.is_alive = False
        self.clock.cancel(self._alarm)
        self._ready.clear()
        for port in sorted(self._ports, key=lambda port: port.conn.serial):
            port.kill()
        self._ports.clear()

    def forget(self, port: Port) -> None:
        """A port is closed."""
        self._ports.discard(port)
        self._ready.pop(port, None)

    # -- turns

    def note(self, port: Port) -> None:
        """A port may be ready: there is a turn at this moment, after everything else that arrives at it."""
        if self.is_alive and (port.is_ready or port.unsent):
            self._ready[port] = None
            if not self._is_woken:
                self._is_woken = True
                self.clock.after(0.0, self._turn)

    def poke(self) -> None:
        """Something outside a turn has changed the broker."""
        if self.is_alive:
            self._catch_up(self.clock.now)

    def _turn(self, now: float) -> None:
        self._is_woken = False
        if not self.is_alive:
            return
        ready, self._ready = list(self._ready), {}
        broker, account = self.broker, self.broker.account
        is_alone = len(ready) == 1
        if broker.serves_by_level and not is_alone:
            ready.sort(key=_node_order)
        flush_at = account.bytes_in + FLUSH_AFTER
        for port in ready:
            port.handle(now, is_alone)
            if port.is_ready:
                # there is more to read, and the others come first
                self.note(port)
            if account.bytes_in > flush_at:
                self._flush(now)
                flush_at = account.bytes_in + FLUSH_AFTER
        self._flush(now)
        self._arm()

    def _catch_up(self, now: float) -> None:
        """Do what is due, and write what something outside a turn has caused."""
        self.broker.tick(now)
        self._flush(now)
        self._arm()

    def _flush(self, now: float) -> None:
        """Write to every changed connection, once, and hand over to the store what has changed."""
        broker = self.broker
        dirty = broker.take_dirty()
        if len(dirty) > 1 and broker.serves_by_level:
            dirty.sort(key=lambda conn: (-conn.level, conn.serial))
        for conn in dirty:
            conn.is_dirty = False
            if isinstance(conn.link, Port):
                conn.link.flush(now)
        broker.seal()

    def _arm(self) -> None:
        """Come back when something is due."""
        due = self.clock.now if self.broker.dirty else self.broker.timer()
        if due is None:
            return
        when = max(due, self.clock.now)
        alarm = self._alarm
        if alarm is None or alarm.action is None or alarm.when != when:
            self.clock.cancel(alarm)
            self._alarm = self.clock.at(when, self._catch_up)


def _node_order(port: Port) -> tuple[int, int]:
    """Higher nodes first, equal ones in the order in which they connected."""
    return (-port.conn.level, port.conn.serial)
