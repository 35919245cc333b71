"""Every figure of a report as one CSV file: a row for each figure, with what it belongs to.

The columns are the same for all: section, node, phase, when (a week, or a time in UTC), what (a clause, a class of
incidents, a quantity), figure, value.  So a spreadsheet filters it, and a program pivots it.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from datetime import datetime
from typing import Final

from tieline.pipeline.report.findings import Findings

COLUMNS: Final = ("section", "node", "phase", "when", "what", "figure", "value")
_Row = tuple[str, str, str, str, str, str, object]
#: A spreadsheet would take text that begins so for a formula.
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")


def write(findings: Findings) -> str:
    """The file's text; numbers have all their digits, and what is not known is empty."""
    text = io.StringIO()
    out = csv.writer(text, lineterminator="\n")
    out.writerow(COLUMNS)
    for row in _rows(findings):
        out.writerow([_plain(value) for value in row])
    return text.getvalue()


def _plain(value: object) -> object:
    """Values as they are; names of nodes come from messages, so none becomes a formula."""
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, str) and value.startswith(_FORMULA):
        return f"'{value}"
    return value


def _rows(findings: Findings) -> Iterator[_Row]:
    yield from _verdicts(findings)
    for zones in findings.zones:
        for name in ("zone_1_s", "zone_2_s", "zone_3_s"):
            yield "zones", zones.node, "", zones.week, "", name, getattr(zones, name)
    for count in findings.incidents:
        what = f"{count.kind}: {count.depth}: {count.lasting}"
        yield "incident counts", count.node, "", count.week, what, "incidents", count.incidents
    for each in findings.listed:
        when = each.start.isoformat()
        yield "incidents", each.node, each.phases or "", when, each.kind, "percent", each.percent
        yield "incidents", each.node, each.phases or "", when, each.kind, "duration_s", each.duration
    for span in findings.left_out:
        what, begin = f"{span.quantity or 'all'}: {span.why}", span.begin.isoformat()
        yield "left out", span.node, span.phase, begin, what, "windows", span.windows
        yield "left out", span.node, span.phase, begin, what, "end", span.end
    for point in findings.course:
        for name in ("low", "mean", "high"):
            yield "voltage", point.node, point.phase, point.start.isoformat(), "V", name, getattr(point, name)
    for worst in findings.worst:
        for name in ("value", "percent"):
            yield "worst", worst.node, worst.phase, worst.start.isoformat(), worst.quantity, name, getattr(worst, name)
    for cell in findings.plane:
        yield "plane", "", "", "", f"{cell.volt_cell}/{cell.hertz_cell}", "readings", cell.readings


def _verdicts(findings: Findings) -> Iterator[_Row]:
    """Verdicts of nodes, years, and weeks with their counts; and the limits that they were held against."""
    limits = findings.limits
    for clause in (*findings.clauses, *findings.year_clauses):
        for figure, value in (*limits.range(clause)._asdict().items(), ("share", clause.permille / 1000)):
            yield "limits", "", "", clause.period, clause.name, figure, value
        yield "limits", "", "", clause.period, clause.name, "edition", clause.edition
        yield "limits", "", "", clause.period, clause.name, "is a rule", limits.is_rule(clause)
    for node in findings.nodes:
        yield "nodes", node, "", "", "", "verdict", findings.node_verdict(node)
        for clause in findings.year_clauses:
            year = findings.year(node, clause)
            for name in ("weeks", "windows", "judged", "outside", "share", "coverage", "verdict"):
                yield "years", node, "", f"{year.first}/{year.last}", clause.name, name, getattr(year, name)
    for each in findings.judgements:
        for name, value in zip(each._fields[4:], each[4:], strict=True):
            yield "weeks", each.node, each.phase, each.week, each.clause, name, value
