"""A paper is carried out: files, page, record; what fails is said; and a page is a function of its record."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.bench.watching import Quiet
from tieline.bench.load.job import Failure
from tieline.bench.papers.frame import drawing, page, runner, verdicts
from tieline.bench.papers.frame.declaration import (
    Claim,
    Experiment,
    Figure,
    Panel,
    Paper,
    Parameter,
    Request,
    Sheet,
    Tables,
)
from tieline.bench.papers.frame.record import PaperRecord
from tieline.bench.papers.frame.table import Table


def measure(request: Request) -> list[Table]:
    request.state("width", 0.25, "m", note="of the | first")
    request.chosen("events", quick=10, full=(100, 2_000))
    rows = [
        (name, x, seed, x * (seed + 1.0))
        for name in ("one", "other")
        for x in (1, 2)
        for seed in request.seeds(quick=2, full=3)
    ]
    return [Table("lines", {"name": "series", "x": "x", "seed": "seed", "y": "y, |m|"}, rows)]


def panels(tables: Tables) -> dict[str, Panel]:
    return {
        "lines": lambda axis: drawing.lines(axis, tables["lines"], x="x", y="y", series="name"),
        "bars": lambda axis: drawing.bars(axis, tables["lines"], x="x", y="y", series="name"),
    }


def claims(tables: Tables) -> Iterator[Claim]:
    series = tables["lines"].by("x", "y", name="one")
    yield Claim(
        where="Fig. 1", paper_says="y rises", we_measure="it does", judgement=verdicts.rises(series), why="unseen"
    )
    yield Claim(where="Fig. 1", paper_says="y falls", we_measure="no", judgement=verdicts.falls(series), why="a | b")


FIGURE = Figure(
    name="fig-1",
    title="Figure 1: y over x",
    tables=("lines",),
    caption="Both series.",
    fitted=("scale",),
    panels=panels,
    sheet=lambda tables: Sheet(headings=("x", "rows"), lines=[["all", str(len(tables["lines"].rows))]]),
    claims=claims,
)
EXPERIMENT = Experiment(name="lines", title="lines and bars", measure=measure, figures=(FIGURE,))
PAPER = Paper(
    name="heat",
    title="A paper",
    citation="N. N.",
    package="tieline.bench.papers.heat",
    experiments=(EXPERIMENT,),
    parameters=(
        Parameter(name="scale", value=3, unit="m", origin="fitted"),
        Parameter(name="points", value=2, origin="ours"),
    ),
)


class Watching(Quiet):
    def detail(self, text: str) -> None:
        self.said.append(text)


def test_a_paper_leaves_page_record_data_and_drawings(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="without matplotlib there are no drawings")
    quiet = Watching()
    (record,) = runner.run([PAPER], Request(effort="full", seed=4), tmp_path, quiet)
    folder = tmp_path / "heat"
    assert (folder / "lines.csv").read_text().splitlines()[:2] == ["name,x,seed,y", "one,1,4,5"]
    assert (folder / "fig-1.png").read_bytes().startswith(b"\x89PNG")
    assert b"<svg" in (folder / "fig-1.svg").read_bytes()
    text = (tmp_path / "heat.md").read_text()
    assert "![Figure 1: y over x](heat/fig-1.png)" in text and "Fitted: scale 3 m." in text and "--seed 4" in text
    assert "| y falls | no | **not reproduced** | a \\| b |" in text and "unseen" not in text
    # what the experiment set for itself, once each
    for line in (
        "| width | 0.25 m | ours | of the \\| first |",
        "| events | 100, 2,000 | ours |",
        "| seeds | 4 to 6 | ours |",
    ):
        assert text.count(f"| lines and bars {line}") == 1
    assert record.tally() == "1 reproduced, 1 not reproduced"
    assert quiet.steps == 1 and quiet.begun == ["heat: lines and bars"]
    assert "interpreter" not in record.machine
    # the page again, from nothing but the record
    again = PaperRecord.read(tmp_path / "heat.json")
    assert page.markdown(again, page.reading(PAPER.package)) == text


def test_what_was_measured_is_drawn_and_judged_again_without_measuring(tmp_path: Path) -> None:
    list(runner.run([PAPER], Request(seed=2), tmp_path, Watching()))
    names = ("heat.md", "heat.json", "heat/lines.csv")
    before = {name: (tmp_path / name).read_text() for name in names}

    def fail(_request: Request) -> list[Table]:
        raise AssertionError("it measures")

    deaf = replace(PAPER, experiments=(replace(EXPERIMENT, measure=fail),))
    (record,) = runner.again([deaf], tmp_path, Watching())
    assert {name: (tmp_path / name).read_text() for name in names} == before
    other = replace(FIGURE, claims=lambda tables: [*claims(tables)][:1])
    (record,) = runner.again(
        [replace(PAPER, experiments=(replace(EXPERIMENT, figures=(other,)),))], tmp_path, Watching()
    )
    assert record.tally() == "1 reproduced" and record.seed == 2


def test_an_experiment_that_fails_does_not_end_the_others(tmp_path: Path) -> None:
    def fail(_request: Request) -> list[Table]:
        raise Failure("the broker died")

    failing = replace(
        EXPERIMENT, name="failing", title="what fails", measure=fail, figures=(replace(FIGURE, name="fig-2"),)
    )
    (record,) = runner.run([replace(PAPER, experiments=(failing, EXPERIMENT))], Request(), tmp_path, Watching())
    assert record.failures == {"what fails": "the broker died"}
    assert [claim.verdict for claim in record.claims()] == ["not measured", "reproduced", "not reproduced"]
    assert "failed: what fails: the broker died" in (tmp_path / "heat.md").read_text()


def test_two_runs_draw_the_same_files(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="without matplotlib there are no drawings")
    for name in ("first", "again"):
        (tmp_path / name).mkdir()
        list(runner.run([PAPER], Request(), tmp_path / name, Watching()))
    for name in ("fig-1.svg", "fig-1.png", "lines.csv"):
        assert (tmp_path / "first/heat" / name).read_bytes() == (tmp_path / "again/heat" / name).read_bytes()


def test_effort_chooses() -> None:
    assert Request(effort="long").choose(quick=1, full=2) == 2
    assert Request(effort="long").choose(quick=1, full=2, long=3) == 3
    assert Request(effort="quick", seed=7).seeds(quick=2, full=5) == range(7, 9)
