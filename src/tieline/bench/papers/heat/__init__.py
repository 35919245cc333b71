"""The first priority paper: heat, time period and distribution frequency, on real brokers behind a blocked port.

``wanted_topics.py`` measures Figure 2, ``feedback.py`` Figures 3 to 5; what is drawn of them and which sentences they
decide stands here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tieline.bench.papers.frame import drawing, verdicts
from tieline.bench.papers.frame.declaration import Claim, Experiment, Figure, Panel, Paper, Parameter, Tables
from tieline.bench.papers.heat import feedback, wanted_topics
from tieline.bench.papers.heat.feedback import FREQUENCIES, LATE_S, PERIODS_S, SEVERAL
from tieline.bench.papers.heat.wanted_topics import COUNTS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_FEW, _MANY = COUNTS[0], COUNTS[-1]
_NAMES = {
    "mosquitto": "mosquitto",
    "fifo": "first in, first out",
    "taxonomy": "taxonomy",
    "heat": "heat: subscribers of now (ours)",
    "printed": "heat as printed, nobody subscribes again",
    "renewed": "heat as printed, everybody subscribes again",
}
_ROLES = {
    "mosquitto": "baseline",
    "fifo": "second",
    "taxonomy": "third",
    "heat": "ours",
    "printed": "fourth",
    "renewed": "paper",
}


def _figure2_panels(tables: Tables) -> dict[str, Panel]:
    def panel(axis: Axes) -> None:
        drawing.lines(axis, tables["delays"], x="messages", y="delay_ms", series="policy", colours=_ROLES, names=_NAMES)
        axis.set_xticks(COUNTS)
        axis.set_ylim(bottom=0)
        drawing.labels(axis, x="distributions in the burst", y="mean delay of the two most wanted topics, ms")

    return {"Fig. 2: delay of the most wanted topics": panel}


def _figure2_claims(tables: Tables) -> Iterator[Claim]:
    delays, losses = tables["delays"], tables["losses"]

    def at(policy: str, count: int) -> list[float]:
        return delays.where(policy=policy, messages=count).column("delay_ms")

    def growth(policy: str) -> list[float]:
        return [most - least for least, most in zip(at(policy, _FEW), at(policy, _MANY), strict=True)]

    span = f"from {_FEW} to {_MANY} messages"
    yield Claim(
        where="Fig. 2",
        paper_says="Without priority the delay of high-priority topics grows by multiples with the number of "
        "distributions; with heat priority it grows smoothly.",
        we_measure=f"{span} it grows by {verdicts.figures(growth('fifo'), 'ms')} in order of arrival, by "
        f"{verdicts.figures(growth('heat'), 'ms')} with heat",
        judgement=verdicts.ordered([growth("heat"), growth("fifo")], margin=0.5),
        why="heat would have to halve the growth; it does where topics differ in their subscribers and the port is "
        "blocked",
    )
    yield Claim(
        where="Fig. 2",
        paper_says="Heat priority is faster at higher levels than a taxonomy of classes.",
        we_measure=f"at {_MANY} messages: heat {verdicts.figures(at('heat', _MANY), 'ms')}, taxonomy "
        f"{verdicts.figures(at('taxonomy', _MANY), 'ms')}",
        judgement=verdicts.ordered([at("heat", _MANY), at("taxonomy", _MANY)]),
        why="it depends on what the operator puts into the highest class: with the two most wanted topics alone in it "
        "both orders are one",
    )
    yield Claim(
        where="Fig. 2, Algorithm 1",
        paper_says="Heat is the count of a topic's subscriptions in a period, set to zero at its end.",
        we_measure=f"at {_MANY} messages, where nobody subscribes again in the period: "
        f"{verdicts.figures(at('printed', _MANY), 'ms')}; where everybody does: "
        f"{verdicts.figures(at('renewed', _MANY), 'ms')}; in order of arrival: "
        f"{verdicts.figures(at('fifo', _MANY), 'ms')}",
        judgement=verdicts.ordered([at("printed", _MANY), at("fifo", _MANY)]),
        why="an MQTT client subscribes once, so a period later every count is zero and the order is that of arrival; "
        "it would hold if every subscriber asked again in each period, which is what counting the subscribers of now "
        "comes to",
    )
    yield Claim(
        where="Fig. 2",
        paper_says="Fewer packets are lost at lower levels than with the taxonomy.",
        we_measure="a queue for a quarter of the burst loses of the two lowest topics "
        f"{verdicts.percent(losses.where(policy='heat').column('lost_low'))} with heat, "
        f"{verdicts.percent(losses.where(policy='taxonomy').column('lost_low'))} with the taxonomy; of all "
        f"{verdicts.percent(losses.where(policy='heat').column('lost_all'))} and "
        f"{verdicts.percent(losses.where(policy='taxonomy').column('lost_all'))}",
        judgement=verdicts.ordered([losses.where(policy=policy).column("lost_low") for policy in ("heat", "taxonomy")]),
        why="what a full queue gives up is the lowest class of the taxonomy as a whole, but with heat there are as "
        "many ranks as topics",
    )


def _figure3_panels(tables: Tables) -> dict[str, Panel]:
    table = tables["feedback"].where(frequency=SEVERAL)

    def high(axis: Axes) -> None:
        drawing.lines(axis, table, x="period_s", y="high_ms", colours={"": "ours"})
        _periods(axis)
        drawing.labels(axis, x="time period, s", y="mean delay of high messages, ms")

    def late(axis: Axes) -> None:
        drawing.lines(axis, table, x="period_s", y="late_share", colours={"": "baseline"}, scale=100)
        _periods(axis)
        drawing.labels(axis, x="time period, s", y=f"low messages that took more than {LATE_S:g} s, %")

    return {"Fig. 3: high messages": high, "Fig. 3: low messages that time out": late}


def _figure3_claims(tables: Tables) -> Iterator[Claim]:
    table = tables["feedback"].where(frequency=SEVERAL)
    ends = [table.where(period_s=period) for period in (PERIODS_S[0], PERIODS_S[-1])]
    high, late = ([end.column(name) for end in ends] for name in ("high_ms", "late_share"))
    span = f"periods of {PERIODS_S[0]:g} and {PERIODS_S[-1]:g} s"
    yield Claim(
        where="Fig. 3",
        paper_says="The longer the time period, the better for high-priority messages.",
        we_measure=f"{span}: {verdicts.figures(high[0], 'ms')} and {verdicts.figures(high[1], 'ms')}",
        judgement=verdicts.ordered([high[1], high[0]]),
        why="low messages take their slots at the beginning of each period; a period beyond the burst changes nothing",
    )
    yield Claim(
        where="Fig. 3",
        paper_says="A period that is too long makes low-priority messages time out.",
        we_measure=f"{span}: {verdicts.percent(late[0])} and {verdicts.percent(late[1])} of the low messages took more "
        f"than {LATE_S:g} s",
        judgement=verdicts.ordered([late[0], late[1]]),
        why="what counts as timing out is ours; the paper gives no time",
    )


def _figure4_panels(tables: Tables) -> dict[str, Panel]:
    table = tables["feedback"]

    def panel(axis: Axes) -> None:
        colours = dict(zip(map(str, FREQUENCIES), ("second", "third", "ours"), strict=True))
        names = {str(count): f"frequency {count}" for count in FREQUENCIES}
        drawing.lines(axis, table, x="period_s", y="low_ratio", series="frequency", colours=colours, names=names)
        drawing.limit(axis, 1.0)
        _periods(axis)
        drawing.labels(axis, x="time period, s", y="delay of low messages : the same unblocked")

    return {"Figs. 4, 5: delay ratio of low messages": panel}


def _figure4_claims(tables: Tables) -> Iterator[Claim]:
    table = tables["feedback"]
    slow = table.by("period_s", "low_ratio", frequency=FREQUENCIES[0])
    yield Claim(
        where="Fig. 4",
        paper_says="Extending the period brings the low-priority delay ratio to a steady state.",
        we_measure=f"frequency {FREQUENCIES[0]}, the two longest periods: {verdicts.figures(slow[-2])} and "
        f"{verdicts.figures(slow[-1])} times the unblocked delay",
        judgement=verdicts.flat(slow[-2:]),
        why="the steady state is where a period is longer than the high messages last",
    )
    middle = PERIODS_S[len(PERIODS_S) // 2]
    by_frequency = [table.where(frequency=count, period_s=middle).column("low_ratio") for count in FREQUENCIES]
    yield Claim(
        where="Fig. 5",
        paper_says="A higher distribution frequency brings the delay ratio closer to 1.",
        we_measure=f"period {middle:g} s: "
        + ", ".join(
            f"{verdicts.figures(ratios)} at {count}" for count, ratios in zip(FREQUENCIES, by_frequency, strict=True)
        ),
        judgement=verdicts.falls(by_frequency),
        why="a frequency matters only while there are more low messages than slots",
    )
    nearest = min(table.values("frequency"), key=lambda count: min(table.where(frequency=count).column("low_ratio")))
    ratios = table.where(frequency=nearest, period_s=PERIODS_S[0]).column("low_ratio")
    yield Claim(
        where="Fig. 5",
        paper_says="The ratio can be brought as close to 1 as possible.",
        we_measure=f"nearest, at frequency {nearest}: {verdicts.figures(ratios)}",
        judgement=verdicts.below(1.25, ratios),
        why="what the kernel holds before the port stays ahead of every message: it would hold if the broker's queue "
        "were all there is",
    )


def _periods(axis: Axes) -> None:
    axis.set_xscale("log")
    axis.set_xticks(PERIODS_S, [f"{period:g}" for period in PERIODS_S])
    axis.minorticks_off()
    axis.set_ylim(bottom=0)


_PARAMETERS = (
    Parameter(name="blocked port", value=128, unit="kB/s", origin="ours", note="a subscriber that reads so fast"),
    Parameter(name="topics", value=len(wanted_topics.TOPICS), origin="ours", note="with eight down to one subscribers"),
    Parameter(name="message, Fig. 2", value=wanted_topics.BYTES, unit="B", origin="ours"),
    Parameter(name="message, Figs. 3 to 5", value=feedback.BYTES, unit="B", origin="ours"),
    Parameter(name="high burst", value=feedback.HIGH_S, unit="s", origin="ours", note="for so long it fills the port"),
    Parameter(name="low messages every", value=feedback.LOW_EVERY_S, unit="s", origin="ours"),
    Parameter(name="timed out after", value=LATE_S, unit="s", origin="ours", note="the paper gives no time"),
    Parameter(
        name="taxonomy", value="3 classes", origin="ours",
        note="both most wanted topics and one more in the highest, so that heat is not favoured",
    ),
)  # fmt: skip

PAPER = Paper(
    name="heat",
    title="Heat priority, beside what we measure",
    citation="D. Chen, D. Li, R. Guo: *Design of topic priority based on industrial publish-subscribe system*, "
    "Frontiers in Energy Research 10, 2022, doi:10.3389/fenrg.2022.979174.",
    package=__name__,
    parameters=_PARAMETERS,
    peers=("mosquitto",),
    experiments=(
        Experiment(
            name="wanted-topics",
            title="heat, taxonomy, order of arrival",
            measure=wanted_topics.measure,
            repeatable=False,
            figures=(
                Figure(
                    name="fig-2",
                    title="Figure 2: delay over the number of distributions",
                    tables=("delays", "losses"),
                    caption="A burst to a blocked port, topics in an order that the seed shuffles. Lines go through "
                    "the medians, each dot is a burst.",
                    panels=_figure2_panels,
                    claims=_figure2_claims,
                    width=8.0,
                    height=4.4,
                ),
            ),
        ),
        Experiment(
            name="feedback",
            title="time period and distribution frequency",
            measure=feedback.measure,
            repeatable=False,
            figures=(
                Figure(
                    name="fig-3",
                    title="Figure 3: what the length of the period does",
                    tables=("feedback",),
                    caption=f"{SEVERAL} low messages may go in each period; low messages arrive all the while.",
                    panels=_figure3_panels,
                    claims=_figure3_claims,
                    width=4.8,
                ),
                Figure(
                    name="fig-4-5",
                    title="Figures 4 and 5: delay ratio of low priority",
                    tables=("feedback",),
                    caption="1 (dashed) is a low message that nothing blocks.",
                    panels=_figure4_panels,
                    claims=_figure4_claims,
                ),
            ),
        ),
    ),
)
