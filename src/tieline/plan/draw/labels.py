"""Where names fit: beside their nodes, on the side where they cover least."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tieline.plan.arrays import Floats, Ints

#: Width of a letter in heights of a line, for a proportional typeface.
LETTER = 0.62
#: Directions in which a label may stand: right first, since that is where people look.
_DIRECTIONS = tuple((np.cos(angle), np.sin(angle)) for angle in np.deg2rad([0, 180, 45, -45, 135, -135, 90, -90]))


class Sheet:
    """What is already drawn, as boxes (left, bottom, right, top) and points along lines."""

    def __init__(self, boxes: Floats, points: Floats) -> None:
        self._boxes = boxes
        self._points = points

    def place(self, at: Floats, names: Sequence[str], *, radius: float, line: float) -> list[tuple[float, float]]:
        """The centre of each label; the ones in the densest places choose first."""
        crowd = [int((np.abs(self._points - spot).max(axis=1) < 4 * line).sum()) for spot in at]
        found: list[tuple[float, float]] = [(0.0, 0.0)] * len(names)
        for number in np.argsort(crowd, kind="stable")[::-1].tolist():
            found[number] = self._put(at[number], len(names[number]) * LETTER * line, radius, line)
        return found

    def _put(self, spot: Floats, width: float, radius: float, line: float) -> tuple[float, float]:
        best, least, chosen = (0.0, 0.0), np.inf, np.zeros(4)
        for rank, (right, up) in enumerate(_DIRECTIONS):
            middle = (
                spot[0] + right * (radius + width / 2 * abs(right) ** 0.5 + 0.15 * line),
                spot[1] + up * (radius + 0.55 * line),
            )
            box = np.array([middle[0] - width / 2, middle[1] - line / 2, middle[0] + width / 2, middle[1] + line / 2])
            badness = 0.02 * rank + self._covered(box, line)
            if badness < least:
                best, least, chosen = middle, badness, box
        self._boxes = np.vstack([self._boxes, chosen])
        return best

    def _covered(self, box: Floats, line: float) -> float:
        """How much a label would cover: of nodes and labels by area, of lines by length."""
        wide = np.minimum(self._boxes[:, 2], box[2]) - np.maximum(self._boxes[:, 0], box[0])
        high = np.minimum(self._boxes[:, 3], box[3]) - np.maximum(self._boxes[:, 1], box[1])
        area = float((np.maximum(wide, 0) * np.maximum(high, 0)).sum()) / (line * line)
        inside = (
            (self._points[:, 0] > box[0])
            & (self._points[:, 0] < box[2])
            & (self._points[:, 1] > box[1])
            & (self._points[:, 1] < box[3])
        )
        return 6.0 * area + 0.12 * float(inside.sum())


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
