"""The parts of the matching benchmark work, small; the command writes its results and fails when an answer is wrong."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.bench.watching import Quiet
from tieline.bench.brokers import Tieline
from tieline.bench.load.job import Failure, Generator
from tieline.bench.match import cases
from tieline.bench.match.broker import PLAIN, WITH_NUMBA, WITHOUT_NUMBA, check_numba, connected
from tieline.bench.match.cases import make_plan
from tieline.bench.match.engines import Numba, present_engines
from tieline.bench.match.shapes import EVENT_TYPE, SPREADS, Shape
from tieline.bench.match.suite import METRICS, SUITE, compared
from tieline.bench.peer import Instance
from tieline.bench.suite import report, runner
from tieline.bench.suite.results import Results, Row, Verdict
from tieline.cli.bench import app
from tieline.cli.trouble import Trouble

TINY = replace(
    cases.QUICK,
    configurations=(cases.HEADLINE.with_subscriptions(200),),
    passes=2,
    search_s=0.02,
    update_sizes=(200,),
    spreads=SPREADS[:1],
    conditions=300,
    clients=10,
    events=200,
    spell_s=0.05,
    beside_s=0.02,
    repetitions=1,
)


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cases, "QUICK", TINY)


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize("part", ["engine", "update", "end"])
def test_a_part_gets_its_numbers(part: str) -> None:
    quiet = Quiet()
    record = runner.run(SUITE, make_plan([part], quick=True), quiet)
    assert [row.note for row in record.rows] == [""] * len(record.rows)
    assert record.rows == quiet.rows != []
    assert len(quiet.begun) == quiet.steps
    assert record.totals["compared"] == compared(record) > 0
    assert {metric for row in record.rows for metric in row.metrics} <= METRICS.keys()
    assert {row.group for row in record.rows} == {part}
    if part == "engine":
        assert [row.peer for row in record.rows] == present_engines()
    if part == "end":
        assert [row.peer for row in record.rows] == [PLAIN, WITH_NUMBA if Numba.is_present() else WITHOUT_NUMBA]
        assert record.rows[1].metrics["rate_ratio"] > 0


def test_every_spread_is_delivered_to_those_who_asked() -> None:
    instance = Instance(Tieline(EVENT_TYPE, without="numba"), None)
    try:
        at = instance.start()
        for spread in SPREADS:
            shape = Shape(spread=spread, subscriptions=300, clients=10, events=200)
            with connected(WITHOUT_NUMBA, at, shape.clients) as broker:
                broker.load(shape)
                broker.compare(shape)  # raises unless every message reached its owner, and nobody else
                broker.flow.close()
        check_numba(at.pid, is_expected=False)
        with pytest.raises(Failure, match="mislabelled"):
            check_numba(at.pid, is_expected=True)
    finally:
        instance.stop()


@pytest.mark.usefixtures("tiny")
def test_a_broker_that_fails_becomes_rows_that_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Generator, job: object, at: object) -> dict[str, float]:
        raise Failure("it would not")

    monkeypatch.setattr(Generator, "run", refuse)
    record = runner.run(SUITE, make_plan(["end"], quick=True), Quiet())
    assert {(row.status, row.note) for row in record.rows} == {("failed", "it would not")}
    assert len(list(SUITE.faults(record))) == len(record.rows)


def judge(record: Results) -> list[Verdict]:
    return [goal.judge(record) for goal in SUITE.goals]


def made_up() -> Results:
    """Round numbers for every goal."""
    record = Results(
        form="match-2",
        quick=True,
        started="2026-01-01T00:00:00+00:00",
        commit="abc",
        machine={"processor": "Abacus", "cores": 2, "memory_gb": 1.0, "kernel": "6"},
        versions={"tieline": "1"},
        absent={"rtree": "pip install 'tieline[bench]'"},
    )
    for configuration in cases.CONFIGURATIONS:
        for engine, p50_us in (("small", 9.0), ("numpy", 400.0), ("numba", 4.0)):
            metrics = {"match_p50_us": p50_us, "match_p99_us": 12.0, "first_p50_us": 11.0, "batch_rate": 1e6}
            record.rows.append(
                Row(
                    workload=configuration.name,
                    title=configuration.column,
                    group="engine",
                    peer=engine,
                    repetitions=[{**metrics, "compared": 50}],
                )
            )
    for spread in SPREADS:
        for peer, ratio in ((PLAIN, None), (WITH_NUMBA, 0.3), (WITHOUT_NUMBA, 0.1)):
            metrics = {"rate": 1e5, "cpu_us_delivered": 3.0}
            if ratio is not None:
                metrics |= {"rate_ratio": ratio, "beside_one": 1.0, "beside_many": 0.9}
            record.rows.append(
                Row(
                    workload=cases.end_name(spread, cases.MANY),
                    title=f"100k, {spread}",
                    group="end",
                    peer=peer,
                    repetitions=[metrics],
                )
            )
    record.totals |= SUITE.totals(record)
    record.goals = judge(record)
    return record


def test_goals_are_judged_by_the_rows() -> None:
    verdicts = [(goal.measured, goal.verdict) for goal in made_up().goals]
    assert verdicts == [
        (4.0, "met"),
        (400.0, "met"),
        (4.0, "met"),
        (0.3, "met"),
        (0.3, "met"),
        (0.3, "met"),
        (1.0, "met"),
        (0.9, "not met"),
    ]
    record = made_up()
    record.rows.clear()
    assert {goal.verdict for goal in judge(record)} == {"not measured"}


def test_the_slowest_configuration_of_few_subscriptions_counts_in_its_faster_engine() -> None:
    record = made_up()
    row = record.row(cases.COLUMNS[8].with_subscriptions(cases.SMALL).name, "numba")
    assert row is not None
    row.repetitions[0]["match_p50_us"] = 30.0
    assert judge(record)[2].measured == 9.0  # the small index, where numba is slow


def test_reports_hold_every_engine_and_what_is_absent(tmp_path: Path) -> None:
    record = made_up()
    record.rows[0].status, record.rows[0].note = "failed", "small found 3 instead of 4"
    page = report.markdown(SUITE, record)
    assert "absent: rtree" in page
    assert "| U, 2 attributes, 0.01 % | failed | 400 µs, 12.0 µs, 11.0 µs, 1.00 M/s |" in page
    assert "small found 3 instead of 4" in page
    assert "| 1M subscriptions, 3 attributes, 0.1 %: p50 of an event, numba | ≤ 100 µs | 4.00 µs | met |" in page
    record.write(tmp_path / "match.json")
    data = json.loads((tmp_path / "match.json").read_text())
    assert data["format"] == "tieline-bench-match-2"
    assert data["compared"] == 50 * 3 * len(cases.CONFIGURATIONS)
    assert [goal["verdict"] for goal in data["goals"]] == [goal.verdict for goal in record.goals]


def test_the_picture_shows_what_there_is(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    record = made_up()
    assert SUITE.picture is not None
    assert SUITE.picture.draw(record, tmp_path / "match.png")
    assert (tmp_path / "match.png").read_bytes().startswith(b"\x89PNG")
    record.rows.clear()
    assert not SUITE.picture.draw(record, tmp_path / "none.png")


def test_a_broker_that_is_not_what_its_row_says_is_a_failure() -> None:
    with pytest.raises(Failure, match="nothing is known"):
        check_numba(-1, is_expected=True)


@pytest.mark.usefixtures("tiny")
def test_the_command_writes_its_results(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["match", "--quick", "--part", "engine", "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    assert "0 rows failed" in result.output
    assert json.loads((tmp_path / "match.json").read_text())["compared"] > 0
    assert "### Goals" in (tmp_path / "match.md").read_text()


def test_the_command_fails_when_an_answer_was_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record = made_up()
    record.rows[0].status, record.rows[0].note = "failed", "small found 3 instead of 4"
    monkeypatch.setattr(runner, "run", lambda suite, plan, watcher: record)
    result = CliRunner().invoke(app, ["match", "--out", str(tmp_path)])
    assert isinstance(result.exception, Trouble)
    assert "small found 3 instead of 4" in str(result.exception)
    assert (tmp_path / "match.json").exists()


def test_a_quick_run_measures_every_goal() -> None:
    if not Numba.is_present():
        pytest.skip("goals about numba need numba")
    reasons = make_plan(quick=True).reasons()
    assert [goal.text for goal in SUITE.goals if goal.objection(reasons, {})] == []


def test_an_unknown_part_is_refused_with_a_sentence() -> None:
    assert isinstance(CliRunner().invoke(app, ["match", "--part", "engines"]).exception, Trouble)
