"""What a link goes by: how long things may take, how much may wait, and who decides when it is too much."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any  # Any: a policy orders whatever waits

from tieline.core.account import Drop
from tieline.overlay.frames.frame import LARGEST, Data
from tieline.overlay.frames.segments import SEGMENT
from tieline.sched.feedback import Feedback
from tieline.sched.policy import Policy

#: Called with messages that a link does not carry, and why.
Dropped = Callable[[Data, Drop, float], None]


def never() -> bool:
    """Memory is never short."""
    return False


def unheard(item: Data, why: Drop, now: float) -> None:
    """Nobody wants to know of what is dropped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long things may take on a link, how much of them may be there, and who decides when it is too much."""

    #: Silence of ours after which a ping is sent.
    ping_s: float = 1.0
    #: Silence of the peer after which it may not be there any more; it is then replaced by who has its name.
    suspect_s: float = 2.5
    #: Silence of the peer after which the connection is given up.
    down_s: float = 4.0
    #: The same of ping and of silence that ends it, where a round trip has taken less than this: on a LAN.
    near_round_trip_s: float = 0.0
    near_ping_s: float = 0.4
    near_down_s: float = 1.3
    #: How long a hop acknowledgement may wait for more to acknowledge.
    ack_s: float = 0.02
    #: Bytes received after which it waits no longer.
    ack_bytes: int = 16_384
    #: Bytes of messages with QoS 0 that may wait for the link, and of notices.
    queue_bytes: int = 1 << 20
    #: Bytes of assured messages of each level that may wait for it; where it carries less in a second, that much.
    credit_bytes: int = 1 << 20
    #: But no less than this.
    least_bytes: int = 16_384
    #: Who goes first, and who has to go, when more waits than goes at once; and who is told of what is dropped.
    make_policy: Callable[[], Policy[Any]] = Feedback
    dropped: Dropped = unheard
    #: Whether all that the broker keeps is too much: then no link keeps more than the least.
    is_short: Callable[[], bool] = never
    #: Bytes of a piece of what is longer than there is room for on the link.
    segment: int = SEGMENT
    #: Bytes of the longest frame that is taken in pieces.
    longest: int = LARGEST
    #: Bytes that may be on their way without an acknowledgement.
    custody_bytes: int = 1 << 18
    #: Frames about links and interests that may wait for a peer that does not read.
    controls: int = 10_000
