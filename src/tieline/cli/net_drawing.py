"""The network of brokers as a drawing: where brokers stand, and what is written at their links.

Places come from the graph alone: brokers that are few links apart stand near each other (stress majorisation, from a
circle, so that the same network gives the same drawing).
"""

from __future__ import annotations

from collections import deque
from html import escape
from math import cos, hypot, pi, sin
from textwrap import wrap
from typing import Any, Final  # Any: values of JSON

from tieline.cli.terminal import size

Point = tuple[float, float]

_WIDTH: Final = 960
_TOP: Final = 90
_FOOT: Final = 60
_MARGIN: Final = 90
#: Work is bounded: so many pairs of brokers are looked at.
_EFFORT: Final = 1_500_000
_INK: Final = "#1f2933"
_QUIET: Final = "#7b8794"
_PAPER: Final = "#ffffff"
_HERE: Final = "#0b69a3"
_AWAY: Final = "#9aa5b1"
_DOWN: Final = "#c81e1e"
_FONT: Final = "font-family='Helvetica, Arial, sans-serif'"


def drawing(answer: dict[str, Any]) -> str:
    """The answer of a broker as SVG."""
    names = [broker["name"] for broker in answer["brokers"]]
    links = _links(answer)
    height = max(420, min(900, 300 + 40 * len(names)))
    at = _fitted(_places(names, [ends for ends, _ in links]), _WIDTH, height)
    parts = [
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {_WIDTH} {height}' width='{_WIDTH}' height='{height}'>",
        f"<rect width='100%' height='100%' fill='{_PAPER}'/>",
    ]
    said = wrap(answer["verdict"], 104, max_lines=3, placeholder=" …")
    parts += [
        _text(24, 30 + 19 * row, line, size_px=15, weight="bold", anchor="start") for row, line in enumerate(said)
    ]
    known = f"as broker {answer['name']} knows it"
    parts.append(_text(24, 32 + 19 * len(said), known, size_px=12, fill=_QUIET, anchor="start"))
    parts += [_line(at[one], at[other], link) for (one, other), link in links]
    parts += [_box(at[broker["name"]], broker) for broker in answer["brokers"]]
    parts += [_label(at[one], at[other], link) for (one, other), link in links]
    parts += [_legend(height, answer["name"]), "</svg>"]
    return "\n".join(parts) + "\n"


def _links(answer: dict[str, Any]) -> list[tuple[tuple[str, str], dict[str, Any]]]:
    """Every link by its ends, with the numbers of those that the broker has itself."""
    own = {link["peer"]: link for link in answer["own"]}
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for link in answer["links"]:
        one, other = link["ends"]
        peer = other if one == answer["name"] else one
        found[one, other] = {"is_up": link["is_up"], "own": own.pop(peer, None) if link["is_own"] else None}
    for peer, link in own.items():
        found[answer["name"], peer] = {"is_up": False, "own": link}
    return list(found.items())


# -- places


def _places(names: list[str], ends: list[tuple[str, str]]) -> dict[str, Point]:
    """Where brokers stand, in no particular unit."""
    near: dict[str, list[str]] = {name: [] for name in names}
    for one, other in ends:
        near[one].append(other)
        near[other].append(one)
    order = _walk(names, near)
    count = len(order)
    # around a circle to begin with, neighbours beside each other; a little flat, as the paper is
    at = {
        name: (1.5 * cos(2 * pi * place / count + 0.3), sin(2 * pi * place / count + 0.3))
        for place, name in enumerate(order)
    }
    if count < 3:
        return {name: (float(place), 0.0) for place, name in enumerate(order)}
    apart = {name: _steps(name, near, count) for name in order}
    for _ in range(max(2, min(200, _EFFORT // (count * count)))):
        at = {name: _moved(name, at, apart[name]) for name in order}
    return at


def _walk(names: list[str], near: dict[str, list[str]]) -> list[str]:
    """All names, each after a neighbour where there is one."""
    order: list[str] = []
    seen: set[str] = set()
    for start in sorted(names, key=lambda name: (len(near[name]), name)):
        stack = [start]
        while stack:
            name = stack.pop()
            if name not in seen:
                seen.add(name)
                order.append(name)
                stack += sorted(near[name], reverse=True)
    return order


def _steps(start: str, near: dict[str, list[str]], count: int) -> dict[str, float]:
    """How many links each broker is away; those out of reach are put aside."""
    steps = {start: 0.0}
    front = deque([start])
    while front:
        name = front.popleft()
        for other in near[name]:
            if other not in steps:
                steps[other] = steps[name] + 1
                front.append(other)
    far = min(3.0, 1 + count / 4)
    return {name: steps.get(name, far) for name in near}


def _moved(name: str, at: dict[str, Point], apart: dict[str, float]) -> Point:
    """Where the others would have one broker stand, those that are near counting most."""
    x, y = at[name]
    sum_x = sum_y = weights = 0.0
    for other, wanted in apart.items():
        if other == name:
            continue
        weight = 1 / (wanted * wanted)
        other_x, other_y = at[other]
        distance = hypot(x - other_x, y - other_y) or 1e-6
        sum_x += weight * (other_x + wanted * (x - other_x) / distance)
        sum_y += weight * (other_y + wanted * (y - other_y) / distance)
        weights += weight
    # half of the way, so that two do not jump over each other for ever
    return (x + sum_x / weights) / 2, (y + sum_y / weights) / 2


def _fitted(at: dict[str, Point], width: int, height: int) -> dict[str, Point]:
    """The same places on the paper."""
    left, right = min(x for x, _ in at.values()), max(x for x, _ in at.values())
    top, bottom = min(y for _, y in at.values()), max(y for _, y in at.values())
    room_x, room_y = width - 2 * _MARGIN, height - _TOP - _FOOT - 80
    scale_x = room_x / (right - left) if right - left > 1e-3 else 0.0
    scale_y = room_y / (bottom - top) if bottom - top > 1e-3 else 0.0
    middle_x, middle_y = width / 2, _TOP + 40 + room_y / 2
    if scale_x > 0 and scale_y > 0:
        # a line that is nearly level stays so
        scale_y = min(scale_y, 1.6 * scale_x)
        scale_x = min(scale_x, 2.2 * scale_y) if scale_y else scale_x
    return {
        name: (middle_x + scale_x * (x - (left + right) / 2), middle_y + scale_y * (y - (top + bottom) / 2))
        for name, (x, y) in at.items()
    }


# -- signs


def _line(one: Point, other: Point, link: dict[str, Any]) -> str:
    colour = _DOWN if not link["is_up"] else _HERE if link["own"] else _QUIET
    dashes = "" if link["is_up"] else " stroke-dasharray='7 5'"
    width = 3 if link["own"] else 1.8
    x1, y1, x2, y2 = (round(value, 1) for value in (*one, *other))
    return f"<line x1='{x1}' y1='{y1}' x2='{x2}' y2='{y2}' stroke='{colour}' stroke-width='{width}'{dashes}/>"


def _box(at: Point, broker: dict[str, Any]) -> str:
    name = broker["name"] if len(broker["name"]) <= 18 else f"{broker['name'][:17]}…"
    width = max(54, 9 * len(name) + 24)
    x, y = at
    is_reached = broker["is_reachable"]
    fill = _HERE if broker["is_here"] else _PAPER if is_reached else "#eef1f4"
    edge = _HERE if broker["is_here"] else _INK if is_reached else _AWAY
    ink = _PAPER if broker["is_here"] else _INK if is_reached else _AWAY
    dashes = "" if is_reached else " stroke-dasharray='5 4'"
    box = (
        f"<rect x='{x - width / 2:.1f}' y='{y - 17:.1f}' width='{width}' height='34' rx='9' fill='{fill}' "
        f"stroke='{edge}' stroke-width='1.6'{dashes}/>"
    )
    signs = [box, _text(x, y + 5, name, size_px=15, fill=ink, weight="bold")]
    told = "cannot be reached" if not is_reached else f"owed {size(broker['owed_bytes'])}" if broker["owed"] else ""
    if told:
        signs.append(_text(x, y + 33, told, size_px=11, fill=_DOWN))
    return "".join(signs)


def _label(one: Point, other: Point, link: dict[str, Any]) -> str:
    """The numbers of a link beside its middle, on a bit of paper so that lines do not cross them."""
    own = link["own"]
    if own is None:
        return ""
    if link["is_up"]:
        out = sum(class_["sent_bytes_per_s"] for class_ in own["classes"])
        come = sum(class_["received_bytes_per_s"] for class_ in own["classes"])
        lines = [f"{own['round_trip_s'] * 1e3:.1f} ms", f"out {size(out)}/s, in {size(come)}/s"]
    else:
        lines = ["down", own["why"][:40]]
    x, y = (one[0] + other[0]) / 2, (one[1] + other[1]) / 2
    width = 6.2 * max(map(len, lines)) + 10
    paper = (
        f"<rect x='{x - width / 2:.1f}' y='{y - 16:.1f}' width='{width:.1f}' height='32' rx='4' fill='{_PAPER}' "
        "fill-opacity='0.95'/>"
    )
    colour = _INK if link["is_up"] else _DOWN
    return paper + "".join(
        _text(x, y - 3 + 14 * row, line, size_px=11, fill=colour) for row, line in enumerate(lines) if line
    )


def _legend(height: int, name: str) -> str:
    y = height - 24
    signs = [
        (24, _HERE, "", f"links of {name}, with their numbers"),
        (330, _QUIET, "", "links elsewhere, by what their ends say"),
        (660, _DOWN, " stroke-dasharray='7 5'", "down, or named by one end alone"),
    ]
    return "".join(
        f"<line x1='{x}' y1='{y}' x2='{x + 34}' y2='{y}' stroke='{colour}' stroke-width='2.5'{dashes}/>"
        + _text(x + 42, y + 4, text, size_px=12, fill=_QUIET, anchor="start")
        for x, colour, dashes, text in signs
    )


def _text(
    x: float, y: float, text: str, *, size_px: int, fill: str = _INK, weight: str = "normal", anchor: str = "middle"
) -> str:
    return (
        f"<text x='{x:.1f}' y='{y:.1f}' {_FONT} font-size='{size_px}' font-weight='{weight}' fill='{fill}' "
        f"text-anchor='{anchor}'>{escape(text)}</text>"
    )
