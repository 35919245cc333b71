"""The voltage over time as pictures: for each node a band of its 10-minute means, their mean, and the limits."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Final, NamedTuple

from markupsafe import Markup

from tieline.pipeline.jobs.quality.quantities import PHASES, VOLTAGE
from tieline.pipeline.report.figures import picture, tag
from tieline.pipeline.report.findings import Course, Findings

_WIDTH: Final = 520.0
_HEIGHT: Final = 150.0
_LEFT: Final = 42.0
_RIGHT: Final = 8.0
_TOP: Final = 8.0
_BOTTOM: Final = 22.0
#: Ticks of days that fit side by side.
_DAYS: Final = 8


class Drawn(NamedTuple):
    """The picture of the voltage at one node over the period."""

    node: str
    shape: Markup


class _Scale:
    """From times and volts to places in the picture."""

    def __init__(self, findings: Findings) -> None:
        self.start = min(each.start for each in findings.course)
        self.end = max(each.start for each in findings.course) + timedelta(seconds=findings.course_s)
        limits = [*findings.limits.extreme(VOLTAGE), *findings.limits.normal(VOLTAGE)]
        low = min(*limits, *(each.low for each in findings.course))
        high = max(*limits, *(each.high for each in findings.course))
        air = (high - low) * 0.06
        self.low, self.high = low - air, high + air

    def x(self, when: datetime) -> float:
        part = (when - self.start) / (self.end - self.start)
        return _LEFT + part * (_WIDTH - _LEFT - _RIGHT)

    def y(self, volts: float) -> float:
        part = (volts - self.low) / (self.high - self.low)
        return _HEIGHT - _BOTTOM - part * (_HEIGHT - _TOP - _BOTTOM)


def draw(findings: Findings) -> list[Drawn]:
    """A picture for each node whose course is known; all have the same scale, so that they can be compared."""
    if not findings.course:
        return []
    scale = _Scale(findings)
    of_node: dict[str, list[Course]] = defaultdict(list)
    for each in findings.course:
        of_node[each.node].append(each)
    return [Drawn(node, _picture(findings, node, rows, scale)) for node, rows in of_node.items()]


def _picture(findings: Findings, node: str, rows: Sequence[Course], scale: _Scale) -> Markup:
    of_phase: dict[str, list[Course]] = defaultdict(list)
    for each in rows:
        of_phase[each.phase].append(each)
    parts = [*_frame(findings, scale)]
    for phase, some in of_phase.items():
        class_ = f"course-{PHASES.index(phase)}" if phase in PHASES else "course-0"
        for piece in _pieces(some, timedelta(seconds=findings.course_s)):
            parts += _band(piece, scale, timedelta(seconds=findings.course_s), class_)
    low, high = min(each.low for each in rows), max(each.high for each in rows)
    label = f"Voltage of {node} over time: 10-minute means from {low:.1f} to {high:.1f} V"
    return picture(_WIDTH, _HEIGHT, label, parts, class_="course")


def _pieces(rows: Sequence[Course], step: timedelta) -> list[list[Course]]:
    """Where nothing was measured the line is broken."""
    found = [[rows[0]]]
    for before, after in pairwise(rows):
        if after.start - before.start > step:
            found.append([])
        found[-1].append(after)
    return found


def _band(rows: Sequence[Course], scale: _Scale, step: timedelta, class_: str) -> list[Markup]:
    """From the least to the greatest, and the mean as steps that are as wide as what they stand for."""
    ends = [(scale.x(each.start), scale.x(each.start + step), each) for each in rows]
    upper = "".join(f"L{left:.1f} {scale.y(each.high):.1f}H{right:.1f}" for left, right, each in ends)
    lower = "".join(f"L{right:.1f} {scale.y(each.low):.1f}H{left:.1f}" for left, right, each in reversed(ends))
    mean = "".join(f"L{left:.1f} {scale.y(each.mean):.1f}H{right:.1f}" for left, right, each in ends)
    return [
        tag("path", d=f"M{upper[1:]}{lower}z", class_=f"{class_} band"),
        tag("path", d=f"M{mean[1:]}", class_=f"{class_} mean"),
    ]


def _frame(findings: Findings, scale: _Scale) -> list[Markup]:
    """Limits with their values, and days."""
    left, right, floor = _LEFT, _WIDTH - _RIGHT, _HEIGHT - _BOTTOM
    parts = [tag("rect", x=left, y=_TOP, width=right - left, height=floor - _TOP, class_="frame")]
    wide, normal = findings.limits.extreme(VOLTAGE), findings.limits.normal(VOLTAGE)
    labelled: list[float] = []
    for volts, class_ in (
        *((each, "limit") for each in normal),
        *((each, "limit wide") for each in wide if each not in normal),
        (findings.limits.nominal_v, "nominal"),
    ):
        y = scale.y(volts)
        parts.append(tag("line", x1=left, x2=right, y1=y, y2=y, class_=class_))
        if all(abs(y - other) > 10 for other in labelled):
            labelled.append(y)
            parts.append(tag("text", f"{volts:g}", x=left - 5, y=y + 3.5, class_="tick", text_anchor="end"))
    return [*parts, *_days(scale, floor)]


def _days(scale: _Scale, floor: float) -> list[Markup]:
    days = max(1, round((scale.end - scale.start) / timedelta(days=1)))
    step = timedelta(days=-(-days // _DAYS))
    first = datetime.combine(scale.start.astimezone(UTC).date(), datetime.min.time(), UTC)
    parts = []
    while first <= scale.end:
        if first >= scale.start:
            x = scale.x(first)
            parts.append(tag("line", x1=x, x2=x, y1=floor, y2=floor + 4, class_="notch"))
            if x < _WIDTH - 30:
                parts.append(tag("text", f"{first:%d %b}", x=x + 2, y=floor + 14, class_="tick"))
        first += step
    return parts
