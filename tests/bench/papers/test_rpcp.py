"""The covering paper's declaration on networks small enough for a test: tables, claims, and both ways to run jobs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("numba")
pytest.importorskip("scipy")

from tests.kits.check_paper import check_repeatable
from tests.sim.sensors.worlds import SMALL
from tieline.bench.papers.frame.declaration import Experiment, Parameter, Request
from tieline.bench.papers.frame.table import Table
from tieline.bench.papers.rpcp import PAPER, lifetime, readings, runs, sensitivity, sweep, theorems, trees
from tieline.bench.papers.rpcp.runs import OURS, PRINTED, Job, carry_out
from tieline.sim.sensors.parameters import Parameters, stated
from tieline.sim.sensors.protocols import PROTOCOLS

_TINY = replace(SMALL, nodes=40, radius_m=90.0, clusters=5, settle_s=5.0, duration_s=5.0, drain_s=5.0)


def _tiny(events: float, **more: float) -> Parameters:
    known = {name: value for name, value in more.items() if name != "battery_j"}
    return replace(_TINY, events_per_100s=float(events), battery_j=0.02, **known)  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (sweep, lifetime, readings, sensitivity):
        monkeypatch.setattr(module, "loaded", _tiny)
    monkeypatch.setattr(runs, "_WORTH", 10**6)
    monkeypatch.setattr(lifetime, "LONGEST_S", 40.0)
    monkeypatch.setattr(sensitivity, "LONGEST_S", 30.0)


def _experiment(name: str) -> Experiment:
    return next(one for one in PAPER.experiments if one.name == name)


@pytest.mark.parametrize("name", ["sweep", "lifetime", "readings", "fitted"])
def test_a_small_run_is_repeatable_and_decides_its_claims(name: str, tmp_path: Path) -> None:
    experiment = _experiment(name)
    tables = {table.name: table for table in check_repeatable(experiment, Request(), tmp_path)}
    for figure in experiment.figures:
        claims = list(figure.claims(tables))
        assert all(claim.paper_says and claim.we_measure and claim.why for claim in claims)
        assert all(claim.judgement.verdict != "not measured" for claim in claims)
        if figure.sheet is not None:
            sheet = figure.sheet(tables)
            assert all(len(line) == len(sheet.headings) for line in sheet.lines)


def test_every_load_means_every_load() -> None:
    columns = ("protocol", "events", "seed", "first_death", "tenth_dead", "half_dead", "loss", "success")
    rows = [
        (name, events, seed, 10.0, 20.0, 30.0, 960.0 if name == "psm" and (events, seed) == (50.0, 0) else loss, 1.0)
        for name, loss in ((PRINTED, 950.0), (OURS, 950.0), ("psm", 900.0), ("cetp", 800.0), ("rpcp-filter-still", 1.0))
        for events in (50.0, 800.0)
        for seed in range(3)
    ]
    found = list(lifetime.claims({"lifetime": Table("lifetime", dict.fromkeys(columns, ""), rows)}))
    verdicts = {claim.paper_says: claim for claim in found if "longest under" in claim.paper_says}
    assert {claim.we_measure for claim in verdicts.values()} == {
        "in 11 of 12 comparisons, by loss, and equally long in 0"
    }
    assert [claim.judgement.verdict for claim in verdicts.values()] == ["reproduced", "not reproduced"]


def test_who_lives_equally_long_has_not_won() -> None:
    columns = ("protocol", "events", "seed", "first_death", "tenth_dead", "half_dead", "loss", "success")
    rows = [
        (name, events, 0, 10.0, 20.0, 30.0, 900.0, 1.0)
        for name in (PRINTED, OURS, "psm", "cetp", "rpcp-filter-still")
        for events in (50.0, 800.0)
    ]
    claims = lifetime.claims({"lifetime": Table("lifetime", dict.fromkeys(columns, ""), rows)})
    longest = [claim for claim in claims if "longest" in claim.paper_says or "by every definition" in claim.paper_says]
    assert len(longest) == 4
    assert {claim.judgement.verdict for claim in longest} == {"not reproduced"}
    assert "in 0 of 4 comparisons, by loss, and equally long in 4" in {claim.we_measure for claim in longest}


def test_what_jobs_have_of_their_own_is_stated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "outcome", lambda job: job)
    stated: list[Parameter] = []
    jobs = [Job(OURS, Parameters(battery_j=0.5, topics=count), 0, 40.0) for count in (2, 10)]
    assert [job for job, _ in carry_out(jobs, Request(stated=stated.append), note="few topics")] == jobs
    assert [(one.name, one.value, one.note) for one in stated] == [
        ("battery_j", "0.5", "few topics"),
        ("topics", "2, 10", "few topics"),
        ("until all is over, at most", "40", "few topics"),
    ]


def test_no_battery_is_smaller_than_half_a_joule(monkeypatch: pytest.MonkeyPatch) -> None:
    batteries: set[float] = set()

    def seen(jobs: list[Job], _request: Request, *, note: str = "") -> list[object]:
        batteries.update(job.parameters.battery_j for job in jobs)
        return []

    for module in (lifetime, sensitivity):
        monkeypatch.setattr(module, "loaded", runs.loaded)
        monkeypatch.setattr(module, "carry_out", seen)
    for effort in ("quick", "full"):
        lifetime.measure(Request(effort=effort))
        sensitivity.measure_fitted(Request(effort=effort))
    assert min(batteries) >= 0.5


def test_many_processes_find_what_one_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = [Job(name, _tiny(200), seed) for seed in (0, 1) for name in (OURS, "psm")]
    alone = [found for _, found in carry_out(jobs, Request())]
    monkeypatch.setattr(runs, "_WORTH", 1)
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    assert [found for _, found in carry_out(jobs, Request())] == alone


def test_every_protocol_that_is_drawn_exists_and_has_a_name() -> None:
    drawn = {*sweep.PROTOCOLS, *lifetime.PROTOCOLS, *(name for names in readings._READINGS.values() for name in names)}
    assert drawn <= set(PROTOCOLS)
    assert drawn <= set(runs.NAMES)


def test_every_parameter_is_on_the_page_and_the_fitted_ones_are_in_the_captions() -> None:
    assert [one.name for one in PAPER.parameters] == [one.name for one in stated(Parameters())]
    fitted = {one.name for one in PAPER.parameters if one.origin == "fitted"}
    assert fitted == {"frame_ms", "idle_mw"}
    simulated = [figure for experiment, figure in PAPER.figures() if experiment.name != "theorems"]
    assert all(figure.fitted for figure in simulated)


def test_covering_by_hand_and_by_the_arrays_agree() -> None:
    interests = trees.boxes(np.random.default_rng(3), 60, 0.9, 2)
    by_hand = [any(other is not one and other.covers(one) for other in interests) for one in interests]
    assert trees.covered_share(interests) == pytest.approx(sum(by_hand) / len(by_hand))


def test_a_head_of_a_random_tree_holds_what_comes_from_below() -> None:
    heads, interests, _ = trees.grown(1, 0.4, "none")
    below = heads.below()
    assert below[0] == len(heads.parent) == len(interests) / trees.OWN
    # without covering everything goes up
    assert [len(table) for table in heads.tables] == [trees.OWN * count for count in below]
    covered, _, _ = trees.grown(1, 0.4, "suboptimal")
    assert all(len(one) <= len(other) for one, other in zip(covered.tables, heads.tables, strict=True))


def test_algorithm_2_at_its_word_misses_branches() -> None:
    count, reached = trees.taken_at_its_word(np.random.default_rng(0))
    assert 0 < reached < count


def test_theorems_are_decided(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(theorems, "_WIDTHS", (0.1, 0.95))
    tables = {table.name: table for table in theorems.measure(Request())}
    verdicts = {
        claim.where: claim.judgement.verdict for claim in theorems.claims(tables) if "(ours)" not in claim.paper_says
    }
    assert verdicts["Theorem 1"] == "not reproduced"
    assert verdicts["Theorem 2"] == verdicts["Theorem 4"] == "reproduced"
    assert PRINTED in runs.NAMES
