"""The numbers a measurement yields: what each means, which direction is better, and how it is written."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Metric:
    """One kind of number, and what it means."""

    meaning: str
    #: ``x`` a ratio, ``share`` a part of one, ``yes`` one or nothing, "" a count,
    #: ``mean`` an average of counts; all others as they are written.
    unit: str
    more_is_better: bool = False
    #: The worst repetition is shown beside the median.
    shows_worst: bool = False


METRICS = {
    "rate": Metric("messages delivered (or connections accepted) per second", "/s", more_is_better=True),
    "inbound_rate": Metric("messages published per second", "/s", more_is_better=True),
    "offered_rate": Metric("messages per second that the paced clients were to send", "/s"),
    "cpu_us_delivered": Metric("CPU time of the broker for each delivered message", "µs"),
    "cpu_us_inbound": Metric("CPU time of the broker for each published message", "µs"),
    "cpu_us_first": Metric("CPU time of the broker for the first message of a topic", "µs"),
    "cpu_us_later": Metric("the same for the second message of the topic", "µs"),
    "ratio_first": Metric("CPU for the first message of a topic : for a later one", "x"),
    "cpu_us_cold": Metric("CPU time for each delivered message while topics are new to the broker", "µs"),
    "generator_us_delivered": Metric("CPU time of the load generator for each delivered message", "µs"),
    "cpu_us_connection": Metric("CPU time of the broker for each accepted connection", "µs"),
    "generator_us_connection": Metric("CPU time of the load generator for each of them", "µs"),
    "p50_us": Metric("median time from send to receive", "µs"),
    "p99_us": Metric("time from send to receive that 1 % of the messages exceed", "µs"),
    "bytes_connection": Metric("growth of the broker's memory for each idle connection", "B"),
    "bytes_subscribed": Metric("the same when each connection holds one subscription", "B"),
    "base_bytes": Metric("memory of the broker without connections", "B"),
    "ratio_one_topic": Metric("CPU for each PUBLISH with the other filters : without, one topic", "x"),
    "ratio_many_topics": Metric("the same, topics that change with every message", "x"),
    "ratio_cold": Metric("the same, every topic seen for the first time", "x"),
    "broker_cores": Metric("cores that the broker kept busy", "cores"),
    "generator_cores": Metric("cores that the load generator kept busy", "cores"),
    "other_cores": Metric("cores that everything else on the machine kept busy", "cores"),
    "flushes_per_s": Metric("times per second that the disk of the store was told to keep what it had got", "/s"),
    "startup_s": Metric("time from starting the process to its first accepted connection", "s"),
    "delivered": Metric("messages delivered, all that were owed", ""),
    "checked": Metric("packets compared with what was sent, byte for byte", ""),
    "messages": Metric("round trips measured", ""),
    "connections": Metric("connections held", ""),
    "filters": Metric("subscriptions that do not match", ""),
}


def amount(value: float | None, unit: str) -> str:
    """A number with its unit, as tables have it; nothing for none."""
    if value is None:
        return ""
    if unit in ("share", "yes"):
        return f"{100 * value:.{2 if unit == 'share' else 0}f} %"
    if unit in ("µs", "ms") and value >= 1_000:
        return f"{three_digits(value / 1e3)} {'ms' if unit == 'µs' else 's'}"
    if unit == "x":
        return f"{three_digits(value)}x"
    if unit == "mean":
        return three_digits(value)
    return f"{value:,.0f}" if unit == "" else readable(value, unit)


def readable(value: float, unit: str) -> str:
    """Three significant digits and a unit."""
    for prefix, factor in (("M", 1e6), ("k", 1e3)):
        if unit in ("/s", "B") and value >= factor:
            return f"{three_digits(value / factor)} {prefix}{unit}"
    return f"{three_digits(value)} {unit}".rstrip()


def three_digits(value: float) -> str:
    """Three significant digits, never in scientific notation."""
    size = abs(value)
    digits = 0 if size >= 100 else 1 if size >= 10 else 2 if size >= 1 else 3 if size >= 0.1 else 4
    return f"{value:.{digits}f}"
