"""An urgent publisher and its subscriber beside a busy broker: a message every few milliseconds, each timed."""

from __future__ import annotations

import time
from dataclasses import dataclass

from tieline.bench.load.endpoint import Endpoint
from tieline.bench.load.job import Metrics
from tieline.bench.priority.nodes import Reader, Writer, hang_up, open_node, subscribe
from tieline.bench.priority.packets import Arrival, overhead, publish
from tieline.bench.priority.stage import Stage, clock
from tieline.bench.priority.tally import Tally

_TOPIC = "probe/urgent"
_BYTES = 150
_URGENT = {"priority": "3"}
_DRAIN_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """So many urgent messages a second on a connection of their own, of level 3."""

    per_second: float
    seconds: float
    #: The flood comes first.
    delay_s: float

    @property
    def patience_s(self) -> float:
        """Waiting, sending, draining."""
        return 20.0 + self.delay_s + 2 * self.seconds

    def run(self, at: Endpoint) -> Metrics:
        """Time from send to receive; a message that does not arrive counts as the length of the run."""
        tally = Tally()

        def received(arrival: Arrival, when_ns: int) -> None:
            number, _ = arrival.mark
            tally.arrival(number, when_ns)

        time.sleep(self.delay_s)
        with Stage() as stage:
            receiver = open_node(at.host, at.port, "probe-to", _URGENT)
            sender = open_node(at.host, at.port, "probe-from", _URGENT)
            try:
                subscribe(receiver, [_TOPIC])
                Reader(receiver, stage, received)
                writer = Writer(sender, stage)
                end = clock() + self.seconds

                def send(now: float) -> float | None:
                    writer.write(publish(_TOPIC, tally.payload(_BYTES - overhead(_TOPIC))))
                    return now + 1 / self.per_second if now < end else None

                stage.at(0.0, send)
                stage.run(end)
                stage.run(end + _DRAIN_S, lambda: not tally.lost)
            finally:
                hang_up([receiver, sender])
        return {
            "urgent_p50_ms": tally.quantile_s(0.5, self.seconds) * 1e3,
            "urgent_p99_ms": tally.quantile_s(0.99, self.seconds) * 1e3,
            "urgent_max_ms": max(tally.waits_s(self.seconds)) * 1e3,
            "urgent_sent": len(tally.sent),
            "urgent_lost": tally.lost,
        }
