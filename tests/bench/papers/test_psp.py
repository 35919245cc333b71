"""The planner's paper: verdicts follow from numbers, and what can be repeated comes out again."""

from __future__ import annotations

import pytest

from tieline.bench.papers.frame.declaration import Effort, Request
from tieline.bench.papers.frame.table import Cell, Table
from tieline.bench.papers.psp import instances, tables
from tieline.bench.papers.psp.bound import counterexample

INSTANCES = (
    "size",
    "tightness",
    "seed",
    "nodes",
    "arcs",
    "topics",
    "subscribers",
    "requests",
    "optimum",
    "best",
    "unmet",
    "paper_bound",
    "claims_optimal",
    "printed_value",
    "limit_s",
)
METHODS = ("size", "tightness", "seed", "method", "cpu_s", "objective", "unmet", "proven", "bound", "distance")
ANNEALING = ("size", "tightness", "seed", "run", "cpu_s", "best_s", "found", "objective", "distance")


def made_up(*, good: bool, limit_s: float = 10.0) -> dict[str, Table]:
    bound, printed = (100.0, 100.0) if good else (103.0, 60.0)
    instance: tuple[Cell, ...] = ("case3", 2.0, 0, 20, 57, 6, 3, 12, 100.0, 100.0, 0, bound, True, printed, limit_s)
    methods: list[tuple[Cell, ...]] = [
        ("case3", 2.0, 0, instances.OURS, 0.1, 100.0, 0, True, 100.0, 0.0),
        ("case3", 2.0, 0, instances.NAIVE, 9.0, 100.0, 0, good, 90.0, 0.0),
        ("case3", 2.0, 0, instances.LAGRANGIAN, 0.1, 100.0, 0, False, 90.0, 0.0 if good else 0.02),
    ]
    gaps = (0.0, 2.09) if good else (0.0, 0.02)
    annealing: list[tuple[Cell, ...]] = [
        (size, 2.0, 0, run, 1.0, 0.5, True, 130.0, gap)
        for size, gap in zip(("tiny", "res5"), gaps, strict=True)
        for run in range(5)
    ]
    small = (400, 0 if good else 24)
    found: list[tuple[str, tuple[str, ...], list[tuple[Cell, ...]]]] = [
        ("instances", INSTANCES, [instance]),
        ("methods", METHODS, methods),
        ("annealing", ANNEALING, annealing),
        ("small", ("instances", "above"), [small]),
        ("counterexample", ("paper_value", "minimum"), [(2.0, 1.5)]),
    ]
    return {name: Table(name, dict.fromkeys(columns, ""), rows) for name, columns, rows in found}


def verdicts_of(found: dict[str, Table]) -> dict[str, str]:
    makers = (tables.sizes_claims, tables.times_claims, tables.annealing_claims, tables.printed_claims)
    return {claim.where: claim.judgement.verdict for make in makers for claim in make(found)}


def test_sentences_of_the_paper_are_judged() -> None:
    assert verdicts_of(made_up(good=True)) == {
        "Table 1": "reproduced",
        "Table 2, t.MIP": "reproduced",
        "Table 2, gap": "reproduced",
        "Table 2, *": "reproduced",
        "(20), (21)": "reproduced",
        "Table 2, SA gap": "reproduced",
        "Table 2, SA n.opt": "reproduced",
        "Table 2, SA n.a.": "not reproduced",
        "(1) to (7)": "reproduced",
    }
    assert verdicts_of(made_up(good=False)) == {
        "Table 1": "reproduced",
        "Table 2, t.MIP": "not measured",
        "Table 2, gap": "not reproduced",
        "Table 2, *": "not reproduced",
        "(20), (21)": "not reproduced",
        "Table 2, SA gap": "not reproduced",
        "Table 2, SA n.opt": "reproduced",
        "Table 2, SA n.a.": "not reproduced",
        "(1) to (7)": "not reproduced",
    }


def test_a_limit_as_long_as_the_papers_decides() -> None:
    assert verdicts_of(made_up(good=False, limit_s=600.0))["Table 2, t.MIP"] == "not reproduced"


def test_the_tables_mark_what_is_the_papers() -> None:
    found = made_up(good=False)
    assert tables.sizes_sheet(found).lines == [["case3", "20", "57", "6", "3", "20", "57", "6", "3", "12"]]
    (line,) = tables.times_sheet(found).lines
    assert line[2:4] == ["0.4", "0.08"] and "≥ 9.00" in line and "1 of 1" in line and "2.0 %" in line
    lines = tables.annealing_sheet(found).lines
    assert lines[1][:5] == ["res5", "2", "209", "0", "78.9"] and lines[0][7:9] == ["5.0", "5 of 5"]


def test_the_counter_example() -> None:
    example = counterexample()
    assert example.paper_value == pytest.approx(2.0)
    assert example.minimum == pytest.approx(1.5)


def test_only_a_long_run_has_the_limit_of_the_paper() -> None:
    efforts: tuple[Effort, ...] = ("quick", "full", "long")
    seconds = {effort: instances.limits(Request(effort=effort)).naive_s for effort in efforts}
    assert seconds["quick"] < seconds["full"] < seconds["long"] == 600.0
