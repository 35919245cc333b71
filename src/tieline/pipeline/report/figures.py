"""The small things that a page is made of: numbers and times as people read them, shapes, and bars.

Shapes are escaped markup; the page's style sheet colours them in light, dark and print.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any, Final  # Any: filters of a template take what stands there

from markupsafe import Markup, escape

from tieline.pipeline.jobs.quality.clauses import Clause
from tieline.pipeline.jobs.quality.limits import Range
from tieline.pipeline.jobs.quality.quantities import QUANTITIES
from tieline.pipeline.report.findings import Findings


def percent(share: float | None, digits: int = 2) -> str:
    """A share in percent. Only all is 100 %, and only nothing is 0 %: 99.996 % prints as 99.99 %."""
    if share is None:
        return "–"
    step = 10 ** (digits + 2)
    shown = round(share * step) / step
    if shown >= 1 > share:
        shown = 1 - 1 / step
    elif shown <= 0 < share:
        shown = 1 / step
    return f"{shown:.{digits}%}".replace("%", "\u202f%")


def duration(seconds: float) -> str:
    """A length of time in the two largest units that matter."""
    whole = round(seconds)
    if whole == 0:
        return "0" if seconds == 0 else "< 1 s"
    days, rest = divmod(whole, 86_400)
    hours, rest = divmod(rest, 3_600)
    minutes, left = divmod(rest, 60)
    parts = [(days, "d"), (hours, "h"), (minutes, "min"), (left, "s")]
    first = next(number for number, (amount, _) in enumerate(parts) if amount)
    return " ".join(f"{amount}\u202f{unit}" for amount, unit in parts[first : first + 2] if amount)


def number(value: float) -> str:
    """Without zeros that say nothing."""
    return f"{value:g}"


def grouped(value: int) -> str:
    """With commas at thousands."""
    return f"{value:,}"


def span(allowed: Range, clause: Clause) -> str:
    """A range with its unit; what begins at nothing is told by its end."""
    unit = QUANTITIES[clause.quantity].unit
    written = f"{allowed.low:g} – {allowed.high:g}" if allowed.low else f"≤ {allowed.high:g}"
    return f"{written}\u00a0{unit}".strip()


def minute(when: datetime) -> str:
    """A point in time, to the minute, UTC."""
    return f"{when.astimezone(UTC):%Y-%m-%d %H:%M}"


def second(when: datetime) -> str:
    """A point in time, to the second, UTC."""
    return f"{when.astimezone(UTC):%Y-%m-%d %H:%M:%S}"


#: By the names that templates use.
FILTERS: Final[dict[str, Callable[..., Any]]] = {
    function.__name__: function for function in (percent, duration, number, grouped, span, minute, second)
}


_RENAMED: Final = {"class_": "class"}


def tag(name: str, *inside: object, **attributes: object) -> Markup:
    """One element. Text is escaped, elements are kept; ``text_anchor=`` becomes ``text-anchor=``."""
    written = Markup("").join(
        Markup(' {}="{}"').format(_RENAMED.get(key, key.replace("_", "-")), _value(value))
        for key, value in attributes.items()
        if value is not None
    )
    content = Markup("").join(escape(each) for each in inside)
    return Markup("<{0}{1}>{2}</{0}>").format(Markup(name), written, content)  # noqa: S704  our own names of elements


def picture(
    width: float, height: float, label: str, parts: Iterable[Markup], *, class_: str = "", stretches: bool = False
) -> Markup:
    """A whole picture that scales with the page; ``label`` is what a screen reader says.

    One that ``stretches`` fills its place whatever the proportions: for bars, not for text.
    """
    shape = Markup(' preserveAspectRatio="none"') if stretches else ""
    return Markup('<svg viewBox="0 0 {} {}" role="img" class="{}"{}><title>{}</title>{}</svg>').format(
        _value(width), _value(height), class_, shape, label, Markup("").join(parts)
    )


def _value(value: object) -> str:
    """Numbers as short as a picture needs them."""
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)


_WIDTH: Final = 200.0
_HEIGHT: Final = 14.0
#: A part that exists is seen, however small.
_LEAST: Final = 1.5


def week_bar(findings: Findings, node: str, week: str, quantity: str, phase: str) -> Markup:
    """A week's windows: normal, tolerated, not tolerated, flagged and left out, not measured; a tick at 95 %."""
    clauses = findings.main_clauses(quantity)
    normal, extreme = (
        findings.judgement(node, week, next(each for each in clauses if each.is_absolute is wide), phase)
        for wide in (False, True)
    )
    parts = (
        ("zone-1", normal.judged - normal.outside, "normal"),
        ("zone-2", normal.outside - extreme.outside, "tolerated"),
        ("zone-3", extreme.outside, "not tolerated"),
        ("flagged", normal.measured - normal.judged, "flagged"),
        ("missing", normal.windows - normal.measured, "not measured"),
    )
    label = f"{quantity}, {node} {phase}, {week}: " + ", ".join(
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
