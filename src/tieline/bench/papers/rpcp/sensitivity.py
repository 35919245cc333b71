"""What the results hang on: the two fitted parameters, how fine topics are, and the size of the network."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from tieline.bench.papers.frame import drawing, verdicts
from tieline.bench.papers.frame.declaration import Claim, Panel, Request, Tables
from tieline.bench.papers.frame.table import Table
from tieline.bench.papers.rpcp.lifetime import BATTERY_J, DEFINITIONS, GAINS, LONGEST_S
from tieline.bench.papers.rpcp.runs import NAMES, OURS, PRINTED, ROLES, Job, carry_out, loaded
from tieline.sim.sensors.parameters import scaled

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_FOUR: Final = (PRINTED, OURS, "psm", "cetp")
_LOAD: Final = 800.0
#: The one in the middle is the fitted one.
_POWERS_MW: Final = (0.25, 0.5, 1.0)


def measure_fitted(request: Request) -> list[Table]:
    """Lifetimes over idle power, delays over airtime, and energy over the number of topics."""
    idle = [
        # as long as a sensor lives that only idles
        Job(name, loaded(_LOAD, idle_mw=power, battery_j=BATTERY_J), seed, LONGEST_S * 0.5 / power)
        for power in _POWERS_MW for seed in request.seeds(quick=1, full=3, note="idle power") for name in _FOUR
    ]  # fmt: skip
    seeds = request.seeds(quick=2, full=3, note="airtime, topics")
    lives = [
        (job.protocol, job.parameters.idle_mw, job.parameters.battery_j, job.seed,
         *(getattr(found.lifetime, definition) for definition in DEFINITIONS))
        for job, found in carry_out(idle, request, note="idle power")
    ]  # fmt: skip
    loads = request.choose(quick=(400, 800, 1200), full=(200, 400, 600, 800, 1000, 1200))
    airtimes = [
        Job(name, loaded(events, frame_ms=airtime), seed)
        for airtime in (4.0, 8.0, 12.0) for events in loads for seed in seeds for name in (PRINTED, OURS, "psm")
    ]  # fmt: skip
    delays = [
        (job.protocol, job.parameters.frame_ms, job.parameters.events_per_100s, job.seed, found.success,
         None if math.isnan(found.delay_s) else found.delay_s)
        for job, found in carry_out(airtimes, request, note="airtime")
    ]  # fmt: skip
    counts = request.choose(quick=(2, 10, 40), full=(2, 5, 10, 20, 40))
    topics = [Job(name, loaded(_LOAD, topics=count), seed) for count in counts for seed in seeds for name in _FOUR]
    energy = [
        (job.protocol, job.parameters.topics, job.seed, found.active_j, found.success)
        for job, found in carry_out(topics, request, note="topics")
    ]
    protocol, seed = {"protocol": "protocol"}, {"seed": "seed"}
    return [
        Table(
            "idle",
            protocol | {"idle_mw": "power of an idle sensor, mW", "battery_j": "battery of a sensor, J"} | seed
            | {"first_death": "first death, s", "tenth_dead": "a tenth dead, s", "half_dead": "half dead, s",
               "loss": "first 20 s that lose more than half, s"},
            lives,
        ),
        Table(
            "airtime",
            protocol | {"frame_ms": "airtime of an event, ms", "events": "events in 100 s"} | seed
            | {"success": "share of wanted deliveries that took place", "delay_s": "mean delay, s"},
            delays,
        ),
        Table(
            "topics",
            protocol | {"topics": "topics"} | seed
            | {"active_j": "energy without idling, J", "success": "share of wanted deliveries that took place"},
            energy,
        ),
    ]  # fmt: skip


def fitted_panels(tables: Tables) -> dict[str, Panel]:
    """Gains over idle power, and PSM's knee over airtime."""
    idle, airtime = tables["idle"], tables["airtime"]

    def gain(axis: Axes) -> None:
        rows = [
            (f"{'RPCP as printed' if whose == PRINTED else 'ours'} over {NAMES[rival]}", power, 0, one / other - 1)
            for whose in (PRINTED, OURS)
            for rival in GAINS
            for power in idle.numbers("idle_mw")
            for one, other in zip(
                idle.where(protocol=whose, idle_mw=power).column("tenth_dead"),
                idle.where(protocol=rival, idle_mw=power).column("tenth_dead"),
                strict=True,
            )
        ]
        table = Table("gains", {"pair": "", "idle_mw": "", "seed": "", "gain": ""}, rows)
        drawing.lines(axis, table, x="idle_mw", y="gain", series="pair", scale=100, colours={
            "RPCP as printed over PSM": "paper", "ours over PSM": "ours", "RPCP as printed over CETP": "third",
            "ours over CETP": "#7fb89e"})  # fmt: skip
        axis.axhline(0, color="#444444", linewidth=0.8)
        drawing.labels(axis, x=f"power of an idle sensor, mW (fitted: 0.5); batteries of {BATTERY_J:g} J",
                       y="longer until a tenth is dead, %")  # fmt: skip

    def knee(axis: Axes) -> None:
        chosen = airtime.where(protocol="psm")
        rows = [(f"PSM, {row[1]:g} ms", *row[2:]) for row in chosen.rows]
        chosen = airtime.where(protocol=OURS)
        rows += [(f"ours, {row[1]:g} ms", *row[2:]) for row in chosen.rows]
        table = Table("knee", {"series": "", "events": "", "seed": "", "success": "", "delay_s": ""}, rows)
        inks = ("#e3b79f", "#b5532c", "#6b2d13", "#a5d2bf", "#0b6e4f", "#04382a")
        colours = dict(zip(table.words("series"), inks, strict=False))
        drawing.lines(axis, table, x="events", y="delay_s", series="series", colours=colours)
        axis.set_yscale("log")
        axis.set_yticks((0.1, 0.3, 1, 3, 10), ("0.1", "0.3", "1", "3", "10"))
        axis.minorticks_off()
        drawing.labels(axis, x="events in 100 s", y="mean delay, s (8 ms is fitted)")

    return {"Gains hang on idle power": gain, "PSM's knee hangs on airtime": knee}


def topics_panels(tables: Tables) -> dict[str, Panel]:
    """Energy over the number of topics."""

    def panel(axis: Axes) -> None:
        drawing.lines(axis, tables["topics"], x="topics", y="active_j", series="protocol", colours=ROLES, names=NAMES)
        axis.set_ylim(bottom=0)
        drawing.labels(axis, x=f"topics, {_LOAD:g} events", y="J of all sensors, without idling")

    return {"The finer the topics, the less content routing saves": panel}


def topics_claims(tables: Tables) -> Iterator[Claim]:
    """What finer topics change."""
    table = tables["topics"]
    ratios = [
        [one / other for one, other in zip(
            table.where(protocol=PRINTED, topics=count).column("active_j"),
            table.where(protocol="psm", topics=count).column("active_j"), strict=True)]
        for count in table.numbers("topics")
    ]  # fmt: skip
    yield Claim(
        where="Fig. 6",
        paper_says="The topic-based PSM forwards what nobody needs.",
        we_measure="energy of RPCP as printed over PSM's: "
        + ", ".join(
            f"{verdicts.figures(ratio)} with {count:g} topics"
            for count, ratio in zip(table.numbers("topics"), ratios, strict=True)
        ),
        judgement=verdicts.rises(ratios),
        why="with few topics PSM sends nearly everything to everybody, with many it knows as much as content would say",
    )


def measure_size(request: Request) -> list[Table]:
    """Networks of the same density, with more sensors and sinks."""
    sizes = request.choose(quick=(200, 600), full=(200, 1000, 3000), long=(200, 1000, 3000, 10_000))
    jobs = [
        Job(name, replace(scaled(loaded(200), nodes), sinks=max(10, nodes // 100)), seed)
        for nodes in sizes
        for seed in request.seeds(quick=1, full=3)
        for name in (PRINTED, OURS, "rpcp-peer", "psm")
    ]
    rows = [
        (job.protocol, job.parameters.nodes, job.seed, found.success, found.delay_s,
         1000 * found.active_j / max(1, found.events), found.frames / max(1, found.events),
         max(found.tables.values(), default=0))
        for job, found in carry_out(jobs, request)
    ]  # fmt: skip
    columns = {
        "protocol": "protocol", "nodes": "sensors", "seed": "seed",
        "success": "share of wanted deliveries that took place", "delay_s": "mean delay, s",
        "event_mj": "energy without idling for an event, mJ", "frames": "frames for an event",
        "table": "entries of the largest table",
    }  # fmt: skip
    return [Table("size", columns, rows)]


def size_panels(tables: Tables) -> dict[str, Panel]:
    """Energy of an event, and what arrives."""

    def panel_of(column: str, y: str, scale: float = 1.0, *, is_logarithmic: bool = False) -> Panel:
        def panel(axis: Axes) -> None:
            drawing.lines(
                axis, tables["size"], x="nodes", y=column, series="protocol", colours=ROLES, names=NAMES, scale=scale
            )
            axis.set_xscale("log")
            ticks = tables["size"].numbers("nodes")
            axis.set_xticks(ticks, [f"{tick:,.0f}" for tick in ticks])
            axis.minorticks_off()
            if is_logarithmic:
                axis.set_yscale("log")
                axis.set_yticks((1, 3, 10, 30, 100), ("1", "3", "10", "30", "100"))
                axis.yaxis.minorticks_off()
            else:
                # marks at 100 % are whole, too
                axis.set_ylim(0, 105)
            drawing.labels(axis, x="sensors, at the same density", y=y)

        return panel

    return {
        "Energy of one event": panel_of("event_mj", "mJ of all sensors, without idling", is_logarithmic=True),
        "Success": panel_of("success", "wanted deliveries that took place, %", 100),
    }
