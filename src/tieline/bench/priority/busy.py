"""Busy broker: fifty publishers at full speed, and an urgent message that must not wait for them.

The flood and the probe are processes of their own, so that neither waits for the other.  The kernel stamps the arrival
of every urgent message, so a probe that is scheduled late does not count against the broker.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from tieline.bench.load.generator import Generator
from tieline.bench.load.job import Metrics
from tieline.bench.peers.instance import Instance
from tieline.bench.priority.flood import Flood
from tieline.bench.priority.peers import Elsewhere, Ranked
from tieline.bench.priority.probe import Probe

PUBLISHERS = 50
PER_SECOND = 200.0
_LEAD_S = 0.7


def measure(peer_name: str, *, seconds: float) -> Metrics:
    """One broker under one flood."""
    peer: Ranked | Elsewhere = Ranked() if peer_name == "tieline" else Elsewhere()
    instance = Instance(peer, None)
    try:
        at = instance.start()
        probe = Probe(per_second=PER_SECOND, seconds=seconds, delay_s=_LEAD_S)
        flood = Flood(publishers=PUBLISHERS, seconds=_LEAD_S + seconds + 0.5)
        with Generator() as flooding, Generator() as probing, ThreadPoolExecutor(1) as threads:
            flooded = threads.submit(flooding.run, flood, at)
            found = probing.run(probe, at)
            found |= flooded.result()
        if isinstance(peer, Ranked):
            found["longest_turn_ms"] = float(peer.top()["longest_turn_ms"])
        return found
    finally:
        instance.stop()
