"""Three thin hops, the middle one cut one way and then the other: what is assured comes once and in order.

Theory of operation
-------------------
The line is that of :mod:`tieline.bench.overlay.thin`, with a delay on every link.  Everything has QoS 1: urgent
messages twice a second from the far end, and bulk from each broker on the way at an eighth of what a link carries, so
that what has waited finds room again.  For some seconds a route that leads nowhere swallows what one end of the middle
link sends, and nobody is told: first the messages, then what acknowledges them.  That is longer than brokers wait for a
sign of life, so the link is given up and made anew.  In the end it is waited until everything has come, or nothing can
be expected any more.
"""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import Final

from tieline.bench.load import packets
from tieline.bench.load.job import Metrics
from tieline.bench.overlay.thin import BULK, PROBE, URGENT, URGENT_BYTES, ThinLine, running
from tieline.bench.timed.nodes import Timetable, clock

#: The ends of the middle link: messages go from the second to the first.
_TO, _FROM = 1, 2
_HOPS: Final = 3
CUT_S: Final = 6.0
#: Before a cut, and after it.
_CALM_S: Final = 8.0
_DRAIN_S: Final = 60.0
_URGENT_EVERY_S: Final = 0.5
_BULK_BYTES: Final = 750
#: Of what a link carries, what each broker's bulk takes.
_SHARE: Final = 1 / 8
#: What a PUBLISH with QoS 1 has beside its topic and its payload.
_HEAD: Final = 8
_IDS: Final = 65_535


def run(*, delay_s: float) -> Metrics:
    """The middle link is cut twice; what came of everything that was published meanwhile."""
    with Timetable() as timetable, running(_HOPS, timetable, delay_s=delay_s, qos=1) as line:
        ends = clock() + 2 * (_CALM_S + CUT_S) + _CALM_S
        _begin(line, timetable, ends)
        for sender, receiver in ((_FROM, _TO), (_TO, _FROM)):
            timetable.run(clock() + _CALM_S)
            with line.network.one_way(sender, receiver):
                timetable.run(clock() + CUT_S)
        timetable.run(ends)
        tallies = [flow for topic, flow in line.flows.items() if topic != PROBE]
        timetable.run(clock() + _DRAIN_S, lambda: not any(flow.lost for flow in tallies))
        # what comes twice comes later
        timetable.run(clock() + _CALM_S)
        urgent = line.flows[URGENT]
        came = sorted(urgent.arrived.values())
        return {
            "published": float(sum(len(flow.sent) for flow in tallies)),
            "lost": float(sum(flow.lost for flow in tallies)),
            "doubled": float(sum(flow.duplicates for flow in tallies)),
            "disordered": float(sum(flow.disordered for flow in tallies)),
            "urgent_p50_ms": urgent.quantile_s(0.5) * 1e3,
            "gap_s": max((later - earlier for earlier, later in pairwise(came)), default=0) / 1e9,
        }


def _begin(line: ThinLine, timetable: Timetable, end: float) -> None:
    period = _BULK_BYTES / (_SHARE * line.shape.bytes_per_s)
    for number in range(1, line.hops + 1):
        timetable.every(period, clock(), end, partial(_send, line, f"{BULK}/{number}", _BULK_BYTES))
    timetable.every(_URGENT_EVERY_S, clock(), end, partial(_send, line, URGENT, URGENT_BYTES))


def _send(line: ThinLine, topic: str, size: int) -> None:
    tally = line.flows[topic]
    packet_id = len(tally.sent) % _IDS + 1
    payload = tally.payload(size - len(topic) - _HEAD)
    line.writers[topic].write(packets.publish(topic, payload, qos=1, packet_id=packet_id, version=5))
