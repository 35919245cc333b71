"""The planner's benchmark: its arithmetic, its verdicts, and one small run from the command line."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

import pytest

from tieline.bench.plan.bounds import BOUNDS, PAPER, BoundCheck, scarce, tallies
from tieline.bench.plan.cases import FULL, MIDDLE, NAIVE, OURS, TIGHTNESS, found_name, make_plan, replan_name, size_name
from tieline.bench.plan.measures import LOOSE, Clock
from tieline.bench.plan.suite import METRICS, SUITE, TABLES
from tieline.bench.suite import report
from tieline.bench.suite.results import Results, Row, Verdict
from tieline.plan.run import Progress


def solved(cpu_s: float, *, found_s: float = 0.1, is_proven: bool = True, unmet: int = 0) -> dict[str, float]:
    return {
        "cpu_s": cpu_s, "wall_s": cpu_s, "found_s": found_s, "is_proven": float(is_proven),
        "gap": 0.0 if is_proven else 0.02, "unmet": float(unmet), "objective": 100.0,
    }  # fmt: skip


def looked_for(best_wall_s: float, *, is_found: bool = True, unmet: int = 0) -> dict[str, float]:
    return {
        "is_found": float(is_found), "best_wall_s": best_wall_s, "soon": 0.01, "is_proven": 1.0, "unmet": float(unmet),
    }  # fmt: skip


@pytest.fixture(name="record")
def _record() -> Results:
    rows = [
        Row(workload=size_name("res0", LOOSE), title="res0", group="sizes", peer=OURS, repetitions=[solved(0.2)]),
        Row(
            workload=size_name("res5", LOOSE), title="res5", group="sizes", peer=OURS,
            repetitions=[solved(1.0, found_s=0.5), solved(3.0, found_s=0.7)],
        ),
        Row(
            workload=size_name("res5", LOOSE), title="res5", group="sizes", peer=NAIVE,
            repetitions=[solved(8.0), solved(16.0, is_proven=False)],
        ),
        Row(
            workload=size_name("res5", 0.6), title="res5 tight", group="sizes", peer=OURS,
            repetitions=[solved(9.0, found_s=8.0, unmet=3)],
        ),
        Row(
            workload=found_name("res5", LOOSE), title="res5 found", group="found", peer=OURS,
            repetitions=[looked_for(0.7), looked_for(0.2), looked_for(3.0, unmet=1)],
        ),
        Row(
            workload=MIDDLE.name, title=MIDDLE.title, group="networks", peer=OURS,
            repetitions=[{**solved(15.0, is_proven=False), "first_s": 0.1, "done_s": 2.0}],
        ),
        Row(
            workload=replan_name(MIDDLE), title="a link", group="replan", peer=OURS,
            repetitions=[
                {
                    "warm_s": 0.1, "read_s": 0.2, "proven_s": 0.2, "cold_s": cold, "as_good_s": 0.3, "moved": 4.0,
                    "moved_cold": 90.0, "flows": 200.0,
                    "lost": 0.0, "gap": 0.01,
                }
                for cold in (2.0, 1.5)
            ],
        ),
        *(
            Row(
                workload="bounds", title="small", group="bounds", peer=name,
                repetitions=[{"instances": 50.0, "above": 7.0 if name == PAPER else 0.0, "closeness": 0.9}],
            )
            for name in (*BOUNDS, PAPER)
        ),
    ]  # fmt: skip
    record = Results(
        form="plan-2", quick=True, started="now", commit="abc",
        machine={"processor": "p", "cores": 2, "memory_gb": 1, "kernel": "k"}, versions={"tieline": "0"}, absent={},
        rows=rows,
    )  # fmt: skip
    record.goals = judge(record)
    return record


def judge(record: Results) -> list[Verdict]:
    return [goal.judge(record) for goal in SUITE.goals]


def verdicts(record: Results) -> dict[str, tuple[float | None, str]]:
    return {goal.text: (goal.measured, goal.verdict) for goal in record.goals}


def test_goals_are_about_the_worst_instance(record: Results) -> None:
    found = verdicts(record)
    assert found["tiny to res0, every tightness: proven optimal, the slowest"] == (0.2, "met")
    # the instance in which requests stay unmet has no part in this one
    assert found["res5, requests fit, 2 instances: the best known plan found, the slowest"] == (0.7, "met")
    assert found["res5, loose: proven optimal, the slowest"] == (3.0, "met")
    assert found["res5, loose: the naive model's time, times ours"] == (6.0, "met")
    assert found["res7, loose: proven optimal, the slowest"] == (None, "not measured")
    assert found["300 nodes, 800 requests, all fit: gap after 15 s, the largest"] == (2.0, "not met")
    ratio, verdict = found[
        "300 nodes, a link fails: a cold start's time to a gap of 1 %, times re-planning's, the least"
    ]
    assert ratio == pytest.approx(15.0) and verdict == "met"
    ratio, verdict = found["300 nodes, a link fails: a cold start's time until as good, times re-planning's, the least"]
    assert ratio == pytest.approx(3.0) and verdict == "not met"


def test_the_papers_bound_does_not_count_against_ours(record: Results) -> None:
    assert verdicts(record)["50 small instances: bounds above the optimum"] == (0.0, "met")
    row = record.row("bounds", BOUNDS[1])
    assert row is not None
    row.repetitions[0]["above"] = 1.0
    assert {goal.text: goal.verdict for goal in judge(record)}[
        "50 small instances: bounds above the optimum"
    ] == "not met"


def test_what_is_not_proven_is_not_fast(record: Results) -> None:
    row = record.row(size_name("res0", LOOSE), OURS)
    assert row is not None
    row.repetitions.append(solved(0.01, is_proven=False))
    goal = judge(record)[0]
    assert goal.measured == math.inf and goal.verdict == "not met"


def test_a_plan_that_was_never_found_is_not_fast(record: Results) -> None:
    row = record.row(found_name("res5", LOOSE), OURS)
    assert row is not None
    row.repetitions.append(looked_for(0.3, is_found=False))
    goal = next(goal for goal in judge(record) if goal.text.startswith("res5, requests fit, 3 instances"))
    assert goal.measured == math.inf and goal.verdict == "not met"
    assert "3 of 4" in report.markdown(SUITE, record)


def test_the_report_says_what_is_at_least(record: Results, tmp_path: Path) -> None:
    page = report.markdown(SUITE, record)
    assert "ended by its time limit 1 times" in page
    assert "| res5 | naive F1 | 12.0 s / 16.0 s |" in page
    record.write(tmp_path / "plan.json")
    written = json.loads((tmp_path / "plan.json").read_text())
    assert written["format"] == "tieline-bench-plan-2"
    assert {goal["verdict"] for goal in written["goals"]} == {"met", "not met", "not measured"}
    assert SUITE.picture is not None
    assert SUITE.picture.draw(record, tmp_path / "plan.png")


def test_every_number_has_a_meaning(record: Results) -> None:
    for table in TABLES.values():
        assert table.columns.keys() <= METRICS.keys()
    for row in record.rows:
        assert row.metrics.keys() <= METRICS.keys()


def test_steps_are_counted() -> None:
    assert make_plan(["bounds"], quick=False).steps == 2
    sizes = len(FULL.sizes) * len(FULL.tightness)
    meshes = len(FULL.meshes) + 1 + len(FULL.failures)
    found = 2 * len(TIGHTNESS)
    assert make_plan(quick=False).steps == 1 + sizes + found + meshes + 1 + len(FULL.talkative)


def test_a_quick_run_measures_every_goal() -> None:
    assert SUITE.forecast(make_plan(quick=True)) == {}
    reasons = make_plan(quick=True).reasons()
    assert [goal.text for goal in SUITE.goals if goal.objection(reasons, {})] == []


def test_a_clock_notes_when_a_plan_was_there() -> None:
    clock = Clock()
    for objective, bound in ((math.inf, -math.inf), (120.0, 90.0), (101.0, 100.0), (100.0, 100.0)):
        clock.hear(Progress(doing="search", seconds=0.0, objective=objective, unmet=0, bound=bound))
    first, second, _ = clock.words
    assert clock.reached(101.0) is second and clock.reached(99.0) is None
    assert clock.narrowed(0.01) is second and clock.narrowed(0.5) is first


def test_a_bound_above_the_optimum_is_counted() -> None:
    tally = BoundCheck()
    tally.add(100.0, 100.0)
    tally.add(80.0, 100.0)
    tally.add(101.0, 100.0)
    assert tally.metrics == {"instances": 3.0, "above": 1.0, "closeness": pytest.approx(0.9)}


def test_bounds_of_scarce_instances() -> None:
    assert scarce(3) == scarce(3) != scarce(4)
    found = tallies(8)
    assert all(found[name].above == 0 for name in BOUNDS)


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_a_part_from_the_command_line(tmp_path: Path) -> None:
    words = ("bench", "plan", "--quick", "--part", "bounds", "--json", "--out", str(tmp_path))
    done = subprocess.run(
        [sys.executable, "-m", "tieline", *words], capture_output=True, text=True, timeout=110, check=False
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["goals"]
