"""Is a subscriber congested?  Waiting time against the delay an unblocked message would have.

``WT / DT > 0.5`` declares congestion for a class (the heat paper); it ends when the ratio has fallen below half of
that.  DT cannot be observed for QoS 0, and on a local network the ratio would always be true, so
``DT = max(1 ms, minimum RTT / 2 + size / delivery rate)``; at most 100 ms, or a reader that has stopped, whose rate is
next to nothing, would never be congested.
"""

from __future__ import annotations

from dataclasses import dataclass

from tieline.sched.levels import LEVELS

#: The paper's threshold, and where congestion ends.
BEGINS = 0.5
ENDS = 0.25
#: Least delay that is taken for real, and greatest.
LEAST_S = 0.001
MOST_S = 0.1


@dataclass(slots=True)
class Path:
    """What is known of the way to a subscriber."""

    #: Smallest round-trip time seen, in seconds; 0 when unknown.
    rtt_s: float = 0.0
    #: Bytes per second that arrive; 0 when unknown.
    rate: float = 0.0

    def delay_s(self, size: int) -> float:
        """DT: how long a message takes that does not wait."""
        travel = self.rtt_s / 2
        if self.rate > 0:
            travel += size / self.rate
        return min(MOST_S, max(LEAST_S, travel))


#: A way of which nothing is known yet.
UNKNOWN = Path()


class Congestion:
    """The state of each class of one subscriber."""

    __slots__ = ("began", "ratio", "states")

    def __init__(self) -> None:
        self.states = [False] * LEVELS
        #: The last WT / DT of each class.
        self.ratio = [0.0] * LEVELS
        #: How often a class became congested.
        self.began = [0] * LEVELS

    def observe(self, level: int, waited_s: float, delay_s: float) -> bool:
        """A message of this class has waited so long; whether the class is congested now."""
        ratio = self.ratio[level] = waited_s / delay_s
        if self.states[level]:
            if ratio < ENDS:
                self.states[level] = False
        elif ratio > BEGINS:
            self.states[level] = True
            self.began[level] += 1
        return self.states[level]

    def calm(self, level: int) -> None:
        """Nothing of this class waits any more; without messages there would be nothing to observe that ends it."""
        self.states[level] = False
        self.ratio[level] = 0.0

    def clear(self) -> None:
        """Nothing waits any more."""
        for level in range(LEVELS):
            self.calm(level)
