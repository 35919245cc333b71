"""What both ends of streams go by: who is where, what must survive, how long they wait, and how much is kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tieline.core.timers import Timers
from tieline.overlay.carrier.durable import Ends, Journal
from tieline.overlay.carrier.incarnations import Incarnations
from tieline.overlay.counts import Counts
from tieline.overlay.membership import Membership

#: Bytes of the longest parcel that is carried: a message of MQTT, and who it is from.
LONGEST: Final = (1 << 28) + (1 << 17)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What may be set for the origin, the destination and the hops between them."""

    #: How long an end acknowledgement may wait for more to acknowledge.
    ack_s: float = 0.02
    #: When a destination asks for a number that is missing, and how often.
    hole_s: float = 0.3
    #: When a destination gives up a number with QoS 0 that is missing: while links come and go, and once none has for
    #: ``calm_s``, since then it is not lost but on a slower way than what came after it.
    skip_s: float = 0.25
    slow_s: float = 2.0
    calm_s: float = 1.0
    #: When an origin sends again what was not settled.
    resend_s: float = 4.0
    #: When messages for which there was no room are offered again.
    room_s: float = 0.05
    #: How often an origin is told that there is still no room; well before it would send again.
    stalled_s: float = 1.0
    #: When a frame that found no way is tried again.
    parked_s: float = 0.25
    #: How long after its origin has sent it a frame without a way is kept: long beyond the time after which the origin
    #: sends it again, so that nothing is kept for ever for a broker that has left.
    kept_s: float = 15.0
    #: Frames without a way that are kept in memory.
    parked: int = 4_096
    #: And their bytes; as many are kept for a link that is down.
    parked_bytes: int = 32 << 20
    #: Parcels that may be owed to one destination in one lane, and bytes in all of them.  From then on nothing more
    #: should be accepted for it; only what was accepted before that is still owed, up to twice as much.
    owed: int = 100_000
    owed_bytes: int = 128 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What the ends of the streams of one broker are given when they are made."""

    broker: int
    #: What the store had of streams when the broker started.
    ends: Ends
    membership: Membership
    incarnations: Incarnations
    timers: Timers
    journal: Journal
    counts: Counts
    limits: Limits


class StreamEnd:
    """The same, as both ends have it at hand for each frame."""

    def __init__(self, around: Surroundings) -> None:
        self._broker = around.broker
        self._membership = around.membership
        self._incarnations = around.incarnations
        self._timers = around.timers
        self._journal = around.journal
        self._counts = around.counts
        self._limits = around.limits
