"""The ring paper: its workload by its own circulation, by arcs of ours and by multicast, in virtual time.

``measures.py`` runs rings of the shipped code, ``node.py`` a broker alone; ``claims.py`` holds the paper's sentences
against what came of it; what is drawn stands here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tieline.bench.papers.frame import drawing
from tieline.bench.papers.frame.declaration import Experiment, Figure, Panel, Paper, Parameter, Tables
from tieline.bench.papers.frame.table import Table
from tieline.bench.papers.ring import claims, measures, node
from tieline.bench.papers.ring.measures import ARCS, CIRCULATION, DUPLICATING, LITERAL, PARTITIONED
from tieline.overlay.ring.settings import RingSettings
from tieline.sim.ring.network import OVERHEAD
from tieline.sim.ring.workload import PAPER_ORDER, PAPER_SUBSCRIPTIONS, SHARE

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_NAMES: Final = {
    CIRCULATION: "circulation (the paper's, with the successor)",
    LITERAL: "circulation to the letter",
    ARCS: "accounts of arcs (ours)",
    DUPLICATING: "multicast, every table entry",
    PARTITIONED: "multicast, each node once",
    "content": "content, one key",
    "index": "index (ours)",
    node.CONDITIONS: "conditions (ours)",
    node.ONE_TOPIC: "one topic, all to everybody",
}
_ROLES: Final = {
    CIRCULATION: "paper", LITERAL: "second", ARCS: "ours", DUPLICATING: "baseline", PARTITIONED: "third",
    "content": "ours", "topics, 0 constraints": "third", "topics, 1 constraint": "second",
    "topics, 2 constraints": "baseline", "index": "ours", "one by one": "baseline",
    node.CONDITIONS: "ours", node.ONE_TOPIC: "baseline",
}  # fmt: skip


def _over(table: Table, y: str, *, x: str = "nodes", series: str = "dispatch", words: str, log: str = "",
          scale: float = 1.0) -> Panel:  # fmt: skip
    """Lines over a column of a table; ``words`` are those of the vertical axis, ``log`` names logarithmic ones."""

    def panel(axis: Axes) -> None:
        drawing.lines(axis, table, x=x, y=y, series=series, colours=_ROLES, names=_NAMES, scale=scale)
        if "x" in log:
            axis.set_xscale("log")
            axis.minorticks_off()
            places = table.numbers(x)
            axis.set_xticks(places, [f"{place:,.0f}" for place in places])
        if "y" in log:
            axis.set_yscale("log")
            drawing.plain_ticks(axis)
        else:
            _from_nothing(axis, max(table.column(y), default=0.0) * scale)
            axis.yaxis.set_major_formatter("{x:,g}")
        if x == "subscriptions":
            axis.xaxis.set_major_formatter("{x:,g}")
        if x == "nodes" and "x" not in log:
            axis.set_xticks(table.numbers(x))
        drawing.labels(axis, x=table.columns[x], y=words)

    return panel


def _from_nothing(axis: Axes, most: float) -> None:
    """An axis from 0 on, with room for whole marks at either end."""
    axis.set_ylim(-0.03 * (most or 1.0), 1.07 * (most or 1.0))


def _figure14(tables: Tables) -> dict[str, Panel]:
    table = tables["constraints"].where(drawn=1)
    return {"Fig. 14: constraints": _over(table, "messages", series="label", words="messages for an event")}


def _figure15(tables: Tables) -> dict[str, Panel]:
    return {
        f"Fig. 15: {times} processing times": _over(
            tables["delivery"].where(times=times, payload=100), "last_ms", words="until the last receiver has it, ms"
        )
        for times in measures.TIMES
    }


def _figure16(tables: Tables) -> dict[str, Panel]:
    return {
        f"Figs. 16, 17: {payload} B of payload": _over(
            tables["delivery"].where(times=measures.TIMES[0], payload=payload), "bytes", words="bytes for an event"
        )
        for payload in measures.PAYLOADS
    }


def _figure18(tables: Tables) -> dict[str, Panel]:
    return {
        "Fig. 18: matching an event": _over(
            tables["node"], "us", x="subscriptions", series="way", words="CPU for an event, µs"
        )
    }


def _figure20(tables: Tables) -> dict[str, Panel]:
    table = tables["broker"]

    def panel(name: str, words: str, papers: float, multicast: float) -> Panel:
        over = _over(table, name, x="subscriptions", series="way", words=words)

        def drawn(axis: Axes) -> None:
            over(axis)
            drawing.limit(axis, papers, f"the paper's ring: {papers:g}")
            drawing.limit(axis, multicast, f"its multicast: {multicast:g}")
            _from_nothing(axis, max(multicast, *table.column(name)))

        return drawn

    return {
        "Fig. 20: memory of a node": panel("megabytes", "memory of the broker's process, MB", *node.PAPER_MB),
        "Fig. 21: CPU at an event every 10 s": panel("mhz", "CPU of the broker's process, MHz", *node.PAPER_MHZ),
    }


def _figure19(tables: Tables) -> dict[str, Panel]:
    table = tables["delivery"].where(times=measures.TIMES[0], payload=100)
    return {
        "Fig. 19: copies that a node gets": _over(table, "visits", words="copies for each node and event"),
        "Fig. 19: false positives": _over(table, "false", words="visited nodes that wanted nothing, %", scale=100),
    }


def _scale(tables: Tables) -> dict[str, Panel]:
    table = tables["scale"]
    return {
        "Messages": _over(table, "messages", words="messages for an event", log="xy"),
        "Bytes": _over(table, "bytes", words="bytes for an event", log="xy"),
        "Delay": _over(table, "last_ms", words="until the last receiver has it, ms", log="xy"),
        "What a broker knows": _over(table, "table_bytes", words="what a broker knows of others, B", log="x"),
    }


def _deaths(tables: Tables) -> dict[str, Panel]:
    def panel(axis: Axes) -> None:
        table = tables["deaths"]
        drawing.lines(axis, table, x="dead", y="stale", colours={"": "ours"}, scale=100)
        shares = table.numbers("dead")
        axis.set_xticks(shares, [f"{100 * share:g}" for share in shares])
        _from_nothing(axis, max(1.0, 100 * max(table.column("stale"))))
        drawing.limit(axis, 0.2, "0.2 %")
        drawing.labels(axis, x="brokers that died, % of all", y="deliveries missed before repair, %")

    def cost(axis: Axes) -> None:
        drawing.lines(axis, tables["upkeep"], x="period_s", y="kbit_s", colours={"": "ours"})
        axis.set_xscale("log")
        axis.set_yscale("log")
        drawing.plain_ticks(axis)
        axis.minorticks_off()
        periods = tables["upkeep"].numbers("period_s")
        axis.set_xticks(periods, [f"{period:g}" for period in periods])
        drawing.limit(axis, 9.6, "the slowest links of Table I")
        drawing.labels(axis, x="stabilising every, s", y="upkeep of a broker, kbit/s")

    return {"Many die at once": panel, "What stabilising costs": cost}


def _ours(name: str, value: str | float, unit: str = "", note: str = "") -> Parameter:
    return Parameter(name=name, value=value, unit=unit, origin="ours", note=note)


_SETTINGS: Final = RingSettings()
PARAMETERS: Final = (
    Parameter(name="nodes", value="5, 10, 15, 20", origin="paper"),
    Parameter(name="subscriptions of a node", value=PAPER_SUBSCRIPTIONS, origin="paper",
              note="the paper's 3,000 of all nodes would be those of 60"),
    Parameter(name="order of the curve", value=PAPER_ORDER, origin="paper"),
    Parameter(name="processing times", value="13 and 29", unit="ms", origin="fitted",
              note="what the paper measured for matching"),
    Parameter(name="stabilising in the paper", value=0.06, unit="s", origin="paper"),
    _ours("order of the grid of our sums", measures.OURS_ORDER),
    _ours("attributes", 2, note="the text leaves them open"),
    _ours("boxes", "both ends of each side anywhere", note="the text says random"),
    _ours("payload", "50, 100, 500", "B"),
    _ours("rate of a way", measures.RATE * 8 / 1e3, "kbit/s", "the upper end of Table I"),
    _ours("equal processing time", 1e3 * measures.EQUAL_S, "ms", "of every node for every copy"),
    _ours("TCP and IP", OVERHEAD, "B", "with every message"),
    _ours("delay of a way", "2 to 58", "ms", "places on a plane"),
    _ours("share of events that a broker wants, at scale", SHARE),
    _ours("stabilising, ours", _SETTINGS.stabilise_s, "s"),
    _ours("successors", _SETTINGS.successors),
    _ours("bytes of an account", _SETTINGS.account_bytes, "B"),
)  # fmt: skip

_WORKLOAD: Final = Experiment(
    name="workload",
    title="the paper's workload",
    measure=measures.paper_workload,
    figures=(
        Figure(
            name="fig-15",
            title="Figure 15: end-to-end delay over nodes",
            tables=("delivery",),
            caption="From publishing until the last receiver has it; on the left every node takes the same time for "
            "every copy, on the right as long as the paper measured for matching.",
            fitted=("processing times",),
            panels=_figure15,
            claims=claims.delay,
        ),
        Figure(
            name="fig-16",
            title="Figures 16 and 17: bytes over nodes",
            tables=("delivery",),
            caption="Bytes of all copies of an event, with TCP and IP, for three sizes of payload.",
            panels=_figure16,
            claims=claims.traffic,
        ),
        Figure(
            name="fig-19",
            title="Figure 19: copies and false positives",
            tables=("delivery",),
            caption="A false positive is a node that got a copy and wanted nothing of it.",
            panels=_figure19,
            claims=claims.false_positives,
        ),
    ),
)
_CONSTRAINTS: Final = Experiment(
    name="constraints",
    title="topics with constraints beside one key",
    measure=measures.constraints,
    figures=(
        Figure(
            name="fig-14",
            title="Figure 14: messages for an event, topics and content",
            tables=("constraints",),
            caption="Topics send one constraint after the other to those who have matched so far, as the paper "
            "emulates content; the ring sends one message with all attributes.",
            panels=_figure14,
            claims=claims.constraints,
        ),
    ),
)
_NODE: Final = Experiment(
    name="node",
    title="one node with up to 3,000 subscriptions",
    measure=lambda request: [*measures.matching(request), *node.measure(request)],
    repeatable=False,
    figures=(
        Figure(
            name="fig-18",
            title="Figure 18: matching time",
            tables=("node",),
            caption="An event against all subscriptions of one node, by the broker's index and one by one.",
            panels=_figure18,
            claims=claims.matching,
            width=7.0,
            columns=1,
        ),
        Figure(
            name="fig-20",
            title="Figures 20 and 21: memory and CPU of a node",
            tables=("broker",),
            caption="A broker of this machine with clients of 50 subscriptions each. With conditions it sends an event "
            "to those who want it; with one topic, as multicast does, to everybody. Megahertz are the share of a core "
            "that it takes at an event every 10 s, idling included, times the clock of the processor.",
            panels=_figure20,
            claims=claims.node,
        ),
    ),
)
_SCALE: Final = Experiment(
    name="scale",
    title="brokers that want little, many of them",
    measure=measures.at_scale,
    figures=(
        Figure(
            name="scale",
            title="Beyond the paper: many brokers that want 4.5 % of events each",
            tables=("scale",),
            caption="The same shipped code with up to a thousand brokers, with --long up to ten thousand. Above a "
            "thousand the two ways are left out by which every event visits every broker, circulation with the "
            "successor and multicast to every table entry: what they take grows with the number of brokers, or faster, "
            "and the lines up to there show how.",
            panels=_scale,
            claims=claims.scale,
        ),
    ),
)
_DEATHS: Final = Experiment(
    name="deaths",
    title="brokers that die, and stabilising",
    measure=lambda request: [*measures.deaths(request), *measures.upkeep(request)],
    figures=(
        Figure(
            name="deaths",
            title="Beyond the paper: stale tables, and what stabilising costs",
            tables=("deaths", "upkeep"),
            caption="Publications with QoS 0 right after a part of all brokers has died, before anybody has looked "
            "around; and bytes that a broker sends to look around, by how often it does.",
            panels=_deaths,
            claims=claims.deaths,
        ),
    ),
)
PAPER: Final = Paper(
    name="ring",
    title="The ring paper, beside what we measure",
    citation="S. Marzal, R. Salas-Puente, R. González-Medina, G. Garcerá, E. Figueres: *Efficient Event Notification "
    "Middleware for Smart Microgrids over P2P Networks*.",
    package=__name__,
    parameters=PARAMETERS,
    experiments=(_WORKLOAD, _CONSTRAINTS, _NODE, _SCALE, _DEATHS),
    libraries=("numpy",),
)
