"""Bars of a week or a period: how much was in which state, side by side in one strip."""

from __future__ import annotations

from typing import Final

from markupsafe import Markup

from tieline.pipeline.jobs.quality.clauses import Quantity
from tieline.pipeline.report.findings import Findings
from tieline.pipeline.report.svg import picture, tag

_WIDTH: Final = 200.0
_HEIGHT: Final = 14.0
#: A part that exists is seen, however small.
_LEAST: Final = 1.5


def week_bar(findings: Findings, node: str, week: str, quantity: Quantity) -> Markup:
    """A week's windows: normal, tolerated, not tolerated, flagged and left out, not measured; a tick at 95 %."""
    normal, extreme = (findings.judgement(node, week, clause) for clause in findings.limits.clauses(quantity))
    parts = (
        ("zone-1", normal.judged - normal.outside, "normal"),
        ("zone-2", normal.outside - extreme.outside, "tolerated"),
        ("zone-3", extreme.outside, "not tolerated"),
        ("flagged", normal.measured - normal.judged, "flagged"),
        ("missing", normal.windows - normal.measured, "not measured"),
    )
    label = f"{quantity}, {node}, {week}: " + ", ".join(
        f"{part / normal.windows:.1%} {name}" for _, part, name in parts
    )
    tick = tag("line", x1=_WIDTH * 0.95, x2=_WIDTH * 0.95, y1=0, y2=_HEIGHT, class_="goal")
    return _strip([(class_, float(part)) for class_, part, _ in parts], label, [tick])


def zone_bar(seconds: tuple[float, float, float], name: str) -> Markup:
    """Time in the three zones."""
    total = sum(seconds) or 1.0
    label = f"{name}: " + ", ".join(f"{part / total:.2%} in zone {number}" for number, part in enumerate(seconds, 1))
    return _strip([(f"zone-{number}", part) for number, part in enumerate(seconds, 1)], label, [])


def _strip(parts: list[tuple[str, float]], label: str, above: list[Markup]) -> Markup:
    shown = [(class_, part) for class_, part in parts if part > 0]
    total = sum(part for _, part in shown) or 1.0
    widths = [max(_LEAST, part / total * _WIDTH) for _, part in shown]
    # What the small parts were given is taken from the largest.
    if widths:
        widths[widths.index(max(widths))] -= sum(widths) - _WIDTH
    at, drawn = 0.0, []
    for (class_, _), width in zip(shown, widths, strict=True):
        drawn.append(tag("rect", x=at, y=2.0, width=width, height=_HEIGHT - 4, class_=class_))
        at += width
    return picture(_WIDTH, _HEIGHT, label, [*drawn, *above], class_="strip", stretches=True)
