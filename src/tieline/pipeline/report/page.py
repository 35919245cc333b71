"""The power-quality report as one HTML file: no requests, no scripts, readable in light, dark and print."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from importlib.resources import files
from typing import Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from tieline.pipeline.jobs.quality.clauses import YEAR_WEEKS
from tieline.pipeline.jobs.quality.incidents import OTHER, RAPID, TABLES
from tieline.pipeline.jobs.quality.quantities import QUANTITIES
from tieline.pipeline.jobs.quality.verdicts import FAIL, PASS, TOO_LITTLE
from tieline.pipeline.report import course, plane
from tieline.pipeline.report.figures import FILTERS, tag, week_bar, zone_bar
from tieline.pipeline.report.findings import Findings, Interval, all_of, natural
from tieline.version import __version__

_SYSTEMS: Final = {
    "interconnected": "with a synchronous connection to an interconnected system",
    "island": "island, no synchronous connection",
}
_TITLES: Final = {
    "dip": "Voltage dips",
    "swell": "Voltage swells",
    "interruption": "Interruptions",
    RAPID: "Rapid voltage changes, in percent of the nominal voltage",
}
_MARKS: Final = {PASS: ("pass", "✓"), FAIL: ("fail", "✗"), TOO_LITTLE: ("little", "?")}


def render(findings: Findings, network: str, generated: datetime) -> str:
    """The page. Names of nodes come from messages, so everything that is not ours is escaped."""
    pages = Environment(
        loader=PackageLoader("tieline.pipeline.report"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    pages.filters |= FILTERS
    style = files("tieline.pipeline.report").joinpath("templates", "quality.css").read_text("utf-8")
    counts = Counter(findings.node_verdict(node) for node in findings.nodes)
    return pages.get_template("quality.html.j2").render(
        findings=findings,
        limits=findings.limits,
        origin=findings.origin,
        nodes=findings.nodes,
        weeks=findings.weeks,
        clauses=findings.main_clauses(),
        edition=_edition(findings),
        quantities=QUANTITIES,
        lines=_lines(findings),
        courses=course.draw(findings),
        year_weeks=YEAR_WEEKS,
        left_out_totals=_left_out_totals(findings),
        network=network,
        generated=generated,
        version=__version__,
        style=Markup(style),  # noqa: S704  our own file
        system=_SYSTEMS[findings.limits.system],
        pace=_pace(findings),
        headline=headline(findings),
        tally={"pass": counts[PASS], "fail": counts[FAIL], "little": counts[TOO_LITTLE]},
        incidents_total=findings.incident_counts().total(),
        incident_tables=_incident_tables(findings),
        incident_rows=_incident_rows(findings),
        whole_plane=plane.whole(findings),
        close_plane=plane.close_up(findings),
        verdict_mark=_mark,
        worst_of=all_of,
        has_phases=any(each.phase for each in findings.judgements),
        quantity_verdict=_quantity_verdict(findings),
        remark=_remark(findings),
        week_bar=week_bar,
        zone_bar=zone_bar,
    )


def headline(findings: Findings) -> str:
    """The result in one or two sentences."""
    counts = Counter(findings.node_verdict(node) for node in findings.nodes)
    total = len(findings.nodes)
    nodes = "node" if total == 1 else "nodes"
    text = f"Of {total} {nodes}, {counts[PASS]} met every clause in every week that could be judged"
    text += f", {counts[FAIL]} did not" if counts[FAIL] else ""
    text += f", and for {counts[TOO_LITTLE]} there is too little data" if counts[TOO_LITTLE] else ""
    unjudged = sum(findings.node_weeks(node)[TOO_LITTLE] for node in findings.nodes)
    weeks = total * len(findings.weeks)
    note = f" {unjudged:,} of {weeks:,} node weeks have too little data for a verdict." if unjudged else ""
    return f"{text}.{note}"


@dataclass(frozen=True, slots=True)
class _IncidentTable:
    kind: str
    title: str
    durations: list[str]
    rows: list[tuple[str, list[int]]]
    total: int
    outside: int


def _incident_tables(findings: Findings) -> list[_IncidentTable]:
    """The standard's tables for the whole network, with their empty cells."""
    counts: Counter[tuple[str, str, str]] = Counter()
    for each in findings.incidents:
        counts[each.kind, each.depth, each.lasting] += each.incidents
    totals = findings.incident_counts()
    tables = []
    for table in TABLES:
        if table.kind == RAPID and not totals[RAPID]:
            continue  # that nobody told one is said where the other things are that were not assessed
        rows = [
            (depth.label, [counts[table.kind, depth.label, lasting.label] for lasting in table.durations])
            for depth in table.depths
        ]
        fitting = sum(sum(cells) for _, cells in rows)
        durations = [lasting.label for lasting in table.durations]
        total = totals[table.kind]
        tables.append(_IncidentTable(table.kind, _TITLES[table.kind], durations, rows, total, total - fitting))
    return tables


def _incident_rows(findings: Findings) -> list[tuple[str, str, list[int]]]:
    """Node, week and how many of each kind; only where something happened."""
    counts: Counter[tuple[str, str, str]] = Counter()
    for each in findings.incidents:
        counts[each.node, each.week, each.kind] += each.incidents
    kinds = [table.kind for table in TABLES] + [OTHER]
    places = sorted({(node, week) for node, week, _ in counts}, key=lambda place: (natural(place[0]), place[1]))
    return [(node, week, [counts[node, week, kind] for kind in kinds]) for node, week in places]


def _edition(findings: Findings) -> str:
    """Which rules decide, in a sentence."""
    limits = findings.limits
    if limits.edition == "1999":
        return "EN 50160:1999"
    if limits.system == "island":
        return "EN 50160:2010, systems without a synchronous connection"
    return "EN 50160:2010, systems with a synchronous connection"


def _lines(findings: Findings) -> Callable[[str], list[tuple[str, str]]]:
    """Nodes and their phases, for a quantity."""

    def lines(quantity: str) -> list[tuple[str, str]]:
        clause = findings.main_clauses(quantity)[0]
        return [(node, phase) for node in findings.nodes for phase in findings.phases(node, clause)]

    return lines


def _left_out_totals(findings: Findings) -> list[tuple[str, int, int, int, int]]:
    """Quantity, windows due, flagged, too few readings, no readings; of all nodes, phases and weeks together."""
    rows = []
    for quantity in dict.fromkeys(each.quantity for each in findings.clauses):
        name = next(each.name for each in findings.clauses if each.quantity == quantity)
        found = [each for each in findings.judgements if each.clause == name]
        due, measured = sum(each.windows for each in found), sum(each.measured for each in found)
        thin, flagged = sum(each.thin for each in found), sum(each.flagged for each in found)
        rows.append((QUANTITIES[quantity].title, due, flagged, thin, due - measured - thin))
    return rows


def _pace(findings: Findings) -> str | None:
    if findings.every_s is None:
        return None
    least, most = findings.every_s
    return f"{least:g} s" if least == most else f"{least:g} to {most:g} s"


def _mark(verdict: str) -> Markup:
    """A verdict as one sign, with its name for those who do not see it."""
    class_, sign = _MARKS[verdict]
    return tag("span", sign, class_=f"verdict {class_}", title=verdict, role="img", aria_label=verdict)


def _quantity_verdict(findings: Findings) -> Callable[[str, str, str, str], str]:
    def verdict(node: str, week: str, quantity: str, phase: str) -> str:
        rules = [each for each in findings.main_clauses(quantity) if findings.limits.is_rule(each)]
        return all_of(findings.judgement(node, week, clause, phase).verdict for clause in rules)

    return verdict


def _remark(findings: Findings) -> Callable[[Interval], str]:
    """Where an interval lies, and whether an incident explains it."""
    limits = findings.limits

    def remark(interval: Interval) -> str:
        normal, extreme = limits.normal(interval.quantity), limits.extreme(interval.quantity)
        if normal.low <= interval.value <= normal.high:
            place = "normal range"
        elif extreme.low <= interval.value <= extreme.high:
            place = "tolerated range"
        else:
            place = "outside both ranges"
        return f"{place}, flagged: an incident" if interval.is_flagged else place

    return remark
