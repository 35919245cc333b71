"""Figures 4, 6 and 7: receiving time, energy and success over the number of events, for every protocol."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from statistics import median
from typing import TYPE_CHECKING, Final

from tieline.bench.papers.frame import drawing, verdicts
from tieline.bench.papers.frame.declaration import Claim, Panel, Request, Sheet, Tables
from tieline.bench.papers.frame.table import Cell, Table
from tieline.bench.papers.rpcp.runs import NAMES, OURS, PRINTED, RIVALS, ROLES, Job, carry_out, loaded
from tieline.sim.sensors.outcome import Outcome

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PROTOCOLS: Final = (
    PRINTED, "rpcp-literal", OURS, "rpcp-peer", "psm", "cetp", "cetp-rotating", "cetp-carry", "flooding", "central",
)  # fmt: skip
#: Too slow, too dear or too lossy for the axis of the others.
_ASIDE: Final = ("flooding", "cetp-carry")
#: Where the paper sees PSM's knee.
KNEE: Final = 800.0
MOST: Final = 1200.0

COLUMNS: Final = {
    "protocol": "protocol",
    "events": "events in 100 s",
    "seed": "seed",
    "success": "share of wanted deliveries that took place",
    "delay_s": "mean delay, s",
    "delay_p95_s": "95 % of delays below, s",
    "active_j": "energy without idling, J",
    "data_j": "energy for events, J",
    "control_j": "energy for control frames, J",
    "idle_j": "energy for idling, J",
    "frames": "frames on the air",
    "dropped": "frames dropped",
    "wanted": "deliveries wanted",
}


def row(job: Job, found: Outcome, first: Sequence[Cell]) -> tuple[Cell, ...]:
    """The cells of one run, behind those that say which one."""
    energy = found.energy_j
    return (
        *first,
        job.seed,
        found.success,
        None if math.isnan(found.delay_s) else found.delay_s,
        None if math.isnan(found.delay_p95_s) else found.delay_p95_s,
        found.active_j,
        energy["send_data"] + energy["receive_data"] + energy["match"],
        energy["send_control"] + energy["receive_control"],
        energy["idle"],
        found.frames,
        sum(count for name, count in found.counters.items() if name.startswith("dropped")),
        found.wanted,
    )


def measure(request: Request) -> list[Table]:
    """Every protocol under every load, in the same worlds."""
    loads = request.choose(quick=(100, 400, 800, 1200), full=(50, 100, 200, 400, 600, 800, 1000, 1200, 1600))
    jobs = [
        Job(protocol, loaded(events), seed)
        for events in loads
        for seed in request.seeds(quick=3, full=5)
        for protocol in PROTOCOLS
    ]
    rows = [row(job, found, (job.protocol, job.parameters.events_per_100s)) for job, found in carry_out(jobs, request)]
    return [Table("sweep", COLUMNS, rows)]


def _over_load(table: Table, column: str, y: str, *, scale: float = 1.0, without: Sequence[str] = _ASIDE) -> Panel:
    chosen = table.where(protocol=lambda name: name not in without)

    def panel(axis: Axes) -> None:
        drawing.lines(axis, chosen, x="events", y=column, series="protocol", colours=ROLES, names=NAMES, scale=scale)
        axis.set_ylim(bottom=0)
        drawing.labels(axis, x="events in 100 s", y=y)

    return panel


def delay_panels(tables: Tables) -> dict[str, Panel]:
    """Figure 4, all of it and its lower part."""
    sweep = tables["sweep"]
    close = _over_load(sweep, "delay_s", "mean delay from event to sink, s")

    def low(axis: Axes) -> None:
        close(axis)
        axis.set_ylim(0, 1.0)

    return {"Fig. 4: receiving time": close, "The same below one second": low}


def energy_panels(tables: Tables) -> dict[str, Panel]:
    """Figure 6, and what the energy was spent for at the paper's load."""
    sweep = tables["sweep"]
    at_knee = sweep.where(events=KNEE, protocol=lambda name: name not in _ASIDE)

    def parts(axis: Axes) -> None:
        names = at_knee.words("protocol")
        below = [0.0] * len(names)
        for column, label, ink in (
            ("data_j", "events", drawing.COLOURS["ours"]),
            ("control_j", "control", drawing.COLOURS["second"]),
            ("idle_j", "idle (fitted)", "#d5d8dc"),
        ):
            heights = [at_knee.median(column, protocol=name) for name in names]
            axis.barh(range(len(names)), heights, left=below, color=ink, label=label)
            below = [one + other for one, other in zip(below, heights, strict=True)]
        axis.set_yticks(range(len(names)), [NAMES[name] for name in names], fontsize=7.5)
        axis.invert_yaxis()
        drawing.labels(axis, x=f"J of all sensors, {KNEE:g} events")

    return {
        "Fig. 6: energy for frames and matching": _over_load(sweep, "active_j", "J of all sensors, without idling"),
        "What it is spent for": parts,
    }


def success_panels(tables: Tables) -> dict[str, Panel]:
    """Figure 7, with the paper's limit."""
    panel = _over_load(tables["sweep"], "success", "wanted deliveries that took place, %", scale=100, without=())

    def limited(axis: Axes) -> None:
        panel(axis)
        drawing.limit(axis, 80.0)
        axis.set_ylim(0, 105)

    return {"Fig. 7: success rate": limited}


def losses_sheet(tables: Tables) -> Sheet:
    """Every protocol at the highest load of the paper."""
    table = tables["sweep"].where(events=MOST)
    lines = []
    for name in table.words("protocol"):
        chosen = table.where(protocol=name)
        lines.append([
            NAMES[name], _middle(chosen, "success", 100.0),
            *(_middle(chosen, column) for column in ("delay_s", "delay_p95_s", "active_j", "frames", "dropped")),
        ])  # fmt: skip
    headings = ("protocol", "success, %", "mean delay, s", "95 % below, s", "energy, J", "frames", "dropped")
    return Sheet(headings=headings, lines=lines)


def _middle(table: Table, column: str, scale: float = 1.0) -> str:
    """The median over the seeds; nothing that arrives has no delay."""
    values = table.column(column)
    if not values:
        return "n.a."
    middle = scale * median(values)
    return f"{middle:,.0f}" if middle >= 100 else f"{middle:.3g}"


def _at(table: Table, name: str, events: float, column: str) -> list[float]:
    return table.where(protocol=name, events=events).column(column)


def _ratio(table: Table, one: tuple[str, float], other: tuple[str, float], column: str) -> list[float]:
    return [a / b for a, b in zip(_at(table, *one, column), _at(table, *other, column), strict=True)]


def delay_claims(tables: Tables) -> Iterator[Claim]:
    """The sentences about Figure 4."""
    sweep = tables["sweep"]
    loads = sweep.numbers("events")
    least = loads[0]
    growth = {name: _ratio(sweep, (name, MOST), (name, least), "delay_s") for name in (PRINTED, OURS, "psm")}
    yield Claim(
        where="Fig. 4",
        paper_says="The receiving time of RPCP increases slowly, that of PSM most of all.",
        we_measure=f"from {least:g} to {MOST:g} events: RPCP as printed {verdicts.figures(growth[PRINTED], 'times')}, "
        f"PSM {verdicts.figures(growth['psm'], 'times')}",
        judgement=verdicts.ordered([growth[PRINTED], growth["psm"]]),
        why="as printed every event goes to every head, and the middle of the backbone fills its queues before PSM "
        "does",
    )
    yield Claim(
        where="Fig. 4",
        paper_says="(ours) The same, if heads send events down only where something below wants them.",
        we_measure=f"{verdicts.figures(growth[OURS], 'times')}",
        judgement=verdicts.ordered([growth[OURS], growth["psm"]]),
        why="it would not where all sinks want everything",
    )
    apart = [
        max(ratio, 1 / ratio) for load in loads if load <= MOST
        for ratio in _ratio(sweep, ("cetp", load), (PRINTED, load), "delay_s")
    ]  # fmt: skip
    yield Claim(
        where="Fig. 4",
        paper_says="The average receiving time of CETP is close to RPCP's.",
        we_measure=f"apart by a factor of {verdicts.figures(apart)}",
        judgement=verdicts.below(1.25, apart),
        why="every hop between coordinators is an offer, a request and then the event, each over several relays; it "
        "would hold if an offer carried the event, which is no negotiation",
    )
    below = [
        ratio for load in loads if load < KNEE for ratio in _ratio(sweep, ("psm", load), (PRINTED, load), "delay_s")
    ]
    yield Claim(
        where="Fig. 4",
        paper_says=f"Below {KNEE:g} events PSM is close to RPCP or even better.",
        we_measure=f"PSM's delay is {verdicts.figures(below, 'times')} that of RPCP as printed",
        judgement=verdicts.below(1.25, below),
        why="it holds for RPCP over relays; heads that reach each other in one hop are nearer than PSM's chain of "
        "sensors",
    )
    sharp = _ratio(sweep, ("psm", MOST), ("psm", KNEE), "delay_s")
    yield Claim(
        where="Fig. 4",
        paper_says=f"Above {KNEE:g} events PSM's receiving time increases sharply.",
        we_measure=f"from {KNEE:g} to {MOST:g} events it is multiplied by {verdicts.figures(sharp)}",
        judgement=verdicts.above(MOST / KNEE, sharp),
        why="sharply means here: by more than the load. Where the knee lies hangs on the airtime of a frame, which is "
        "fitted, so that its place is no evidence: see the figure of airtimes",
    )


def energy_claims(tables: Tables) -> Iterator[Claim]:
    """The sentences about Figure 6."""
    sweep = tables["sweep"]
    loads = [load for load in sweep.numbers("events") if load <= MOST]
    three = (PRINTED, *RIVALS)
    yield Claim(
        where="Fig. 6",
        paper_says="All three consume more with more events.",
        we_measure=", ".join(
            f"{NAMES[name]} {sweep.median('active_j', protocol=name, events=loads[0]):.2g} to "
            f"{sweep.median('active_j', protocol=name, events=MOST):.2g} J"
            for name in three
        ),
        judgement=verdicts.always(sum(_grows(sweep, name, loads) for name in three), len(three)),
        why="a protocol whose channel is full cannot spend more",
    )
    for less, more, says, why in (
        (PRINTED, "psm", "RPCP consumes less than PSM.",
         "as printed it sends every event to every head; PSM sends it to those who want the topic"),
        (PRINTED, "cetp", "RPCP consumes less than CETP.", "offers and requests cost little beside events"),
        ("psm", "cetp", "CETP consumes most, because every message is negotiated several times.",
         "PSM's floods cost most while events are few; CETP's negotiations cost a quarter of an event each"),
        (OURS, "psm", "(ours) Down on a match, RPCP consumes less than PSM.", "with more topics PSM gets cheaper"),
    ):  # fmt: skip
        ratios = [ratio for load in loads for ratio in _ratio(sweep, (less, load), (more, load), "active_j")]
        yield Claim(
            where="Fig. 6",
            paper_says=says,
            we_measure=f"{verdicts.figures(ratios, 'times')} as much, over {len(loads)} loads",
            judgement=verdicts.below(1.0, ratios),
            why=why,
        )
    saved = [1 - ratio for ratio in _ratio(sweep, (OURS, KNEE), (PRINTED, KNEE), "active_j")]
    yield Claim(
        where="Fig. 6",
        paper_says="(ours) Sending down only on a match saves half of what the printed algorithm spends.",
        we_measure=f"{verdicts.percent(saved)} at {KNEE:g} events",
        judgement=verdicts.above(0.5, saved),
        why="it hangs on how many sinks want an event",
    )


def _grows(table: Table, name: str, loads: Sequence[float]) -> bool:
    return verdicts.rises([_at(table, name, load, "active_j") for load in loads]).verdict == "reproduced"


def success_claims(tables: Tables) -> Iterator[Claim]:
    """The sentences about Figure 7."""
    sweep = tables["sweep"].where(events=lambda cell: isinstance(cell, int | float) and cell <= MOST)
    for name, says, why in (
        (
            PRINTED,
            "The success rate of RPCP remains above 80 %.",
            "events for all heads fill the queues in the middle of the tree; it holds until they are full",
        ),
        (OURS, "(ours) Down on a match the success rate remains above 80 %.", "it would not at a multiple of the load"),
    ):
        values = sweep.where(protocol=name).column("success")
        yield Claim(
            where="Fig. 7",
            paper_says=says,
            we_measure=f"{verdicts.percent(values)}; at {MOST:g} events "
            f"{verdicts.percent(_at(sweep, name, MOST, 'success'))}",
            judgement=verdicts.above(0.8, values),
            why=why,
        )
    for rival in RIVALS:
        yield Claim(
            where="Fig. 7",
            paper_says=f"RPCP declines more slowly than {NAMES[rival]}.",
            we_measure=f"at {MOST:g} events RPCP as printed {verdicts.percent(_at(sweep, PRINTED, MOST, 'success'))}, "
            f"ours {verdicts.percent(_at(sweep, OURS, MOST, 'success'))}, {NAMES[rival]} "
            f"{verdicts.percent(_at(sweep, rival, MOST, 'success'))}",
            judgement=verdicts.ordered([_at(sweep, rival, MOST, "success"), _at(sweep, PRINTED, MOST, "success")]),
            why="it does if events go down only on a match",
        )
