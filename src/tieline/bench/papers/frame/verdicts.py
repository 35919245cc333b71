"""The rules by which a sentence of a paper holds, or holds in part, or does not.

A verdict is never written by hand: each claim gives its numbers, one for each seed, to one of these rules and gets a
judgement that carries the rule in words.  The rules are strict about ranges ("0 to 209 % off" is no reproduction of "0
to 2 % off") and about universal sentences (one counter-example refutes), and lenient about single numbers, because a
paper's machine, instances and parameters are seldom to be had.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Final, Literal

from tieline.bench.metrics import three_digits

Verdict = Literal["reproduced", "in part", "not reproduced", "not measured"]
VERDICTS: Final[tuple[Verdict, ...]] = ("reproduced", "in part", "not reproduced", "not measured")

#: How far a number may be from the paper's, as a part of it.
PART: Final = 0.25
#: How much less the lesser of two has to be before it counts: below that it may be noise.
MARGIN: Final = 0.1

#: What the pages print of the rules.
RULES: Final = {
    "near": "reproduced if the median over the seeds is within 25 % of the paper's number; in part if it only lies on "
    "the same side of no difference",
    "spans": "reproduced if the least and the greatest number are both as near to the paper's two ends as a quarter of "
    "their distance; a range that lies elsewhere in it, or is much narrower or wider, is not the paper's range",
    "below, above": "reproduced if every number keeps the limit; in part if the median does",
    "ordered": "reproduced if in every seed each is less than the next by a tenth, or by half where a paper says *by "
    "multiples*; in part if the medians are so",
    "rises, falls": "reproduced if the medians go that way at every step and by a tenth in all; in part if only "
    "the last differs so from the first",
    "flat": "reproduced if all medians are within 25 % of the middle one",
    "often": "reproduced if it was seen in more than half of the cases; in part if in any",
    "always": "reproduced if it held in every case; one counter-example refutes",
}


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict, and the name of the rule that gave it with its numbers."""

    verdict: Verdict
    rule: str


def near(paper: float, measured: Sequence[float], *, part: float = PART, neutral: float = 0.0) -> Judgement:
    """One number of the paper: ``-0.35`` with nothing at 0, or a ratio with nothing at 1."""
    if not measured:
        return unmeasured("no number")
    middle = median(measured)
    rule = f"near {_text(paper)}, within {part:.0%}"
    if abs(middle - paper) <= part * abs(paper):
        return Judgement("reproduced", rule)
    return Judgement("in part" if (middle - neutral) * (paper - neutral) > 0 else "not reproduced", rule)


def spans(low: float, high: float, measured: Sequence[float], *, part: float = PART) -> Judgement:
    """A range of the paper; what was measured has to reach from near its one end to near the other."""
    if not measured:
        return unmeasured("no number")
    room = part * (high - low)
    holds = abs(min(measured) - low) <= room and abs(max(measured) - high) <= room
    rule = f"spans {_text(low)} to {_text(high)}, ends within {_text(room)}"
    return Judgement("reproduced" if holds else "not reproduced", rule)


def below(limit: float, measured: Sequence[float]) -> Judgement:
    """All at most the limit."""
    return _limited(measured, [value <= limit for value in measured], f"below {_text(limit)}", limit, sign=1)


def above(limit: float, measured: Sequence[float]) -> Judgement:
    """All at least the limit."""
    return _limited(measured, [value >= limit for value in measured], f"above {_text(limit)}", limit, sign=-1)


def _limited(measured: Sequence[float], kept: list[bool], rule: str, limit: float, *, sign: int) -> Judgement:
    if not measured:
        return unmeasured("no number")
    if all(kept):
        return Judgement("reproduced", rule)
    return Judgement("in part" if sign * (median(measured) - limit) <= 0 else "not reproduced", rule)


def ordered(groups: Sequence[Sequence[float]], *, margin: float = MARGIN) -> Judgement:
    """From least to most; the numbers of each group are those of the same seeds in the same order."""
    if len(groups) < 2 or not all(groups):
        return unmeasured("nothing to compare")
    rule = f"ordered, by {margin:.0%}"
    if all(
        _is_less(one, other, margin) for less, more in pairwise(groups) for one, other in zip(less, more, strict=True)
    ):
        return Judgement("reproduced", rule)
    middles = [median(group) for group in groups]
    holds = all(_is_less(one, other, margin) for one, other in pairwise(middles))
    return Judgement("in part" if holds else "not reproduced", rule)


def _is_less(one: float, other: float, margin: float) -> bool:
    return one < other and other - one >= margin * abs(other)


def rises(series: Sequence[Sequence[float]], *, margin: float = MARGIN) -> Judgement:
    """More and more along x; a sequence of numbers by seed for every x."""
    return _trend([median(numbers) for numbers in series if numbers], f"rises, by {margin:.0%} in all", margin)


def falls(series: Sequence[Sequence[float]], *, margin: float = MARGIN) -> Judgement:
    """Less and less along x."""
    middles = [median(numbers) for numbers in series if numbers]
    return _trend(middles[::-1], f"falls, by {margin:.0%} in all", margin)


def _trend(middles: list[float], rule: str, margin: float) -> Judgement:
    if len(middles) < 2:
        return unmeasured("fewer than two points")
    if not _is_less(middles[0], middles[-1], margin):
        return Judgement("not reproduced", rule)
    return Judgement("reproduced" if all(one <= other for one, other in pairwise(middles)) else "in part", rule)


def flat(series: Sequence[Sequence[float]], *, part: float = PART) -> Judgement:
    """The same all along x."""
    middles = [median(numbers) for numbers in series if numbers]
    if len(middles) < 2:
        return unmeasured("fewer than two points")
    centre = median(middles)
    holds = all(abs(middle - centre) <= part * abs(centre) for middle in middles)
    return Judgement("reproduced" if holds else "not reproduced", f"flat, within {part:.0%}")


def always(held: int, of: int) -> Judgement:
    """A sentence that is to hold in every case."""
    if not of:
        return unmeasured("no case")
    return Judgement("reproduced" if held == of else "not reproduced", "always")


def often(seen: int, of: int) -> Judgement:
    """Something that the paper saw on an instance of its own, looked for on several of ours."""
    if not of:
        return unmeasured("no case")
    return Judgement("reproduced" if 2 * seen > of else "in part" if seen else "not reproduced", "often")


def unmeasured(reason: str) -> Judgement:
    """Nothing was measured that could decide it, for this reason."""
    return Judgement("not measured", reason)


def _text(value: float) -> str:
    return f"{'−' if value < 0 else ''}{three_digits(abs(value))}" if value else "0"


def percent(shares: Sequence[float]) -> str:
    """Shares by seed in words: the median, and from where to where they go."""
    if not shares:
        return "nothing"
    middle, least, most = (
        f"{100 * value:.0f} %".replace("-", "−") for value in (median(shares), min(shares), max(shares))
    )
    return middle if least == most else f"{middle} ({least} to {most})"


def figures(values: Sequence[float], unit: str = "") -> str:
    """Numbers by seed in words: the median, and from where to where they go."""
    if not values:
        return "nothing"
    middle, least, most = (_text(value) for value in (median(values), min(values), max(values)))
    return f"{middle}{' ' if unit else ''}{unit}" + ("" if least == most else f" ({least} to {most})")
