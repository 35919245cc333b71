"""The second priority paper: four groups of one publisher and one subscriber, by the level of the node.

``groups.py`` measures Figures 7 to 9 on real brokers; what is drawn of them and which sentences they decide stands
here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from statistics import fmean
from typing import TYPE_CHECKING

from tieline.bench.papers.frame import drawing, verdicts
from tieline.bench.papers.frame.declaration import Claim, Experiment, Figure, Panel, Paper, Parameter, Tables
from tieline.bench.papers.frame.table import Table
from tieline.bench.papers.priority_qos import groups
from tieline.bench.papers.priority_qos.groups import GROUPS, TRAFFIC

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_PACED, _SATURATED = TRAFFIC
_BY_QOS = ("QoS 0", "QoS 1", "QoS 2", "QoS 0, header byte")
#: Lighter for those that connect first.
_GROUP_COLOURS = {str(number): ink for number, ink in enumerate(("#c6d8cf", "#8fb8a5", "#4d937a", "#0b6e4f"), start=1)}
_GROUP_NAMES = {str(number): f"group {number}" for number in range(1, GROUPS + 1)}
#: Why levels may not show, by how the four publish.
_WHY = {
    _PACED: "at 20 Hz four clients hardly ever meet in a broker: every message finds it asleep, and its delay is the "
    "time of waking up; it holds where they meet",
    _SATURATED: "what a broker reads from one socket in one go is on its way before it looks at the next: levels order "
    "what waits, and a burst that the kernels take at once hardly waits",
}
#: Why the order of connection may not show at the stock broker.
_STOCK_WHY = {
    _PACED: _WHY[_PACED],
    _SATURATED: "a broker that takes a little from each connection in turn makes all groups wait nearly alike; it "
    "would hold by a tenth if the burst of one connection were sent on as a whole before the next one is looked at",
}
#: What stands below the bars, where the case is called by something else than what the figure is about.
_SHOWN_AS = {
    "fig-8": {"equal levels": f"levels {', '.join(map(str, groups.PARTLY_EQUAL))}"},
    "fig-9": {"QoS 0": "with levels"},
}


def _panels(tables: Tables, *, cases: tuple[str, ...], shown_as: Mapping[str, str]) -> dict[str, Panel]:
    def panel(axis: Axes, traffic: str) -> None:
        table = tables["groups"].where(traffic=traffic, case=lambda cell: cell in cases)
        drawing.bars(axis, table, x="case", y="delay_us", series="group", colours=_GROUP_COLOURS, names=_GROUP_NAMES,
                     ticks=shown_as)  # fmt: skip
        drawing.labels(axis, y="mean delay, µs")

    return {traffic.capitalize(): partial(panel, traffic=traffic) for traffic in TRAFFIC}


def _means(table: Table, case: str, traffic: str) -> list[float]:
    """The mean over the groups, run by run."""
    chosen = table.where(case=case, traffic=traffic)
    return [fmean(chosen.where(run=run).column("delay_us")) for run in chosen.numbers("run")]


def _of_groups(table: Table, case: str, traffic: str) -> list[list[float]]:
    """For every group its delays, run by run."""
    return table.by("group", "delay_us", case=case, traffic=traffic)


def _series(values: list[list[float]]) -> str:
    return f"groups 1 to {GROUPS}: {', '.join(verdicts.figures(group) for group in values)} µs"


def _figure7_claims(tables: Tables) -> Iterator[Claim]:
    table = tables["groups"]
    means = [_means(table, f"QoS {qos}", _PACED) for qos in range(3)]
    yield Claim(
        where=f"Fig. 7, {_PACED}",
        paper_says="At QoS 0 a message takes less than 0.1 ms from end to end.",
        we_measure=verdicts.figures(means[0], "µs"),
        judgement=verdicts.below(100.0, means[0]),
        why="another machine and another language; the time is that of waking up two processes",
    )
    yield Claim(
        where=f"Fig. 7, {_PACED}",
        paper_says="At QoS 2 a message takes about 0.5 ms.",
        we_measure=verdicts.figures(means[2], "µs"),
        judgement=verdicts.near(500.0, means[2]),
        why="another machine and another language; four packets have to be answered before the message counts",
    )
    for traffic in TRAFFIC:
        means = [_means(table, f"QoS {qos}", traffic) for qos in range(3)]
        yield Claim(
            where=f"Fig. 7, {traffic}",
            paper_says="QoS 0 is faster than QoS 1, and QoS 1 than QoS 2.",
            we_measure=", ".join(f"{verdicts.figures(mean)}" for mean in means) + " µs",
            judgement=verdicts.ordered(means),
            why="at QoS 1 the subscriber has the message before it acknowledges it, so only the work of acknowledging, "
            "which falls between messages, is more than at QoS 0",
        )
    for traffic in TRAFFIC:
        for case in _BY_QOS:
            values = _of_groups(table, case, traffic)
            yield Claim(
                where=f"Fig. 7, {traffic}",
                paper_says=f"{case}: the higher the level, the shorter the delay.",
                we_measure=_series(values),
                judgement=verdicts.falls(values),
                why=_WHY[traffic],
            )


def _figure8_claims(tables: Tables) -> Iterator[Claim]:
    for traffic in TRAFFIC:
        values = _of_groups(tables["groups"], "equal levels", traffic)
        yield Claim(
            where=f"Fig. 8, {traffic}",
            paper_says="Group 4 comes before group 3, and both before groups 1 and 2, whose levels are equal.",
            we_measure=_series(values),
            judgement=verdicts.ordered([values[3], values[2], [*map(min, values[0], values[1])]]),
            why=_WHY[traffic],
        )
        yield Claim(
            where=f"Fig. 8, {traffic}",
            paper_says="Groups 1 and 2 (equal levels) are served in order of connection.",
            we_measure=_series(values[:2]).replace(f"1 to {GROUPS}", "1 and 2"),
            judgement=verdicts.ordered([values[0], values[1]]),
            why="who comes first among equals is decided by the system's order of events, and they share what is left "
            "in turns",
        )


def _figure9_claims(tables: Tables) -> Iterator[Claim]:
    table = tables["groups"]
    for traffic in TRAFFIC:
        ours = _of_groups(table, "QoS 0", traffic)
        stock = _of_groups(table, "mosquitto", traffic)
        plain = _of_groups(table, "without levels", traffic)
        lacking = "mosquitto is not installed"
        yield Claim(
            where=f"Fig. 9, {traffic}",
            paper_says="Stock mosquitto serves in order of connection: group 4 is slowest.",
            we_measure=_series(stock) if stock else lacking,
            judgement=verdicts.ordered([[*map(max, *stock[:3])], stock[3]]) if stock else verdicts.unmeasured(lacking),
            why=_STOCK_WHY[traffic],
        )
        yield Claim(
            where=f"Fig. 9, {traffic}",
            paper_says="With priority group 4 is served first.",
            we_measure=f"{_series(ours)}; without levels {_series(plain)}",
            judgement=verdicts.ordered([ours[3], [*map(min, *ours[:3])]]),
            why=_WHY[traffic],
        )
        both = [_means(table, case, traffic) for case in ("QoS 0", "mosquitto")]
        yield Claim(
            where=f"Fig. 9, {traffic}",
            paper_says="The mean delay is lower than stock mosquitto's.",
            we_measure=f"{verdicts.figures(both[0], 'µs')} and {verdicts.figures(both[1], 'µs')}" if stock else lacking,
            judgement=verdicts.ordered(both) if stock else verdicts.unmeasured(lacking),
            why="a broker in C wakes up faster; a scheduler changes who waits, and not for how long all wait together",
        )


def _figure(name: str, title: str, caption: str, cases: tuple[str, ...], width: float) -> Figure:
    return Figure(
        name=name,
        title=title,
        tables=("groups",),
        caption=f"{caption} Bars are medians of the runs, dots the runs.",
        panels=partial(_panels, cases=cases, shown_as=_SHOWN_AS.get(name, {})),
        claims={"fig-7": _figure7_claims, "fig-8": _figure8_claims, "fig-9": _figure9_claims}[name],
        width=width,
        height=3.8,
    )


PAPER = Paper(
    name="priority-qos",
    title="Priority-QoS, beside what we measure",
    citation="S.-J. Kim, C.-H. Oh: *Method for message processing according to priority in MQTT broker*, Journal of "
    "the KIICE 21(7), 2017, doi:10.6109/jkiice.2017.21.7.1320 (in Korean).",
    package=__name__,
    peers=("mosquitto",),
    parameters=(
        Parameter(name="groups", value=GROUPS, origin="paper", note="publishers connect first, then subscribers"),
        Parameter(name="payload", value=groups.PAYLOAD, unit="B", origin="paper"),
        Parameter(name="every", value=groups.EVERY_S * 1e3, unit="ms", origin="paper"),
        Parameter(name="levels", value="0, 1, 2, 3", origin="paper", note="written as 1 to 4 in a field of two bits"),
        Parameter(name="burst, saturated", value=groups.BURST, unit="messages", origin="ours"),
    ),
    experiments=(
        Experiment(
            name="groups",
            title="four groups by level",
            measure=groups.measure,
            repeatable=False,
            figures=(
                _figure("fig-7", "Figure 7: by quality of service", "Levels 0 to 3 for groups 1 to 4.", _BY_QOS, 6.0),
                _figure("fig-8", "Figure 8: two groups of one level", "Levels 0, 0, 1, 2.", ("equal levels",), 4.0),
                _figure(
                    "fig-9",
                    "Figure 9: beside the stock broker",
                    "QoS 0, with and without levels.",
                    ("mosquitto", "without levels", "QoS 0"),
                    5.5,
                ),
            ),
        ),
    ),
)
