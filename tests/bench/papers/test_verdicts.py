"""Verdicts follow from numbers, by rules that are strict where a paper speaks of ranges and of everything."""

from __future__ import annotations

import pytest

from tieline.bench.papers.frame import verdicts
from tieline.bench.papers.frame.verdicts import Judgement


def verdict(judgement: Judgement) -> str:
    return judgement.verdict


def test_zero_to_two_percent_is_no_reproduction_of_zero_to_two_hundred_and_nine() -> None:
    assert verdict(verdicts.spans(0, 209, [0.0, 0.5, 2.0])) == "not reproduced"
    assert verdict(verdicts.spans(0, 2, [0.0, 80.0, 209.0])) == "not reproduced"
    assert verdict(verdicts.spans(0, 209, [5.0, 90.0, 190.0])) == "reproduced"


@pytest.mark.parametrize(
    ("measured", "expected"),
    [
        ([-0.30, -0.36, -0.40], "reproduced"),
        ([-0.05, -0.1], "in part"),
        ([0.1], "not reproduced"),
        ([], "not measured"),
    ],
)
def test_near_a_number(measured: list[float], expected: str) -> None:
    assert verdict(verdicts.near(-0.35, measured)) == expected


def test_near_a_ratio_of_one_direction() -> None:
    assert verdict(verdicts.near(2.0, [1.2], neutral=1.0)) == "in part"
    assert verdict(verdicts.near(2.0, [0.8], neutral=1.0)) == "not reproduced"


def test_limits() -> None:
    assert verdict(verdicts.above(0.8, [0.8, 0.99])) == "reproduced"
    assert verdict(verdicts.above(0.8, [0.7, 0.9, 0.99])) == "in part"
    assert verdict(verdicts.above(0.8, [0.7, 0.7, 0.99])) == "not reproduced"
    assert verdict(verdicts.below(1.0, [0.9, 1.1, 1.2])) == "not reproduced"


def test_order_has_to_hold_in_every_seed_by_a_margin() -> None:
    assert verdict(verdicts.ordered([[1.0, 2.0], [1.2, 2.5]])) == "reproduced"
    assert verdict(verdicts.ordered([[1.0, 2.0, 1.0], [1.2, 1.0, 1.2]])) == "in part"
    assert verdict(verdicts.ordered([[1.0, 1.0], [1.05, 1.05]])) == "not reproduced"
    assert verdict(verdicts.ordered([[1.0], []])) == "not measured"


def test_trends() -> None:
    assert verdict(verdicts.rises([[1.0, 1.1], [2.0], [2.0, 3.0]])) == "reproduced"
    assert verdict(verdicts.rises([[1.0], [3.0], [2.0]])) == "in part"
    assert verdict(verdicts.rises([[1.0], [3.0], [1.05]])) == "not reproduced"
    assert verdict(verdicts.falls([[3.0], [2.0], [1.0]])) == "reproduced"
    assert verdict(verdicts.flat([[10.0], [11.0], [9.0]])) == "reproduced"
    assert verdict(verdicts.flat([[10.0], [11.0], [20.0]])) == "not reproduced"


def test_one_counter_example_refutes() -> None:
    assert verdict(verdicts.always(399, 400)) == "not reproduced"
    assert verdict(verdicts.always(400, 400)) == "reproduced"
    assert verdict(verdicts.always(0, 0)) == "not measured"


def test_what_is_seen_often() -> None:
    assert verdict(verdicts.often(3, 4)) == "reproduced"
    assert verdict(verdicts.often(1, 4)) == "in part"
    assert verdict(verdicts.often(0, 4)) == "not reproduced"


def test_numbers_in_words() -> None:
    assert verdicts.percent([-0.35, -0.48, -0.4]) == "−40 % (−48 % to −35 %)"
    assert verdicts.figures([0.5], "s") == "0.500 s"
    assert verdicts.figures([]) == "nothing"
