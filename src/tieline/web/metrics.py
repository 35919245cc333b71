"""Figures in Prometheus' own words; every name begins with ``tieline_`` and has a sentence that explains it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate
from typing import TYPE_CHECKING, Final

from prometheus_client import CollectorRegistry
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.exposition import choose_encoder

from tieline.web.net_metrics import net_metrics, ring_metrics

if TYPE_CHECKING:
    from tieline.web.figures import Figures

COUNTERS: Final = {
    "received_bytes": "MQTT bytes received, inside TLS and WebSocket.",
    "sent_bytes": "MQTT bytes sent, inside TLS and WebSocket.",
    "received_packets": "Control packets received.",
    "received_messages": "PUBLISH packets received.",
    "sent_messages": "PUBLISH packets sent.",
    "accepted_connections": "Network connections accepted.",
    "expired_sessions": "Sessions that ran out while their client was away.",
    "congestions": "Times that a session's queue was handed to the priority policy.",
    "lowered_claims": "Messages whose publisher may not have the level it claimed.",
    "throttled_claims": "Messages above the ordinary level that were too many for their publisher's claim.",
    "unknown_levels": "Priority properties that were no level.",
    "content_sifted_messages": "Messages whose content was read for somebody's condition.",
    "content_unreadable_messages": "Messages whose content could not be read.",
    "content_forgotten_references": "Last values of changed() and delta() forgotten for want of room.",
    "store_commits": "Group commits of the store; what arrives during one shares the next.",
    "forgotten_producers": "Producers of $once forgotten for want of room.",
    "throttled_logins": "Logins refused unheard, because too many had failed.",
    "turned_away_logins": "Logins refused because too many were being checked.",
    "gc_seconds": "Seconds for which garbage collection stopped the process.",
    "lost_log_events": "Lines of the broker's story that were lost before they could be logged.",
}
GAUGES: Final = {
    "uptime_seconds": "Seconds since the broker started.",
    "connections": "Open network connections.",
    "connected_sessions": "Sessions whose client is connected.",
    "away_sessions": "Sessions whose client is away.",
    "subscriptions": "Subscriptions, shared ones and those with a condition included.",
    "shared_subscriptions": "Shared subscriptions.",
    "content_subscriptions": "Subscriptions with a condition.",
    "content_references": "Last values kept for changed() and delta().",
    "retained_messages": "Retained messages.",
    "retained_bytes": "Bytes of retained topics, payloads and properties.",
    "producers": "Producers of $once whose last number is remembered.",
    "queued_messages": "Messages that wait in all queues together.",
    "queued_bytes": "Bytes that wait or are in flight, all sessions together.",
    "spilled_messages": "Messages that wait in the store alone, because the queues of absent clients are full.",
    "spilled_bytes": "Bytes that wait in the store alone.",
    "inflight_messages": "Messages that wait for an acknowledgement of their receiver.",
    "loop_lag_seconds": "How late the last one-second timer was.",
    "gc_pause_max_seconds": "The longest garbage collection since the start.",
    "given_heat_entries": "Entries of the heat table that somebody gave; 0 while the broker's own heat counts.",
    "given_heat_left_seconds": "For how long that table still holds.",
    "store_waiting": "Acknowledgements and messages that wait for the store to commit.",
    "store_is_durable": "1 when what is acknowledged survives the process.",
    "store_is_behind": "1 while the store has more to do than it should, and clients are read more slowly.",
}


class _Collector:
    """Shows one set of figures."""

    def __init__(self, figures: Figures) -> None:
        self._figures = figures

    def collect(self) -> Iterator[Metric]:
        figures = self._figures
        yield InfoMetricFamily("tieline", "Which broker this is.", {"name": figures.name, "version": figures.version})
        for name, text in COUNTERS.items():
            yield CounterMetricFamily(f"tieline_{name}", text, figures.counters[name])
        for name, text in GAUGES.items():
            yield GaugeMetricFamily(f"tieline_{name}", text, figures.gauges[name])
        dropped = CounterMetricFamily(
            "tieline_dropped_messages", "Messages discarded, by reason and class.", labels=("why", "class")
        )
        for why, level, count in figures.drops:
            dropped.add_metric((why, level), count)
        yield dropped
        yield _counted("tieline_closed_connections", "Connections ended, by reason.", figures.closed)
        yield _counted("tieline_ended_sessions", "Sessions that the broker has ended, by reason.", figures.ended)
        yield _counted("tieline_refusals", "What was refused without ending a connection.", figures.refusals)
        yield _counted("tieline_holds", "Times that a connection was not read for a while.", figures.holds)
        memory = GaugeMetricFamily("tieline_memory_bytes", "Bytes kept because of clients, by kind.", labels=("kind",))
        for kind, size in figures.memory.items():
            memory.add_metric((kind,), size)
        yield memory
        yield from _classes(figures)
        if figures.net is not None:
            yield from net_metrics(figures.net)
        if figures.ring is not None:
            yield from ring_metrics(*figures.ring)


def _counted(name: str, text: str, counts: dict[str, int]) -> CounterMetricFamily:
    family = CounterMetricFamily(name, text, labels=("why",))
    for why, count in counts.items():
        family.add_metric((why,), count)
    return family


def _classes(figures: Figures) -> Iterator[Metric]:
    received = CounterMetricFamily(
        "tieline_class_received_messages", "PUBLISH packets received, by class.", labels=("class", "level")
    )
    congested = GaugeMetricFamily(
        "tieline_class_congested_sessions", "Sessions for which the class is congested.", labels=("class", "level")
    )
    oldest = GaugeMetricFamily(
        "tieline_class_oldest_seconds",
        "How long the longest waiting message of the class has waited.",
        labels=("class", "level"),
    )
    waits = HistogramMetricFamily(
        "tieline_class_wait_seconds", "Waiting time in congested queues.", labels=("class", "level")
    )
    for one in figures.classes:
        labels = (one.name, str(one.level))
        received.add_metric(labels, one.received)
        congested.add_metric(labels, one.congested)
        oldest.add_metric(labels, one.oldest_s)
        sums = list(accumulate(figures.waits[one.name]))
        bounds = [*(str((1 << bucket) / 1000) for bucket in range(len(sums) - 1)), "+Inf"]
        waits.add_metric(labels, list(zip(bounds, sums, strict=True)), sum_value=None)
    yield from (received, congested, oldest, waits)


def render(figures: Figures, accept: str) -> tuple[bytes, str]:
    """The page, in the dialect that the reader asks for, and its content type."""
    registry = CollectorRegistry()
    registry.register(_Collector(figures))
    encoder, content_type = choose_encoder(accept)
    return encoder(registry), content_type
