"""The priority benchmark: what its numbers mean, the goals that they are held against, its tables and its picture."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from tieline.bench.brokers import BASELINE, SUBJECT
from tieline.bench.metrics import METRICS as LOAD_METRICS
from tieline.bench.metrics import Metric
from tieline.bench.priority import cost, onlookers, slow, thin
from tieline.bench.suite.declaration import Goal, GroupTable, Suite, ratio_goal, value_goal
from tieline.bench.suite.picture import GREEN, OCHRE, RUST, SKY, Picture, bars, group_panel, labels, limit
from tieline.bench.suite.results import Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes

METRICS: Final = {
    **LOAD_METRICS,
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
    "page_bytes_per_s": Metric("what each page was told in a second", "B/s"),
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
}

TABLES: Final = {
    "thin": GroupTable(
        title="Thin link, 128 kbit/s: time from send to receive",
        columns={
            "urgent_p50_ms": "urgent p50", "urgent_p99_ms": "p99", "urgent_max_ms": "longest", "bound_ms": "bound",
            "urgent_lost": "not arrived", "low_max_ms": "low, longest", "low_lost": "not arrived ",
            "drops_named": "drops, named", "unaccounted": "unaccounted", "disordered": "disordered",
        },
    ),
    "busy": GroupTable(
        title="Busy broker, 50 publishers at full speed: time of an urgent message",
        columns={
            "urgent_p50_ms": "urgent p50", "urgent_p99_ms": "p99", "urgent_max_ms": "longest",
            "flood_rate": "flood delivered", "longest_turn_ms": "longest turn",
        },
    ),
    "onlookers": GroupTable(
        title="Busy broker with live pages open: time of an urgent message",
        columns={
            "urgent_p50_ms": "urgent p50", "urgent_p99_ms": "p99", "flood_rate": "flood delivered",
            "page_bytes_per_s": "told to each page", "p50_ratio": "p50 ratio", "p99_ratio": "p99 ratio",
        },
    ),
    "slow": GroupTable(
        title="Slow reader, 1 kB/s: bytes it took before an urgent message; a prompt reader of the same topics",
        columns={
            "ahead_p50_bytes": "ahead p50", "ahead_max_bytes": "most", "ahead_bound_bytes": "bound",
            "urgent_p50_ms": "urgent p50", "urgent_lost": "not arrived", "prompt_p50_ms": "prompt p50",
            "prompt_p99_ms": "prompt p99",
        },
    ),
    "strangers": GroupTable(
        title="Slow reader: what other clients notice",
        columns={
            "rate": "throughput", "p50_us": "p50", "p99_us": "p99", "rate_ratio": "throughput ratio",
            "p50_ratio": "p50 ratio", "p99_ratio": "p99 ratio",
        },
    ),
    "cost": GroupTable(
        title="Cost of classes without congestion, QoS 0",
        columns={
            "rate": "throughput", "cpu_us_delivered": "CPU per message", "rate_ratio": "throughput ratio",
            "cpu_ratio": "CPU ratio",
        },
    ),
}  # fmt: skip

#: Urgent p99 on the thin link, and beside a flood, against mosquitto's.
THIN_TIMES = 20.0
BUSY_SHARE = 1 / 3
#: Paced work may cost so much more.
COSTLIER = 1.1
#: Others are unaffected by a slow reader if their median hardly moves.
UNAFFECTED = 1.2


def _goals() -> Iterator[Goal]:
    for case in thin.CASES:
        if case.peer == SUBJECT:
            yield from _thin_goals(case)
    yield ratio_goal(
        "busy broker: urgent p99, times mosquitto's", BUSY_SHARE, "busy", "urgent_p99_ms", (SUBJECT, BASELINE)
    )
    text = "20 live pages open: urgent p99, with them : without"
    yield value_goal(text, onlookers.UNDISTURBED, "x", ("onlookers", onlookers.WATCHED), "p99_ratio")
    yield value_goal(
        "slow reader: bytes taken before an urgent message",
        float(slow.ahead_bound()), "B", ("slow", SUBJECT), "ahead_max_bytes",
    )  # fmt: skip
    strangers = ("strangers", slow.WITH_SLOW)
    text = "slow reader: throughput of others, with it : without"
    yield value_goal(text, cost.KEPT, "x", strangers, "rate_ratio", at_least=True)
    text = "slow reader: median latency of others, with it : without"
    yield value_goal(text, UNAFFECTED, "x", strangers, "p50_ratio")
    for kind in cost.CASES:
        key = (kind.name, cost.HAVING)
        if kind.is_saturated:
            text = f"cost, {kind.title}: throughput with classes : without"
            yield value_goal(text, cost.KEPT, "x", key, "rate_ratio", at_least=True)
        else:
            text = f"cost, {kind.title}: CPU per message with classes : without"
            yield value_goal(text, COSTLIER, "x", key, "cpu_ratio")


def _thin_goals(case: thin.LaneCase) -> Iterator[Goal]:
    key = (case.name, SUBJECT)
    # mosquitto knows no properties, and over TLS it is no faster
    theirs = (f"thin-{case.where}", BASELINE)
    where = f"thin link, {case.title}"

    def times(results: Results) -> float | None:
        mine, other = (results.value(*each, "urgent_p99_ms") for each in (key, theirs))
        return other / mine if mine and other is not None else None

    yield Goal(
        text=f"{where}: mosquitto's urgent p99, times ours",
        limit=THIN_TIMES,
        unit="x",
        value=times,
        rows=(key,),
        against=(theirs,),
        at_least=True,
    )
    for text, most, metric, unit in (
        ("urgent messages beyond the stated bound", 0.0, "over_bound", ""),
        ("longest wait of the low class", thin.LOW_TIMEOUT_S * 1e3, "low_max_ms", "ms"),
        ("messages neither received nor named as dropped", 0.0, "unaccounted", ""),
        ("messages twice, or out of their flow's order", 0.0, "disordered", ""),
    ):
        yield value_goal(f"{where}: {text}", most, unit, key, metric)
    yield value_goal(f"{where}: overflow of bulk, as named drops", 1.0, "", key, "drops_named", at_least=True)


_COLOURS: Final = {SUBJECT: GREEN, BASELINE: RUST}
_MARKERS: Final = {"thin-broker": "o", "thin-router": "^", "thin-property": "s", "thin-tls": "D"}


def _thin(axis: Axes, results: Results) -> None:
    for name, places in results.timelines.items():
        workload, peer = name.split()
        axis.scatter(
            [sent for sent, _ in places],
            [max(took, 1e-3) for _, took in places],
            s=14,
            marker=_MARKERS.get(workload, "o"),
            color=_COLOURS[peer],
            alpha=0.7,
            label=f"{peer}, {workload.removeprefix('thin-')}",
        )
    bound = next((row.metrics["bound_ms"] / 1e3 for row in results.rows if "bound_ms" in row.metrics), None)
    limit(axis, bound, "stated bound")
    axis.set_yscale("log")
    labels(axis, x="second of sending", y="seconds to arrive (missing: the whole run)")


def _busy(axis: Axes, results: Results) -> None:
    _peers(axis, results, "busy", {"urgent_p50_ms": "p50", "urgent_p99_ms": "p99", "urgent_max_ms": "longest"})
    labels(axis, y="ms")


def _slow(axis: Axes, results: Results) -> None:
    _peers(axis, results, "slow", {"ahead_p50_bytes": "p50", "ahead_max_bytes": "most"})
    limit(axis, results.value("slow", SUBJECT, "ahead_bound_bytes"))
    labels(axis, y="bytes taken before an urgent message")


def _peers(axis: Axes, results: Results, workload: str, metrics: dict[str, str]) -> None:
    """Some numbers of a workload, the brokers side by side."""
    series = {
        peer: [results.value(workload, peer, metric) or 0.0 for metric in metrics]
        for peer in (SUBJECT, BASELINE)
        if results.value(workload, peer, next(iter(metrics))) is not None
    }
    bars(axis, series, list(metrics.values()), _COLOURS)


def _cost(axis: Axes, results: Results) -> None:
    cases = [case for case in cost.CASES if results.value(case.name, cost.HAVING, "rate_ratio") is not None]
    kinds = {"throughput": "rate_ratio", "CPU per message": "cpu_ratio"}
    series = {
        label: [results.value(case.name, cost.HAVING, metric) or 0.0 for case in cases]
        for label, metric in kinds.items()
    }
    bars(axis, series, [case.title.replace(", ", ",\n") for case in cases], dict(zip(kinds, (SKY, OCHRE), strict=True)))
    limit(axis, cost.KEPT)


PICTURE: Final = Picture(
    panels=(
        group_panel("thin", "Thin link, 128 kbit/s: urgent messages", _thin),
        group_panel("busy", "Beside 50 publishers at full speed: urgent messages", _busy),
        group_panel("slow", "Slow reader, 1 kB/s", _slow),
        group_panel("cost", "Classes without congestion: with : without", _cost),
    ),
    width=6.0,
    height=4.0,
)
SUITE: Final = Suite(
    name="priority", metrics=METRICS, tables=TABLES, goals=tuple(_goals()), picture=PICTURE, headings=("case", "broker")
)
