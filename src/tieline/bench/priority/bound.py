"""How long an urgent message may take over a link, by the promise: nothing here is measured but the round trip.

An urgent message waits for one largest lower-class packet that may have begun, one floor quantum (one packet of a lower
class that is owed its share), and the bytes the kernel already holds, which the broker bounds.  All of that leaves at
the rate of the link; then the message itself does, and travels.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

#: What every segment adds on the link: Ethernet 14, IPv4 20, TCP with timestamps 32.
SEGMENT_BYTES = 66
#: What TLS 1.3 adds to every record.
RECORD_BYTES = 22
#: Least bound on what the kernel holds of a slow receiver's bytes, unsent and in flight.
KERNEL_BYTES = 4_096
#: The bound is larger where the link itself holds more: delivery rate times round trip, with room for variation.
KERNEL_ROOM = 1.25


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """The parts of the promise for one link; sizes are MQTT packets."""

    bytes_per_s: float
    rtt_s: float
    urgent: int
    #: Largest and smallest packet of the lower classes; the smallest decides how many segments the kernel's bytes take.
    largest: int
    smallest: int
    #: One packet of a class that is owed its floor.
    quantum: int
    is_tls: bool = False

    @property
    def kernel(self) -> int:
        """Bytes the kernel may hold."""
        return max(KERNEL_BYTES, math.ceil(KERNEL_ROOM * self.bytes_per_s * self.rtt_s))

    @property
    def seconds(self) -> float:
        """The longest that an urgent message may take."""
        segments = 3 + math.ceil(self.kernel / self.smallest)
        each = SEGMENT_BYTES + (RECORD_BYTES if self.is_tls else 0)
        ahead = self.largest + self.quantum + self.kernel + self.urgent + segments * each
        return ahead / self.bytes_per_s + self.rtt_s
