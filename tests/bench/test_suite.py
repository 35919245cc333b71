"""A benchmark of two cases: what is told before it runs, what fails, what is left out, and what is shown of it."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.console import Console

from tests.bench.watching import Quiet
from tieline.bench.load.job import TurnedDown
from tieline.bench.metrics import Metric
from tieline.bench.suite import report, runner
from tieline.bench.suite.declaration import Case, Goal, GroupTable, Running, Schedule, Suite, value_goal
from tieline.bench.suite.results import Results, Row, rows_of
from tieline.bench.suite.runner import Steps

SPEED = Metric("how fast it is", "/s", more_is_better=True)
OURS, THEIRS = ("walk", "ours"), ("walk", "theirs")
SUITE = Suite(
    name="toy",
    metrics={"speed": SPEED, "is_sure": Metric("whether it is sure", "yes")},
    tables={"walks": GroupTable(title="Walks", columns={"speed": "speed", "is_sure": "sure"})},
    goals=(
        value_goal("walking", 10.0, "/s", OURS, "speed", at_least=True),
        Goal(
            text="walking{}, times theirs",
            limit=2.0,
            unit="x",
            value=lambda record: record.ratio("walk", "speed", "ours", "theirs"),
            rows=(OURS,),
            against=(THEIRS,),
            at_least=True,
            detail=lambda record: f" {len(record.rows)} ways",
        ),
        value_goal("running", 20.0, "/s", ("run", "ours"), "speed", at_least=True),
    ),
    failures=(ZeroDivisionError,),
)


def filling(run: Running, rows: list[Row]) -> None:
    for row in rows:
        run.step(f"{row.workload}: {row.peer}")
        row.repetitions += [{"speed": 30.0 if row.peer == "ours" else 10.0, "is_sure": sure} for sure in (1.0, 0.0)]


def breaking(run: Running, rows: list[Row]) -> None:
    run.step("breaking")
    with run.failing(rows[:1]):
        refuse()
    with run.failing(rows[1:]):
        filling(run, rows[1:])
        rows[1].repetitions.append({"speed": 1 / 0})


def refuse() -> None:
    raise TurnedDown("not today")


def planned(
    *,
    run_obstacle: str = "",
    walk_s: float = 1.0,
    budget_s: float = 60.0,
    peers: tuple[str, ...] = ("ours", "theirs"),
    absent: dict[str, str] | None = None,
) -> Schedule:
    return Schedule(
        cases=[
            Case(rows=rows_of("walk", "a walk", "walks", peers), measure=filling, seconds=walk_s, steps=len(peers)),
            Case(rows=rows_of("run", "a run", "walks", ["ours"]), measure=filling, seconds=1.0, obstacle=run_obstacle),
        ],
        quick=True,
        versions={"toy": "1"},
        absent=absent or {},
        budget_s=budget_s,
    )


def verdicts(record: Results) -> dict[str, tuple[str, str]]:
    return {goal.text: (goal.verdict, goal.why) for goal in record.goals}


def test_everything_that_is_planned_is_measured_and_judged() -> None:
    quiet = Quiet()
    record = runner.run(SUITE, planned(), quiet)
    assert quiet.said == []
    assert quiet.steps == len(quiet.begun) == 3
    assert record.rows == quiet.rows
    assert verdicts(record) == {
        "walking": ("met", ""),
        "walking 3 ways, times theirs": ("met", ""),
        "running": ("met", ""),
    }


def test_what_will_not_be_measured_is_said_before_it_starts() -> None:
    quiet = Quiet()
    record = runner.run(SUITE, planned(run_obstacle="it rains"), quiet)
    assert quiet.said == ["will not be measured, because it rains:", "  running"]
    assert verdicts(record)["running"] == ("not measured", "it rains")
    assert [(row.status, row.note) for row in record.rows if row.workload == "run"] == [("not run", "it rains")]


def test_a_run_without_enough_time_says_so_before_it_starts() -> None:
    (why,) = SUITE.forecast(planned(walk_s=100.0))
    assert SUITE.forecast(planned(walk_s=100.0)) == {why: ["running"]}
    assert "60 s of this run" in why
    record = runner.run(SUITE, planned(budget_s=-1.0), Quiet())
    assert {row.note for row in record.rows} == {"-1 s were over"}


def test_an_absent_peer_is_a_reason_with_its_remedy() -> None:
    plan = planned(peers=("ours",), absent={"theirs": "buy one"})
    assert SUITE.forecast(plan) == {"theirs is not installed (to install it: buy one)": ["walking, times theirs"]}


def test_what_nobody_asked_for_is_not_told() -> None:
    plan = planned()
    plan = Schedule(cases=plan.cases[:1], quick=True, versions={}, budget_s=60.0)
    assert SUITE.forecast(plan) == {}
    record = runner.run(SUITE, plan, Quiet())
    assert verdicts(record)["running"] == ("not measured", "not asked for")
    out = io.StringIO()
    report.show(SUITE, record, Console(file=out, width=120))
    assert "running" not in out.getvalue()
    assert "| running | ≥ 20.0 /s | - | not measured: not asked for |" in report.markdown(SUITE, record)


def test_a_failure_is_the_last_word_of_its_rows_only() -> None:
    case = Case(rows=rows_of("walk", "a walk", "walks", ["ours", "theirs"]), measure=breaking, seconds=1.0)
    plan = Schedule(cases=[case, planned().cases[1]], quick=False, versions={}, budget_s=60.0)
    record = runner.run(SUITE, plan, Quiet())
    assert [(row.status, row.note) for row in record.rows] == [
        ("failed", "not today"),
        ("failed", "division by zero"),
        ("measured", ""),
    ]
    assert verdicts(record)["walking"] == ("not met", "not today")
    assert record.failures == ["a walk: ours: not today", "a walk: theirs: division by zero"]


def test_a_failure_without_rows_is_not_swallowed() -> None:
    case = Case(rows=[], measure=lambda _run, _rows: refuse(), seconds=1.0)
    with pytest.raises(TurnedDown):
        runner.run(SUITE, Schedule(cases=[case], quick=False, versions={}, budget_s=60.0), Quiet())


def test_resources_are_open_while_cases_run() -> None:
    opened: list[str] = []

    @contextlib.contextmanager
    def resource() -> Iterator[None]:
        opened.append("open")
        yield
        opened.append("closed")

    def looking(_run: Running, _rows: list[Row]) -> None:
        assert opened == ["open"]

    rows = rows_of("walk", "a walk", "walks", ["ours"])
    case = Case(rows=rows, measure=looking, seconds=1.0)
    runner.run(SUITE, Schedule(cases=[case], quick=False, versions={}, budget_s=60.0, resources=[resource()]), Quiet())
    assert opened == ["open", "closed"]
    never = Case(rows=rows, measure=looking, seconds=1.0, obstacle="it rains")
    runner.run(SUITE, Schedule(cases=[never], quick=False, versions={}, budget_s=60.0, resources=[resource()]), Quiet())
    assert opened == ["open", "closed"]


def test_the_file_and_the_page_hold_what_was_found(tmp_path: Path) -> None:
    out = io.StringIO()
    with Steps(Console(file=out, width=120), lambda row: report.line(SUITE, row)) as steps:
        record = runner.run(SUITE, planned(), steps)
    assert "[3/3] run: ours" in out.getvalue() and "a walk: theirs: speed 10.0 /s, sure 50 %" in out.getvalue()
    record.write(tmp_path / "toy.json")
    data = json.loads((tmp_path / "toy.json").read_text())
    assert data["format"] == "tieline-bench-toy-2"
    assert [row["metrics"]["speed"] for row in data["rows"]] == [30.0, 10.0, 30.0]
    assert "| a walk | ours | 30.0 /s | 1 of 2 |" in report.markdown(SUITE, record)
