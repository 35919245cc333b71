"""Every number that shapes what a sensor network does, with its unit and where it comes from.

The covering paper's table of parameters is missing from its text.  Two numbers were once chosen so that curves had the
shape that the paper describes: the airtime of a frame and the power of an idle node.  They are called fitted, and
agreement that hangs on them is no evidence.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import Any, Literal, NamedTuple  # Any: the default of a field of any type

#: The paper says so; our own choice, often a number from the literature; or chosen so that the paper's curves come out.
Origin = Literal["paper", "ours", "fitted"]


class Statement(NamedTuple):
    """A parameter as it is written into every result."""

    name: str
    value: float
    unit: str
    origin: Origin
    note: str


def _number(default: float, unit: str, origin: Origin, note: str) -> Any:
    return field(default=default, metadata={"unit": unit, "origin": origin, "note": note})


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """One setting of a network and its load; the defaults were fixed before protocols were compared."""

    nodes: int = _number(200, "", "paper", "sensors, at random in a disc")
    radius_m: float = _number(200.0, "m", "paper", "of the disc")
    clusters: int = _number(20, "", "ours", "by k-means on positions; communities of CETP are the same")
    battery_j: float = _number(2.0, "J", "ours", "of each sensor; lifetimes are measured with 0.5 J")
    idle_mw: float = _number(0.5, "mW", "fitted", "an idle sensor: a CC2420 that listens 0.8 % of the time")
    electronics_nj: float = _number(50.0, "nJ/bit", "ours", "first-order radio model, sending and receiving")
    amplifier_pj: float = _number(10.0, "pJ/bit/m²", "ours", "first-order radio model, up to the crossover distance")
    multipath_pj: float = _number(0.0013, "pJ/bit/m⁴", "ours", "first-order radio model, beyond the crossover distance")
    matching_nj: float = _number(5.0, "nJ/bit", "ours", "a broker that matches an event")
    data_bits: int = _number(1024, "bit", "ours", "an event")
    control_bits: int = _number(256, "bit", "ours", "a subscription, an advertisement, an answer")
    frame_ms: float = _number(8.0, "ms", "fitted", "airtime of a data frame with its turn; a control frame: a quarter")
    range_m: float = _number(60.0, "m", "ours", "reach of a sensor at its ordinary power")
    interference_m: float = _number(120.0, "m", "ours", "senders closer than this take turns; twice the hop if boosted")
    loss: float = _number(0.05, "", "ours", "share of frames that are lost on each hop")
    retries: int = _number(3, "", "ours", "repetitions of a frame to one receiver")
    queue: int = _number(30, "frames", "ours", "of each node")
    expiry_s: float = _number(60.0, "s", "ours", "frames that are older are dropped")
    reroute_s: float = _number(10.0, "s", "ours", "fewest hops among the living, ties drawn again; for all protocols")
    election_s: float = _number(20.0, "s", "ours", "period in which heads are elected and digests sent")
    hand_over_ms: float = _number(
        40.0, "ms", "ours", "between frames of a burst: tables that are handed over, lists that are said again"
    )
    sinks: int = _number(10, "", "ours", "mobile subscribers on mains power")
    slowest_mps: float = _number(0.5, "m/s", "ours", "random waypoint")
    fastest_mps: float = _number(2.0, "m/s", "ours", "random waypoint")
    subscriptions: int = _number(10, "", "ours", "of each sink: a topic and a box")
    topics: int = _number(10, "", "ours", "")
    attributes: int = _number(2, "", "ours", "of an event: the dimensions of a box")
    narrowest: float = _number(0.1, "", "ours", "box, as a share of an attribute's domain")
    widest: float = _number(
        0.7, "", "ours", "box; between the two one or two sinks want an event, and some boxes cover"
    )
    change_s: float = _number(50.0, "s", "ours", "after which a sink puts another subscription in the place of one")
    events_per_100s: float = _number(800.0, "", "paper", "the paper's axis; that it means 100 s is ours")
    witnesses: int = _number(1, "", "ours", "neighbouring sensors that report the same happening")
    sensing_m: float = _number(math.inf, "m", "ours", "radius in which a topic can be sensed; infinite: everywhere")
    settle_s: float = _number(30.0, "s", "ours", "before the first event")
    duration_s: float = _number(100.0, "s", "ours", "in which events happen, unless until the network has died")
    drain_s: float = _number(20.0, "s", "ours", "after the last event")

    @property
    def slots_per_s(self) -> float:
        return 4000.0 / self.frame_ms

    def slots(self, seconds: float) -> int:
        """A time as a whole number of slots."""
        return round(seconds * self.slots_per_s)

    @property
    def crossover_m(self) -> float:
        """From which distance on multipath costs more than free space."""
        return math.sqrt(self.amplifier_pj / self.multipath_pj)


def stated(parameters: Parameters) -> Iterator[Statement]:
    """All parameters with their values, as a result has to name them."""
    for one in fields(parameters):
        about = one.metadata
        yield Statement(one.name, getattr(parameters, one.name), about["unit"], about["origin"], about["note"])


#: The paper's density and load per sensor on as many sensors as one likes.
def scaled(parameters: Parameters, nodes: int) -> Parameters:
    """A larger network of the same density, with clusters of the same size."""
    from dataclasses import replace

    factor = nodes / parameters.nodes
    return replace(
        parameters,
        nodes=nodes,
        radius_m=parameters.radius_m * math.sqrt(factor),
        clusters=max(1, round(parameters.clusters * factor)),
    )
