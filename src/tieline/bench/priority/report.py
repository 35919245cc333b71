"""The run in words and tables: what was measured, against what, and which goals are met."""

from __future__ import annotations

from typing import Final

from tieline.bench.priority.metrics import shown
from tieline.bench.priority.record import PriorityRecord
from tieline.bench.sheets import Layout

#: Group of rows: title, and the shown numbers with their headings.
TABLES: dict[str, tuple[str, dict[str, str]]] = {
    "thin": (
        "Thin link, 128 kbit/s: time from send to receive",
        {
            "urgent_p50_ms": "urgent p50",
            "urgent_p99_ms": "p99",
            "urgent_max_ms": "longest",
            "bound_ms": "bound",
            "urgent_lost": "not arrived",
            "low_max_ms": "low, longest",
            "low_lost": "not arrived ",
            "drops_named": "drops, named",
            "unaccounted": "unaccounted",
            "disordered": "disordered",
        },
    ),
    "busy": (
        "Busy broker, 50 publishers at full speed: time of an urgent message",
        {
            "urgent_p50_ms": "urgent p50",
            "urgent_p99_ms": "p99",
            "urgent_max_ms": "longest",
            "flood_rate": "flood delivered",
            "longest_turn_ms": "longest turn",
        },
    ),
    "slow": (
        "Slow reader, 1 kB/s: bytes it took before an urgent message; a prompt reader of the same topics",
        {
            "ahead_p50_bytes": "ahead p50",
            "ahead_max_bytes": "most",
            "ahead_bound_bytes": "bound",
            "urgent_p50_ms": "urgent p50",
            "urgent_lost": "not arrived",
            "prompt_p50_ms": "prompt p50",
            "prompt_p99_ms": "prompt p99",
        },
    ),
    "strangers": (
        "Slow reader: what other clients notice",
        {
            "rate": "throughput",
            "p50_us": "p50",
            "p99_us": "p99",
            "rate_ratio": "throughput ratio",
            "p50_ratio": "p50 ratio",
            "p99_ratio": "p99 ratio",
        },
    ),
    "cost": (
        "Cost of classes without congestion, QoS 0",
        {
            "rate": "throughput",
            "cpu_us_delivered": "CPU per message",
            "rate_ratio": "throughput ratio",
            "cpu_ratio": "CPU ratio",
        },
    ),
}
LAYOUT: Final[Layout[PriorityRecord]] = Layout(tables=TABLES, first=("case", "broker"), shown=shown)
show, markdown, line = LAYOUT.show, LAYOUT.markdown, LAYOUT.line
