"""What every declaration of a paper's reproduction obeys, and a small run of one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tieline.bench.papers.frame import page
from tieline.bench.papers.frame.declaration import Experiment, Paper, Request
from tieline.bench.papers.frame.table import Table


def check_paper(paper: Paper) -> None:
    """Names are unique, fitted parameters exist, the prose is there, and every figure shows something."""
    for what in (
        [experiment.name for experiment in paper.experiments],
        [figure.name for _, figure in paper.figures()],
        [parameter.name for parameter in paper.parameters],
    ):
        assert len(set(what)) == len(what), what
    fitted = {parameter.name for parameter in paper.parameters if parameter.origin == "fitted"}
    for _, figure in paper.figures():
        assert set(figure.fitted) <= fitted, f"{figure.name} names parameters that are not marked as fitted"
        assert figure.tables, f"{figure.name} is drawn from nothing"
        assert figure.caption.endswith("."), f"{figure.name} has no sentence"
    assert page.reading(paper.package).startswith("## "), "the prose begins with a heading of its own"


def check_repeatable(experiment: Experiment, request: Request, directory: Path) -> Sequence[Table]:
    """The same request gives the same files; returns the tables, which are well-formed."""
    assert experiment.repeatable
    files: list[dict[str, bytes]] = []
    tables: Sequence[Table] = ()
    for run in ("first", "again"):
        folder = directory / run
        folder.mkdir()
        tables = experiment.measure(request)
        for table in tables:
            assert table.flaws() == []
            table.write(folder / f"{table.name}.csv")
        files.append({path.name: path.read_bytes() for path in folder.iterdir()})
    assert files[0] == files[1]
    return tables
