"""The voltage/frequency plane as a picture: three zones, their limits, and where the readings lie."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from markupsafe import Markup

from tieline.pipeline.jobs.quality.limits import Limits, Range
from tieline.pipeline.jobs.quality.zones import Axis, axes
from tieline.pipeline.report.figures import picture, tag
from tieline.pipeline.report.findings import Findings

#: Shades from few readings to many; the style sheet knows as many colours.
SHADES: Final = 7
_WIDTH: Final = 560.0
_HEIGHT: Final = 420.0
_LEFT: Final = 58.0
_BOTTOM: Final = 46.0
_TOP: Final = 12.0
_RIGHT: Final = 14.0
#: Cells along one side of the picture: fine enough for a cloud, coarse enough for a small page.
_DRAWN: Final = 120
#: Limits closer together than this, in pixels, would print over each other.
_ROOM: Final = 15.0
#: The close-up leaves out this part of the readings at each end.
_STRAY: Final = 0.0005


def whole(findings: Findings) -> Markup:
    """The plane as far as all three zones reach, with the readings in it."""
    volts, hertz = axes(findings.limits)
    return _draw(findings, _View(volts.low, volts.high), _View(hertz.low, hertz.high), "All zones")


def close_up(findings: Findings) -> Markup | None:
    """Where nearly all readings are; None without readings."""
    if not findings.plane:
        return None
    volts, hertz = axes(findings.limits)
    return _draw(
        findings,
        _bulk(volts, [(cell.volt_cell, cell.readings) for cell in findings.plane]),
        _bulk(hertz, [(cell.hertz_cell, cell.readings) for cell in findings.plane]),
        "Where the readings are",
    )


class _View(NamedTuple):
    """What of an axis is drawn."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class _Scale:
    """From values to pixels; frequency grows upward."""

    volts: _View
    hertz: _View

    def x(self, value: float) -> float:
        part = (value - self.volts.low) / (self.volts.high - self.volts.low)
        return _LEFT + min(max(part, 0.0), 1.0) * (_WIDTH - _LEFT - _RIGHT)

    def y(self, value: float) -> float:
        part = (value - self.hertz.low) / (self.hertz.high - self.hertz.low)
        return _HEIGHT - _BOTTOM - min(max(part, 0.0), 1.0) * (_HEIGHT - _BOTTOM - _TOP)

    def box(self, volts: Range, hertz: Range, class_: str) -> Markup:
        left, right, top, bottom = self.x(volts.low), self.x(volts.high), self.y(hertz.high), self.y(hertz.low)
        return tag("rect", x=left, y=top, width=right - left, height=bottom - top, class_=class_)


def _draw(findings: Findings, volts: _View, hertz: _View, title: str) -> Markup:
    limits, scale = findings.limits, _Scale(volts, hertz)
    everything = scale.box(Range(*volts), Range(*hertz), "zone-3")
    tolerated = scale.box(limits.extreme("voltage"), limits.extreme("frequency"), "zone-2")
    normal = scale.box(limits.normal("voltage"), limits.normal("frequency"), "zone-1")
    parts = [everything, tolerated, normal, *_cloud(findings, scale), *_names(limits, scale), *_axes(limits, scale)]
    zones = [seconds / (sum(findings.zone_seconds()) or 1) for seconds in findings.zone_seconds()]
    label = (
        f"{title}: voltage from {volts.low:.4g} to {volts.high:.4g} V, frequency from {hertz.low:.4g} to "
        f"{hertz.high:.4g} Hz. Of the time, {zones[0]:.2%} in zone 1, {zones[1]:.2%} in zone 2, {zones[2]:.2%} in zone "
        "3."
    )
    return picture(_WIDTH, _HEIGHT, label, parts, class_="plane")


def _cloud(findings: Findings, scale: _Scale) -> list[Markup]:
    """One path for each shade, a rectangle for each cell that holds readings."""
    volts, hertz = axes(findings.limits)
    wide, tall = _merged(volts, scale.volts), _merged(hertz, scale.hertz)
    counts: Counter[tuple[int, int]] = Counter()
    for cell in findings.plane:
        if _is_seen(volts, cell.volt_cell, scale.volts) and _is_seen(hertz, cell.hertz_cell, scale.hertz):
            counts[cell.volt_cell // wide, cell.hertz_cell // tall] += cell.readings
    most = math.log1p(max(counts.values(), default=1))
    paths: dict[int, list[str]] = {}
    for (column, row), readings in sorted(counts.items()):
        left, right = (scale.x(volts.low + number * wide * volts.step) for number in (column, column + 1))
        bottom, top = (scale.y(hertz.low + number * tall * hertz.step) for number in (row, row + 1))
        if right - left > 0 and bottom - top > 0:
            shade = min(SHADES - 1, int(math.log1p(readings) / most * SHADES))
            paths.setdefault(shade, []).append(f"M{left:.1f} {top:.1f}H{right:.1f}V{bottom:.1f}H{left:.1f}z")
    return [tag("path", d="".join(of), class_=f"shade-{shade}") for shade, of in sorted(paths.items())]


def _merged(axis: Axis, view: _View) -> int:
    """How many cells of the table become one of the picture."""
    return max(1, round((view.high - view.low) / axis.step / _DRAWN))


def _is_seen(axis: Axis, cell: int, view: _View) -> bool:
    return view.low <= axis.low + (cell + 0.5) * axis.step <= view.high


def _names(limits: Limits, scale: _Scale) -> list[Markup]:
    """The zones' names in their upper left corners, where there is room."""
    shown = []
    corners = (
        ("zone 1", limits.normal("voltage").low, limits.normal("frequency").high),
        ("zone 2", limits.extreme("voltage").low, limits.extreme("frequency").high),
        ("zone 3", scale.volts.low, scale.hertz.high),
    )
    taken: list[tuple[float, float]] = []
    for name, volts, hertz in corners:
        x, y = scale.x(volts) + 6, scale.y(hertz) + 15
        if (
            x < _WIDTH - _RIGHT - 40
            and y < _HEIGHT - _BOTTOM - 4
            and all(abs(x - left) > 44 or abs(y - top) > _ROOM for left, top in taken)
        ):
            taken.append((x, y))
            shown.append(tag("text", name, x=x, y=y, class_="zone-name"))
    return shown


def _axes(limits: Limits, scale: _Scale) -> list[Markup]:
    """Ticks, lines at the limits, and what the axes measure."""
    floor, left, right = _HEIGHT - _BOTTOM, _LEFT, _WIDTH - _RIGHT
    parts = [scale.box(Range(*scale.volts), Range(*scale.hertz), "frame")]
    for value, is_limit in _ticks(limits, "voltage", scale.volts, scale.x):
        x = scale.x(value)
        top, class_ = (_TOP, "limit") if is_limit else (floor, "notch")
        parts += [
            tag("line", x1=x, x2=x, y1=top, y2=floor + 5, class_=class_),
            tag("text", f"{value:g}", x=x, y=floor + 18, class_="tick", text_anchor="middle"),
        ]
    for value, is_limit in _ticks(limits, "frequency", scale.hertz, scale.y):
        y = scale.y(value)
        end, class_ = (right, "limit") if is_limit else (left, "notch")
        parts += [
            tag("line", x1=left - 5, x2=end, y1=y, y2=y, class_=class_),
            tag("text", f"{value:g}", x=left - 9, y=y + 4, class_="tick", text_anchor="end"),
        ]
    middle = (_TOP + floor) / 2
    turned = f"rotate(-90 14 {middle:.0f})"
    return [
        *parts,
        tag("text", "voltage, V", x=(left + right) / 2, y=_HEIGHT - 8, class_="axis", text_anchor="middle"),
        tag("text", "frequency, Hz", x=14.0, y=middle, class_="axis", text_anchor="middle", transform=turned),
    ]


def _ticks(limits: Limits, quantity: str, view: _View, place: Callable[[float], float]) -> list[tuple[float, bool]]:
    """Values to print, each with whether it is a limit: those first, then round numbers where there is room."""
    ends = {*limits.normal(quantity), *limits.extreme(quantity)}
    step = _round_step((view.high - view.low) / 8)
    round_ones = [round(number * step, 6) for number in range(math.ceil(view.low / step), int(view.high / step) + 1)]
    shown: list[tuple[float, bool]] = []
    for value in (*sorted(ends), limits.nominal(quantity), *round_ones):
        room = _ROOM if quantity == "frequency" else 2.5 * _ROOM
        if view.low <= value <= view.high and all(abs(place(value) - place(other)) > room for other, _ in shown):
            shown.append((value, value in ends))
    return shown


def _round_step(least: float) -> float:
    """The next of 1, 2, 5, 10, 20, 50, ... or their tenths."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= least)


def _bulk(axis: Axis, cells: Sequence[tuple[int, int]]) -> _View:
    """The part of an axis that holds nearly all readings, with a little air around it."""
    counts: Counter[int] = Counter()
    for cell, readings in cells:
        counts[cell] += readings
    stray = counts.total() * _STRAY
    low, high = (_beyond(sorted(counts.items(), reverse=back), stray) for back in (False, True))
    air = max(4.0, (high - low) * 0.08)
    return _View(
        axis.low + max(0.0, low - air) * axis.step, axis.low + min(float(axis.cells), high + 1 + air) * axis.step
    )


def _beyond(counts: Sequence[tuple[int, int]], stray: float) -> int:
    """The first cell after the stray readings of one end."""
    seen = 0
    for cell, readings in counts:
        seen += readings
        if seen > stray:
            return cell
    return counts[-1][0]
