"""Where names stand: beside their nodes, inside the picture, and on nothing that is drawn already where that can be.

Theory of operation
-------------------
Widths are those of the typeface, not a guess from the number of letters.  Each name tries sixteen places around its
node, eight near ones and eight a line further out, and takes the one that covers least: of nodes and of other names by
area, of links by length, and of what lies beyond the edge of the picture by area, too.  Names in crowded places choose
first.  What still reaches beyond the edge is for the caller, who makes the network smaller by as much.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from tieline.plan.arrays import Floats, Ints

#: Directions in which a name may stand: right first, since that is where people look.
_DIRECTIONS = tuple((np.cos(angle), np.sin(angle)) for angle in np.deg2rad([0, 180, 45, -45, 135, -135, 90, -90]))
#: How much worse it is to cover so much of each: nodes and names, what lies outside, a point of a link.
_COVERED, _OUTSIDE, _CROSSED = 6.0, 4.0, 0.12
#: A name further out than this from its node may be taken for another one's.
_FURTHER_OUT = 0.5
_LONGEST = 24
#: Letters that are left of the beginning that several long names share.
_BEGINNING = 6


class Label(NamedTuple):
    """A name as it is written; its width in points."""

    text: str
    width: float


def labelled(names: Sequence[str], bold: Sequence[bool], size: float) -> list[Label]:
    """Names as they are written, no longer than fits into a picture, with their widths."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    faces = {
        is_bold: FontProperties(family="DejaVu Sans", weight="bold" if is_bold else "normal", size=size)
        for is_bold in (False, True)
    }
    found = []
    for text, is_bold in zip(told_apart(names), bold, strict=True):
        width, _, _ = text_to_path.get_text_width_height_descent(text, faces[is_bold], ismath=False)
        found.append(Label(text, float(width)))
    return found


def shortened(name: str, longest: int = _LONGEST) -> str:
    """A long name without its middle: names of one network often begin alike, and differ at their ends."""
    if len(name) <= longest:
        return name
    tail = (longest - 1) // 2
    return f"{name[: longest - 1 - tail]}…{name[-tail:]}"


def told_apart(names: Sequence[str]) -> list[str]:
    """Names short enough for a picture; of long ones that would look alike the part is kept in which they differ."""
    found = [shortened(name) for name in names]
    alike: dict[str, list[str]] = {}
    for name, text in zip(names, found, strict=True):
        alike.setdefault(text, []).append(name)
    return [
        text if len(alike[text]) == 1 else _from(name, alike[text]) for name, text in zip(names, found, strict=True)
    ]


def _from(name: str, others: Sequence[str]) -> str:
    """The beginning of a name, and what follows where it begins to differ from others."""
    begun = next((at for at, letters in enumerate(zip(*others, strict=False)) if len(set(letters)) > 1), 0)
    rest = name[begun:]
    room = _LONGEST - _BEGINNING - 1
    return f"{name[:_BEGINNING]}…{rest if len(rest) <= room else f'{rest[: room - 1]}…'}"


class LabelPlacer:
    """What is already drawn, as boxes (left, bottom, right, top) and points along lines, inside a frame."""

    def __init__(self, boxes: Floats, points: Floats, frame: tuple[float, float] = (np.inf, np.inf)) -> None:
        self._boxes = boxes
        self._points = points
        #: Width and height of the picture, whose corner is the origin; infinite where nobody asks.
        self._frame = frame
        self._is_framed = bool(np.isfinite(frame).all())

    def place(self, at: Floats, widths: Sequence[float], *, radius: Floats, line: float) -> Floats:
        """The box of each label, by the node that it belongs to; the ones in the densest places choose first."""
        crowd = [int((np.abs(self._points - spot).max(axis=1) < 4 * line).sum()) for spot in at]
        found = np.zeros((len(widths), 4))
        for number in np.argsort(crowd, kind="stable")[::-1].tolist():
            found[number] = self._put(at[number], widths[number], float(radius[number]), line)
        return found

    def _put(self, spot: Floats, width: float, radius: float, line: float) -> Floats:
        least, chosen = np.inf, np.zeros(4)
        for further in (0.0, line):
            for rank, (right, up) in enumerate(_DIRECTIONS):
                x = spot[0] + right * (radius + further + width / 2 * abs(right) ** 0.5 + 0.3 * line)
                y = spot[1] + up * (radius + further + 0.6 * line)
                box = np.array([x - width / 2, y - line / 2, x + width / 2, y + line / 2])
                badness = 0.02 * rank + (_FURTHER_OUT if further else 0.0) + self._covered(box, line)
                if badness < least:
                    least, chosen = badness, box
        self._boxes = np.vstack([self._boxes, chosen])
        return chosen

    def _covered(self, box: Floats, line: float) -> float:
        """How much a label would cover, and how much of it would be cut off."""
        wide = np.minimum(self._boxes[:, 2], box[2]) - np.maximum(self._boxes[:, 0], box[0])
        high = np.minimum(self._boxes[:, 3], box[3]) - np.maximum(self._boxes[:, 1], box[1])
        area = float((np.maximum(wide, 0) * np.maximum(high, 0)).sum()) / (line * line)
        inside = (
            (self._points[:, 0] > box[0])
            & (self._points[:, 0] < box[2])
            & (self._points[:, 1] > box[1])
            & (self._points[:, 1] < box[3])
        )
        outside = sum(beyond(box[None], self._frame)) / line if self._is_framed else 0.0
        return _COVERED * area + _CROSSED * float(inside.sum()) + _OUTSIDE * outside


def beyond(boxes: Floats, frame: tuple[float, float]) -> tuple[float, float, float, float]:
    """How far the boxes reach beyond the left, lower, right and upper edge of a frame."""
    if not len(boxes):
        return 0.0, 0.0, 0.0, 0.0
    low, high = boxes[:, :2].min(axis=0), boxes[:, 2:].max(axis=0)
    return (
        max(0.0, -float(low[0])), max(0.0, -float(low[1])),
        max(0.0, float(high[0]) - frame[0]), max(0.0, float(high[1]) - frame[1]),
    )  # fmt: skip


def boxes_around(at: Floats, radius: Floats) -> Floats:
    """The boxes of round nodes."""
    return np.column_stack([at - radius[:, None], at + radius[:, None]])


def points_along(at: Floats, ends: Ints, step: float) -> Floats:
    """Points on straight links, about so far apart."""
    if not len(ends):
        return np.zeros((0, 2))
    parts = []
    for a, b in ends:
        count = 2 + int(np.linalg.norm(at[a] - at[b]) / step)
        share = np.linspace(0.0, 1.0, count)[:, None]
        parts.append(at[a] * (1 - share) + at[b] * share)
    return np.vstack(parts)


#: How far a bent line between two nodes swings out, as a share of their distance.
BEND: Final = 0.18


def points_along_bends(at: Floats, pairs: Sequence[tuple[int, int]], step: float) -> Floats:
    """The same on the bent lines by which unmet requests are marked."""
    parts = [np.zeros((0, 2))]
    for a, b in pairs:
        way = at[b] - at[a]
        middle = (at[a] + at[b]) / 2 + BEND * np.array([way[1], -way[0]])
        share = np.linspace(0.0, 1.0, 2 + int(np.linalg.norm(way) / step))[:, None]
        parts.append((1 - share) ** 2 * at[a] + 2 * share * (1 - share) * middle + share**2 * at[b])
    return np.vstack(parts)
