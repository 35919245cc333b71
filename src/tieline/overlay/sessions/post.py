"""How errands leave: gathered for each broker during a turn, and owed in the batch with what has caused them."""

from __future__ import annotations

from collections.abc import Callable

from tieline.overlay.frames.frame import ASSURED_LANES
from tieline.overlay.node import Node
from tieline.overlay.sessions.errands import Errand, put_errand


class Post:
    """Errands to other brokers, and where the streams between us stand."""

    def __init__(self, node: Node, flush: Callable[[float], None], clock_s: float) -> None:
        self.node = node
        #: Has everything numbered that was gathered for other brokers.
        self._flush = flush
        #: What to add to the broker's time to get seconds since 1970.
        self._clock_s = clock_s
        self._outbox: dict[int, list[bytes]] = {}
        self.now = 0.0

    @property
    def now_ms(self) -> int:
        """Milliseconds since 1970, as far as the clock here is right."""
        return int((self._clock_s + self.now) * 1000)

    def name(self, broker: int) -> str:
        """The name of a broker that is known."""
        return self.node.directory.names[broker]

    def number(self, name: str) -> int:
        """Our number for a broker; 0 if it is not known."""
        return self.node.directory.find(name) or 0

    @property
    def others(self) -> list[int]:
        """All brokers that are known but this one."""
        return [number for number in self.node.directory.names if number != self.node.broker]

    @property
    def origins(self) -> list[int]:
        """Of those, all from which something may still come: not those that are gone for good."""
        interests, reachable = self.node.interests, self.reachable
        return [number for number in self.others if number in reachable or not interests.is_written_off(number)]

    @property
    def gone(self) -> list[int]:
        """The others, from which nothing comes any more."""
        origins = set(self.origins)
        return [number for number in self.others if number not in origins]

    def tell(self, broker: int, errand: Errand, message: bytes = b"") -> None:
        """Have an errand carried to a broker; it leaves with the commit of this turn."""
        self._outbox.setdefault(broker, []).append(put_errand(errand, message))

    def flush(self, now: float) -> None:
        """A turn is over, or sealed: what was gathered is owed."""
        if self._outbox:
            outbox, self._outbox = self._outbox, {}
            for broker, parcels in outbox.items():
                self.node.carrier.sender.tell(tuple(parcels), broker, now)

    def lanes_to(self, broker: int) -> dict[int, int]:
        """By lane, the last number of the streams of messages to a broker, with everything that was accepted so far."""
        self._flush(self.now)
        sender = self.node.carrier.sender
        return {lane: last for lane in ASSURED_LANES if (last := sender.last(broker, lane)) > 0}

    def position(self, origin: int, lane: int) -> int:
        """How far a stream to us has come."""
        return self.node.carrier.taker.position(origin, lane)

    @property
    def reachable(self) -> frozenset[int]:
        """The brokers to which a way leads."""
        return self.node.membership.reachable
