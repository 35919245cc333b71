"""The numbers of the matching benchmark: what each means."""

from __future__ import annotations

from tieline.bench.metrics import METRICS as BROKER_METRICS
from tieline.bench.metrics import Metric, readable, three_digits

METRICS = {
    "match_p50_us": Metric("time to find the subscriptions of one event, median over events of the least pass", "µs"),
    "match_p99_us": Metric("the same, exceeded by 1 % of the events", "µs"),
    "first_p50_us": Metric("median time when an event is asked about for the first time", "µs"),
    "batch_rate": Metric("events per second of CPU time when many are asked about at once", "/s", more_is_better=True),
    "matches": Metric("subscriptions that match an event, mean", ""),
    "events": Metric("events asked about one by one", ""),
    "compared": Metric("answers or messages compared with the right ones", ""),
    "counted": Metric("messages counted by subscriber, and found to be as many as they should be", ""),
    "build_s": Metric("time to build the index from all boxes", "s"),
    "rebuild_s": Metric("time to make it anew from itself", "s"),
    "insert_p50_us": Metric("time to add a subscription, median", "µs"),
    "insert_p99_us": Metric("the same, exceeded by 1 %", "µs"),
    "delete_p50_us": Metric("time to take a subscription away, median", "µs"),
    "delete_p99_us": Metric("the same, exceeded by 1 %", "µs"),
    "bytes_index": Metric("bytes of the index for each subscription", "B"),
    "bytes_resident": Metric("growth of the process for each subscription", "B"),
    "subscriptions": Metric("subscriptions held by the broker", ""),
    "load_s": Metric("time until all were acknowledged", "s"),
    "bytes_subscription": Metric("growth of the broker for each subscription", "B"),
    "rate_ratio": Metric("throughput with conditions : with plain topics", "x", more_is_better=True),
    "cpu_ratio": Metric("CPU for each message with conditions : with plain topics", "x"),
    "lone_p50_us": Metric("median time from send to receive with one message in flight", "µs"),
    "lone_ratio": Metric("the same, conditions : plain topics", "x"),
    "beside_one_rate": Metric("throughput of a plain flow on one topic, 1:1", "/s", more_is_better=True),
    "beside_many_rate": Metric("the same, 1,000 topics in turn", "/s", more_is_better=True),
    "beside_one": Metric("throughput of a plain flow beside the conditions : beside none", "x", more_is_better=True),
    "beside_many": Metric("the same, 1,000 topics in turn", "x", more_is_better=True),
    **BROKER_METRICS,
}


def shown(name: str, value: float | None) -> str:
    """A number with its unit, as tables have it."""
    if value is None:
        return ""
    unit = METRICS[name].unit
    if unit == "µs" and value >= 1_000:
        return f"{three_digits(value / 1e3)} ms"
    if unit == "":
        return f"{value:,.0f}"
    return readable(value, unit)
