"""The numbers of the priority benchmark: what each means."""

from __future__ import annotations

from tieline.bench.metrics import METRICS as BROKER_METRICS
from tieline.bench.metrics import Metric, readable, three_digits

METRICS = {
    "urgent_p50_ms": Metric("median time of an urgent message from send to receive", "ms"),
    "urgent_p99_ms": Metric("the same, exceeded by 1 % of the urgent messages; a missing one counts as the run", "ms"),
    "urgent_max_ms": Metric("the longest time of an urgent message", "ms"),
    "urgent_sent": Metric("urgent messages sent", ""),
    "urgent_lost": Metric("urgent messages that had not arrived when the run ended", ""),
    "bound_ms": Metric("the longest that the stated bound allows an urgent message on this link", "ms"),
    "over_bound": Metric("urgent messages that took longer than that", ""),
    "low_p50_ms": Metric("median time of a low message", "ms"),
    "low_max_ms": Metric("the longest time of a low message", "ms"),
    "low_sent": Metric("low messages sent", ""),
    "low_lost": Metric("low messages that had not arrived when the run ended", ""),
    "bulk_p50_ms": Metric("median time of a bulk message", "ms"),
    "bulk_sent": Metric("bulk messages sent", ""),
    "bulk_received": Metric("bulk messages received, the emptying of the queue included", ""),
    "drops_named": Metric("messages that the broker counts as dropped, under a name", ""),
    "unaccounted": Metric("messages neither received nor named among the drops", ""),
    "disordered": Metric("messages that came twice, or after a later one of their flow", ""),
    "link_bytes_per_s": Metric("bulk that the link carried", "B/s"),
    "rtt_ms": Metric("round trip over the idle link", "ms"),
    "flood_rate": Metric("messages of the flood delivered per second", "/s", more_is_better=True),
    "longest_turn_ms": Metric("the longest turn of the broker's event loop", "ms"),
    "ahead_p50_bytes": Metric("bytes the slow reader took before an urgent message, median", "B"),
    "ahead_max_bytes": Metric("the same, most", "B"),
    "ahead_bound_bytes": Metric("what both kernels, a packet begun and a floor quantum may hold", "B"),
    "prompt_p50_ms": Metric("median time to a prompt subscriber of the same topics", "ms"),
    "prompt_p99_ms": Metric("time to that subscriber exceeded by 1 % of the messages", "ms"),
    "read_bytes_per_s": Metric("what the slow reader took", "B/s"),
    "rate_ratio": Metric("throughput with : without", "x", more_is_better=True),
    "cpu_ratio": Metric("CPU for each message with : without", "x"),
    "p50_ratio": Metric("median latency with : without", "x"),
    "p99_ratio": Metric("latency exceeded by 1 % of the messages, with : without", "x"),
    **BROKER_METRICS,
}


def shown(name: str, value: float | None) -> str:
    """A number with its unit, as tables have it."""
    if value is None:
        return ""
    unit = METRICS[name].unit
    if unit == "ms" and value >= 1_000:
        return f"{three_digits(value / 1e3)} s"
    if unit == "":
        return f"{value:.0f}"
    return readable(value, unit)
