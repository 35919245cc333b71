"""Boxes and events for the index: so many subscriptions, so many attributes, so large a share of them per event.

Theory of operation
-------------------
*U*: events are uniform in the unit cube, so are the centres of the boxes; widths are log-normal around a common scale.
*G*, after the habits of microgrids: events are normal around the middle of each attribute, boxes crowd where events
are; an interval is unconditional in 30 % and one-sided in another 30 % of the cases, but no box has only such.

A box's selectivity is the probability that an event falls into it, and a product over the attributes, because
attributes are independent.  The scale is found by bisection, so that the mean of that product is what the
configuration states; nothing has to be estimated from events.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from tieline.bench.load.job import Failure

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]


class Mismatch(Failure):
    """An answer is not the right one."""


def containing(lo: Floats, hi: Floats, point: Floats) -> list[int]:
    """The rows of the boxes that contain a point, ascending."""
    import numpy as np

    found: list[int] = np.flatnonzero(((lo <= point) & (point <= hi)).all(axis=1)).tolist()
    return found


def verify(who: str, answers: Iterable[Sequence[int]], right: Sequence[list[int]]) -> int:
    """Compare answers with the right ones, each id once and none too many; returns the number compared."""
    for number, (answer, owed) in enumerate(zip(answers, right, strict=True)):
        if sorted(answer) != owed:
            few = sorted(set(owed).symmetric_difference(answer))[:5]
            raise Mismatch(
                f"{who} found {len(answer)} instead of {len(owed)} subscriptions for event {number}; "
                f"among those that differ: {few or 'none, but some came twice'}"
            )
    return len(right)


#: Boxes that the scale is calibrated with, and halvings of its range.
_SAMPLE: Final = 40_000
_HALVINGS: Final = 40
#: How much widths vary: the standard deviation of their logarithm.
_VARIETY: Final = 0.5
#: G: where events and boxes are, and how often an interval is unconditional or one-sided.
_MIDDLE, _SPREAD, _CROWD = 0.5, 0.1, 0.15
_UNCONDITIONAL, _ONE_SIDED = 0.3, 0.3
_SEED: Final = 4
#: Events whose answers are compared with the right ones.
CHECKED: Final = 25


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """One cell of the tables."""

    subscriptions: int
    attributes: int
    #: Mean share of the subscriptions that an event matches.
    selectivity: float
    kind: Literal["U", "G"] = "U"

    def with_subscriptions(self, number: int) -> Configuration:
        """The same with more or fewer of them."""
        return replace(self, subscriptions=number)

    @property
    def column(self) -> str:
        """Everything but the number of subscriptions, in words."""
        return f"{self.kind}, {self.attributes} attributes, {100 * self.selectivity:g} %"

    @property
    def name(self) -> str:
        """A key for rows."""
        return f"{self.kind}{self.attributes}-{100 * self.selectivity:g}-{counted(self.subscriptions)}"


def counted(number: int) -> str:
    """A number of subscriptions in short: 3k, 100k, 1M."""
    for factor, letter in ((1_000_000, "M"), (1_000, "k")):
        if number >= factor and number % factor == 0:
            return f"{number // factor}{letter}"
    return str(number)


@dataclass(frozen=True, slots=True)
class Workload:
    """The boxes, by row; as many events as are asked for; and the boxes of the first events, by brute force."""

    lo: Floats
    hi: Floats
    events: Floats
    right: Sequence[list[int]]


@lru_cache(maxsize=1)
def workload(configuration: Configuration, events: int) -> Workload:
    """Always the same boxes and events for a configuration; the last one made is kept."""
    import numpy as np

    make = _uniform if configuration.kind == "U" else _grid
    share = _share_uniform if configuration.kind == "U" else _share_normal
    shape = (configuration.subscriptions, configuration.attributes)
    sample = make(np.random.default_rng(_SEED), (min(_SAMPLE, shape[0]), shape[1]))
    scale = _calibrated(sample, share, configuration.selectivity)
    lo, hi = make(np.random.default_rng(_SEED), shape)(scale)
    rng = np.random.default_rng(_SEED + 1)
    points = (
        rng.random((events, shape[1]))
        if configuration.kind == "U"
        else rng.normal(_MIDDLE, _SPREAD, (events, shape[1]))
    )
    return Workload(lo, hi, points, [containing(lo, hi, point) for point in points[:CHECKED]])


#: Boxes whose widths are still to be multiplied by something.
Unscaled: TypeAlias = Callable[[float], "tuple[Floats, Floats]"]


def _uniform(rng: np.random.Generator, shape: tuple[int, int]) -> Unscaled:
    centres = rng.random(shape)
    widths = rng.lognormal(0.0, _VARIETY, shape)

    def boxes(scale: float) -> tuple[Floats, Floats]:
        return centres - widths * (scale / 2), centres + widths * (scale / 2)

    return boxes


def _grid(rng: np.random.Generator, shape: tuple[int, int]) -> Unscaled:
    import numpy as np

    centres = rng.normal(_MIDDLE, _CROWD, shape)
    widths = rng.lognormal(0.0, _VARIETY, shape)
    thresholds = rng.normal(_MIDDLE, _SPREAD, shape)
    style = rng.random(shape)
    style[np.arange(shape[0]), rng.integers(shape[1], size=shape[0])] = 1.0  # one interval at least
    one_sided = (style >= _UNCONDITIONAL) & (style < _UNCONDITIONAL + _ONE_SIDED)
    is_low = rng.random(shape) < 0.5

    def boxes(scale: float) -> tuple[Floats, Floats]:
        lo, hi = centres - widths * (scale / 2), centres + widths * (scale / 2)
        lo[one_sided], hi[one_sided] = thresholds[one_sided], thresholds[one_sided]
        free = style < _UNCONDITIONAL
        lo[free | (one_sided & is_low)] = -np.inf
        hi[free | (one_sided & ~is_low)] = np.inf
        return lo, hi

    return boxes


def _share_uniform(lo: Floats, hi: Floats) -> Floats:
    return _product(hi.clip(0.0, 1.0) - lo.clip(0.0, 1.0))


def _share_normal(lo: Floats, hi: Floats) -> Floats:
    return _product(_below(hi) - _below(lo))


def _product(shares: Floats) -> Floats:
    product: Floats = shares.prod(axis=1)
    return product


def _below(bounds: Floats) -> Floats:
    """The probability of a value below each bound."""
    import numpy as np

    scaled = ((bounds - _MIDDLE) / (_SPREAD * math.sqrt(2))).ravel().tolist()
    return np.array([0.5 + 0.5 * math.erf(value) for value in scaled]).reshape(bounds.shape)


def _calibrated(boxes: Unscaled, share: Callable[[Floats, Floats], Floats], selectivity: float) -> float:
    """The scale at which boxes have this selectivity on average."""
    low, high = 0.0, 4.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if float(share(*boxes(middle)).mean()) < selectivity:
            low = middle
        else:
            high = middle
    return high
