"""The network of brokers in Prometheus' words: the numbers of ``$SYS/broker/tieline/net/…`` under the same names.

Labels are the names of this broker's own peers, at most so many as :mod:`tieline.overlay.figures` tells apart, of
classes, and of reasons that the program itself has given.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

if TYPE_CHECKING:
    from tieline.web.figures import Net

_GAUGES: Final = {
    "brokers/known": "Brokers that are known, this one included.",
    "brokers/reachable": "Brokers to which a way leads, this one included.",
    "links/up": "Links of this broker that are up.",
    "links/down": "Links of this broker that were up since it began, and are down.",
    "waiting/frames": "Frames that wait for this broker's links.",
    "waiting/bytes": "Bytes of frames that wait for this broker's links.",
    "unacknowledged/frames": "Frames that the next broker has not acknowledged.",
    "parked/frames": "Frames for which no way was found, and which are tried again.",
    "held/parcels": "Parcels that wait for an earlier one of their stream.",
    "owed/parcels": "Parcels with QoS 1 or 2 that other brokers have not taken over.",
    "owed/bytes": "Bytes of parcels that other brokers have not taken over.",
    "interests/spared": "Interests that others are not told, since nothing that meets them is published there.",
    "interests/supplemented": "Brokers that are sent everything until they know what is published here.",
}
_COUNTERS: Final = {
    "bytes/sent": "Bytes written to other brokers, inside TLS.",
    "bytes/received": "Bytes read from other brokers, inside TLS.",
    "useless": "Messages that came from other brokers and that no client here wanted.",
}


def net_metrics(net: Net) -> Iterator[Metric]:
    """One set of numbers."""
    for name, text in _GAUGES.items():
        yield GaugeMetricFamily(f"tieline_net_{name.replace('/', '_')}", text, net.totals[name])
    for name, text in _COUNTERS.items():
        yield CounterMetricFamily(f"tieline_net_{name.replace('/', '_')}", text, net.totals[name])
    counts = CounterMetricFamily("tieline_net_count", "What happened between brokers, by name.", labels=("what",))
    for what, count in net.counts.items():
        counts.add_metric((what,), count)
    lost = CounterMetricFamily("tieline_net_lost", "Links that went down, by reason.", labels=("why",))
    for why, count in net.lost.items():
        lost.add_metric((why,), count)
    yield from (counts, lost)
    yield from _links(net)


_RING: Final = {
    "joined": "1 when everybody who has to know of this broker does.",
    "fingers": "Brokers by which it gets to all others.",
    "watchers": "Brokers that are told what is wanted here and behind it.",
    "subscriptions": "Different things that clients here ask the ring for.",
    "links/up": "Connections to other brokers that are up.",
    "waiting/messages": "Messages between brokers that wait for a link.",
    "unacknowledged/messages": "Messages that the next broker has not acknowledged.",
    "owed/batches": "Batches with QoS 1 or 2 that are owed here, or carried for others.",
    "owed/bytes": "Bytes that are owed to the ring.",
}
_RING_COUNTERS: Final = {
    "publications/sent": "Batches of publications sent to other brokers.",
    "publications/bytes": "Bytes of their frames, inside TLS.",
    "publications/received": "Batches of publications that came.",
    "publications/hops": "Hops that these had made, all together.",
}


def ring_metrics(totals: dict[str, int], counts: dict[str, int]) -> Iterator[Metric]:
    """The same of a broker on a ring."""
    for name, text in _RING.items():
        yield GaugeMetricFamily(f"tieline_ring_{name.replace('/', '_')}", text, totals[name])
    for name, text in (_COUNTERS | _RING_COUNTERS).items():
        yield CounterMetricFamily(f"tieline_ring_{name.replace('/', '_')}", text, totals[name])
    happened = CounterMetricFamily("tieline_ring_count", "What happened on the ring, by name.", labels=("what",))
    for what, count in counts.items():
        happened.add_metric((what,), count)
    yield happened


def _links(net: Net) -> Iterator[Metric]:
    up = GaugeMetricFamily("tieline_net_link_up", "1 while the link to a broker is up.", labels=("peer",))
    trip = GaugeMetricFamily(
        "tieline_net_link_round_trip_seconds", "How long a ping takes on a link, there and back.", labels=("peer",)
    )
    sent = CounterMetricFamily(
        "tieline_net_link_sent_bytes", "Bytes of messages sent on a link, by class.", labels=("peer", "class")
    )
    received = CounterMetricFamily(
        "tieline_net_link_received_bytes", "Bytes of messages that came on a link, by class.", labels=("peer", "class")
    )
    for link in net.links:
        up.add_metric((link.peer,), link.up)
        trip.add_metric((link.peer,), link.round_trip_s)
        for name, out, come in zip(net.classes, link.sent_bytes, link.received_bytes, strict=True):
            sent.add_metric((link.peer, name), out)
            received.add_metric((link.peer, name), come)
    yield from (up, trip, sent, received)
