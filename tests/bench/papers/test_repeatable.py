"""Experiments that no clock has a part in come out again, byte by byte, from the same seed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kits.check_paper import check_repeatable
from tieline.bench.papers.frame.declaration import N, Request
from tieline.bench.papers.frame.table import Table
from tieline.bench.papers.psp import PAPER as PSP
from tieline.bench.papers.psp import bound, future, plans, printed
from tieline.bench.papers.ring import PAPER as RING
from tieline.bench.papers.ring import measures
from tieline.plan.generate.testset import paper


def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plans, "SHOWN", {"tiny": 2.0, "case2": 1.2, "res0": 1.2})
    monkeypatch.setattr(future, "ROBUST", (0, 1))
    monkeypatch.setattr(future, "_SIZE", "case2")


class OneSeed(Request):
    """Only the first of the seeds."""

    def seeds(self, *, quick: int, full: int, long: int | None = None, note: str = "") -> range:
        return range(self.seed, self.seed + 1)


@pytest.mark.parametrize("name", [experiment.name for experiment in PSP.experiments if experiment.repeatable])
def test_plans_come_out_again(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _small(monkeypatch)
    experiment = next(one for one in PSP.experiments if one.name == name)
    tables = check_repeatable(experiment, OneSeed(seed=3), tmp_path)
    assert {table.name for table in tables} == {name for figure in experiment.figures for name in figure.tables}


def test_constraints_on_a_ring_come_out_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measures, "NODES", (5, 10))
    experiment = next(one for one in RING.experiments if one.name == "constraints")
    tables = check_repeatable(experiment, OneSeed(seed=3), tmp_path)
    assert [table.name for table in tables] == ["constraints"]


def test_the_ring_papers_workload_comes_out_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measures, "NODES", (5,))
    monkeypatch.setattr(measures, "PAYLOADS", (100,))
    experiment = next(one for one in RING.experiments if one.name == "workload")
    (table,) = check_repeatable(experiment, OneSeed(seed=3), tmp_path)
    assert len(table.rows) == len(measures.WAYS) * len(measures.TIMES)


class FewBrokers(OneSeed):
    """Only the least of the numbers that an experiment may choose, of several the first."""

    def chosen(self, name: str, *, quick: N, full: N, long: N | None = None, unit: str = "", note: str = "") -> N:
        return (20,) if isinstance(quick, tuple) else quick  # type: ignore[return-value] # a tuple for a tuple


def test_many_brokers_on_a_ring_come_out_again(tmp_path: Path) -> None:
    experiment = next(one for one in RING.experiments if one.name == "scale")
    (table,) = check_repeatable(experiment, FewBrokers(seed=3), tmp_path)
    assert table.words("dispatch") == list(measures.WAYS)
    assert table.numbers("nodes") == [20.0]


def test_only_what_the_clock_measures_may_differ() -> None:
    assert [experiment.name for experiment in PSP.experiments if not experiment.repeatable] == ["instances"]
    assert [experiment.name for experiment in RING.experiments if not experiment.repeatable] == ["node"]


def test_features_of_a_plan_are_those_that_can_be_seen_in_it() -> None:
    instance = paper("tiny")
    features = plans.features_of(instance, plans.planned(instance))
    assert features == plans.Features(unused=1, duplicating=0, longer=0, displaced=0)


def test_printed_formulations_are_counted_by_their_faults(tmp_path: Path) -> None:
    columns = ("model", "seed", "value", "corrected", "infeasible", "overloaded", "unmet", "corrected_unmet")
    rows = [
        ("f1-paper", 0, 5.0, 9.0, False, 0, 2, 0),
        ("f2-paper", 0, None, 9.0, True, 0, 2, 0),
        ("f2-paper", 1, 9.0, 9.0, False, 1, 0, 0),
        ("tb-paper", 0, 1.0, 9.0, False, 0, 2, 0),
    ]
    table = Table("printed", dict.fromkeys(columns, ""), rows)
    table.write(tmp_path / "printed.csv")
    for one in (table, Table.read(tmp_path / "printed.csv", table.columns)):
        assert printed.sheet({"printed": one}).lines == [
            ["F1 (1) to (7)", "1", "0", "0", "1", "1"],
            ["F2 (22) to (31)", "2", "1", "1", "0", "1"],
            ["T and B (8) to (19)", "1", "0", "0", "1", "1"],
        ]
    assert {claim.judgement.verdict for claim in printed.claims({"printed": table})} == {"not reproduced"}


def test_small_tables_of_the_bound() -> None:
    (small, example) = bound.measure(Request())
    assert small.column("instances") == [60.0]
    assert example.column("paper_value") == pytest.approx([2.0])
    assert example.column("minimum") == pytest.approx([1.5])
