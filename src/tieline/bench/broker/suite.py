"""The broker's benchmark: the goals that its numbers are held against, its tables and its picture."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tieline.bench.broker.cases import Workload
from tieline.bench.brokers import BASELINE, SUBJECT
from tieline.bench.metrics import METRICS, three_digits
from tieline.bench.suite.declaration import Goal, GroupTable, Suite, ratio_goal, value_goal
from tieline.bench.suite.picture import GREEN, GREY, MAUVE, OCHRE, SKY, Panel, Picture
from tieline.bench.suite.results import Results, Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_PAIR: Final = (SUBJECT, BASELINE)
_VOLUME: Final = {"rate": "delivered", "cpu_us_delivered": "CPU each"}
_IDLE: Final = ("bytes_connection", "bytes_subscribed")

TABLES: Final = {
    group: GroupTable(title=title, columns=columns, is_grid=True, ratio=None if group == "filters" else _PAIR,
                 instead={"idle": _IDLE, "idle-tls": _IDLE})
    for group, title, columns in (
        ("throughput", "Saturated: messages delivered per second, broker CPU per delivered message", _VOLUME),
        (
            "payloads",
            "Long payloads, saturated: messages delivered per second, broker CPU per delivered message",
            _VOLUME,
        ),
        (
            "durable",
            "Durable: messages delivered per second, CPU of the broker and its writer per delivered message",
            _VOLUME,
        ),
        ("promise", "Durable: time from send to acknowledgement, p50, p99", {"p50_us": "p50", "p99_us": "p99"}),
        (
            "first",
            "First message of a topic: broker CPU for it, for a later one, and their ratio",
            {"cpu_us_first": "first", "cpu_us_later": "later", "ratio_first": "ratio"},
        ),
        ("latency", "Latency: time from send to receive, p50, p99", {"p50_us": "p50", "p99_us": "p99"}),
        (
            "paced",
            "Paced: broker CPU per message, time from send to receive p50, p99",
            {"cpu_us_delivered": "CPU each", "p50_us": "p50", "p99_us": "p99"},
        ),
        (
            "filters",
            "CPU of a PUBLISH with the other filters : without, one topic, changing topics",
            {"ratio_one_topic": "one topic", "ratio_many_topics": "changing topics"},
        ),
        (
            "connections",
            "Connections: accepted per second and CPU for each; memory when idle, idle with a subscription",
            {"rate": "accepted", "cpu_us_connection": "CPU each"},
        ),
    )
}  # fmt: skip

_SHAPES: Final = (("1:1", "1to1"), ("fan-in", "fanin"), ("fan-out", "fanout"))
#: The same goals where no two consecutive messages share a topic, so that nothing can be handled by the run.
_ALL_SHAPES: Final = _SHAPES + tuple((f"{title}, topics change", f"{name}-topics") for title, name in _SHAPES)
_PACED: Final = (
    *((name, 1.15) for name in ("200x1", "200x50", "1000x1", "1000x10")),
    *((name, 1.25) for name in ("1000x1-first", "200x50-tls", "1000x10-tls")),
)
_KILOBYTES: Final = (1, 4, 16, 64, 256)
#: Times mosquitto's throughput: where no two messages in a row share a topic, a run gives nothing away.
_TIMES: Final = {"1to1-topics": 5.0, "fanin-topics": 4.0}


def _throughput(qos: int, title: str, name: str, times: float) -> Goal:
    text = f"QoS {qos} {title}: throughput, times mosquitto's"
    return ratio_goal(text, times, f"qos{qos}-{name}", "rate", _PAIR, at_least=True)


def _cpu(text: str, workload: str, most: float) -> Goal:
    return ratio_goal(f"{text}, times mosquitto's", most, workload, "cpu_us_delivered", _PAIR)


def _dearer_publish(results: Results) -> float | None:
    """The worse of one topic and changing topics."""
    values = [results.value("filters", SUBJECT, metric) for metric in ("ratio_one_topic", "ratio_many_topics")]
    return max((value for value in values if value is not None), default=None)


GOALS: Final = (
    *(_throughput(0, title, name, _TIMES.get(name, 3.0)) for title, name in _ALL_SHAPES),
    *(_cpu(f"QoS 0 {title}: CPU per delivered message", f"qos0-{name}", 1 / 3) for title, name in _ALL_SHAPES),
    *(_throughput(1, title, name, 2.0) for title, name in _SHAPES),
    *(
        goal
        for size in _KILOBYTES
        for title, name in (("1:1", f"1to1-{size}kB"), ("fan-out", f"fanout-{size}kB"))
        for goal in (
            _throughput(0, f"{title}, {size} kB", name, 1.0),
            _cpu(f"QoS 0 {title}, {size} kB: CPU per delivered message", f"qos0-{name}", 1.05),
        )
    ),
    *(
        ratio_goal(
            f"QoS 1 {title}, durable: throughput, times that of mosquitto with persistence",
            2.0, f"durable-{name}", "rate", _PAIR, at_least=True,
        )
        for title, name in _SHAPES
    ),
    ratio_goal("latency p50, times mosquitto's", 1.1, "latency", "p50_us", _PAIR),
    ratio_goal("first message of a topic: CPU, times mosquitto's", 1.25, "first", "cpu_us_first", _PAIR),
    *(_cpu(f"paced {name}: CPU", f"paced-{name}", most) for name, most in _PACED),
    ratio_goal(
        "connect, subscribe and disconnect: visits per second, times mosquitto's",
        1.0, "visits", "rate", _PAIR, at_least=True,
    ),
    value_goal("memory of an idle connection", 20_000, "B", ("idle", SUBJECT), "bytes_connection"),
    value_goal("memory of an idle TLS connection", 45_000, "B", ("idle-tls", SUBJECT), "bytes_connection"),
    Goal(
        text="PUBLISH beside 100k filters that do not match : beside none",
        limit=1.2,
        unit="x",
        value=_dearer_publish,
        rows=(("filters", SUBJECT),),
    ),
)  # fmt: skip
_JUDGED: Final = frozenset(workload for goal in GOALS for workload, _ in goal.rows)


def is_quick(workload: Workload) -> bool:
    """Whether a quick run measures it: if a goal is about it."""
    return workload.name in _JUDGED


def _remarks(results: Results) -> Iterator[str]:
    """How much the rows rest on: how often a disk was told, and what was delivered."""
    for row in results.rows:
        if row.peer == SUBJECT and "flushes_per_s" in row.metrics:
            yield f"{row.title}: {_flushed(row, results)}"
    # what was not delivered would have made its row fail
    spells = [one for row in results.rows if row.status == "measured" for one in row.repetitions if "delivered" in one]
    if spells:
        count, checked = (sum(one.get(name, 0.0) for one in spells) for name in ("delivered", "checked"))
        yield (
            f"{count:,.0f} messages were owed in the {len(spells)} spells of these rows, and all were delivered; "
            f"{checked:,.0f} before them were compared byte for byte"
        )


def _flushed(row: Row, results: Results) -> str:
    """How often the disk really was told, and how much went into one such commit; the count is the whole machine's."""
    per_s = row.metrics["flushes_per_s"]
    text = f"{SUBJECT} flushed the disk ({results.machine.get('disk', 'unknown')}) {per_s:,.0f} times a second"
    if per_s >= 1:
        text += f", with {row.metrics['inbound_rate'] / per_s:,.1f} published messages in each"
    others = results.value(row.workload, BASELINE, "flushes_per_s")
    return text if others is None else f"{text}; {others:,.0f} times while {BASELINE} worked"


#: Room between two workloads, in bars.
_GAP: Final = 0.7
_COLOURS: Final = {"tieline": GREEN, "nats": SKY, "aedes": OCHRE, "amqtt": MAUVE}
_MESSAGES: Final = ("throughput", "payloads", "durable")


@dataclass(frozen=True, slots=True)
class _Bar:
    """One broker against the baseline in one workload, and where it stands from top to bottom."""

    workload: str
    peer: str
    ratio: float
    place: float


def _bars(results: Results, metric: str, groups: tuple[str, ...]) -> list[_Bar]:
    """A bar for every broker that can be held against the baseline, workload by workload from top to bottom."""
    found: list[_Bar] = []
    place = 0.0
    for row in results.rows:
        ratio = results.ratio(row.workload, metric, row.peer, BASELINE)
        if row.group not in groups or row.peer == BASELINE or ratio is None:
            continue
        if found:
            place += 1 if found[-1].workload == row.title else 1 + _GAP
        found.append(_Bar(row.title, row.peer, ratio, place))
    return found


def _ratio_panel(title: str, metric: str, groups: tuple[str, ...]) -> Panel:
    return Panel(
        title=title,
        draw=lambda axis, results: _draw_ratios(axis, _bars(results, metric, groups)),
        shows=lambda results: bool(_bars(results, metric, groups)),
        height=lambda results: 0.8 + 0.17 * (_bars(results, metric, groups)[-1].place + _GAP),
    )


def _draw_ratios(axis: Axes, found: list[_Bar]) -> None:
    for peer in dict.fromkeys(bar.peer for bar in found):
        mine = [bar for bar in found if bar.peer == peer]
        axis.barh(
            [bar.place for bar in mine],
            [bar.ratio - 1 for bar in mine],
            left=1,  # bars leave the baseline to the right or to the left: on a logarithmic axis nothing begins at zero
            height=0.9,
            color=_COLOURS.get(peer, GREY),
            label=peer,
        )
    for bar in found:
        side, anchor = (3, "left") if bar.ratio >= 1 else (-3, "right")
        axis.annotate(
            f"{three_digits(bar.ratio)}x",
            (bar.ratio, bar.place),
            xytext=(side, 0),
            textcoords="offset points",
            va="center",
            ha=anchor,
            fontsize=7,
        )
    places: dict[str, list[float]] = {}
    for bar in found:
        places.setdefault(bar.workload, []).append(bar.place)
    axis.set_yticks([sum(of) / len(of) for of in places.values()], list(places), fontsize=8)
    axis.axvline(1.0, color="#444444", linewidth=1, linestyle="--")
    axis.set_xscale("log")
    axis.margins(x=0.15, y=0.02)
    axis.invert_yaxis()
    axis.grid(axis="x", which="major", alpha=0.3)
    axis.xaxis.set_major_formatter(lambda value, _position: f"{value:g}x")


PICTURE: Final = Picture(
    panels=(
        _ratio_panel("throughput, times mosquitto's (right of 1x is better)", "rate", _MESSAGES),
        _ratio_panel(
            "broker CPU per message, times mosquitto's (left of 1x is better)",
            "cpu_us_delivered",
            (*_MESSAGES, "paced"),
        ),
    ),
    columns=1,
    width=11.0,
)
SUITE: Final = Suite(
    name="broker",
    metrics=METRICS,
    tables=TABLES,
    goals=GOALS,
    picture=PICTURE,
    headings=("workload", "broker"),
    remarks=_remarks,
)
