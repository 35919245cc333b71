"""Carry papers out: experiment after experiment, each figure drawn and judged, everything written into a directory."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from tieline.bench.brokers import known_peers
from tieline.bench.load.job import Failure
from tieline.bench.machine import versions
from tieline.bench.papers.frame import drawing, page
from tieline.bench.papers.frame.declaration import Claim, Experiment, Figure, Paper, Parameter, Request, Tables
from tieline.bench.papers.frame.record import Given, Judged, PaperRecord, Shown
from tieline.bench.papers.frame.table import Table
from tieline.bench.papers.frame.verdicts import unmeasured


class Progress(Protocol):
    """Whoever wants to know how far the run has come."""

    def planned(self, steps: int) -> None:
        """Hear how many experiments there are."""

    def step(self, text: str) -> None:
        """Hear that the next one begins."""

    def detail(self, text: str) -> None:
        """Hear what it is doing."""


def run(papers: Sequence[Paper], request: Request, directory: Path, progress: Progress) -> Iterator[PaperRecord]:
    """Every paper in turn; what has been written stays if a later one is interrupted."""
    progress.planned(sum(len(paper.experiments) for paper in papers))
    request = replace(request, step=progress.detail)
    for paper in papers:
        yield _run(paper, request, directory, progress)


def again(papers: Sequence[Paper], directory: Path, progress: Progress) -> Iterator[PaperRecord]:
    """What earlier runs left in a directory, drawn, judged and written once more; nothing is measured."""
    progress.planned(len(papers))
    for paper in papers:
        progress.step(f"{paper.name}: from the data of an earlier run")
        record = PaperRecord.read(directory / f"{paper.name}.json")
        record.title, record.citation = paper.title, paper.citation
        _show(record, paper, directory, progress)
        yield record


def _run(paper: Paper, request: Request, directory: Path, progress: Progress) -> PaperRecord:
    began = time.monotonic()
    record = PaperRecord.of(paper, request, _versions(paper))
    folder = directory / paper.name
    folder.mkdir(parents=True, exist_ok=True)
    for experiment in paper.experiments:
        progress.step(f"{paper.name}: {experiment.title}")
        stated: dict[Parameter, None] = {}
        with _noting(record, experiment):
            for table in experiment.measure(replace(request, stated=stated.setdefault)):
                assert table.name not in record.tables, f"two experiments write {table.name}.csv"
                table.write(folder / f"{table.name}.csv")
                record.tables[table.name] = dict(table.columns)
        record.settings[experiment.title] = [Given.of(parameter) for parameter in stated]
    record.seconds = round(time.monotonic() - began, 1)
    _show(record, paper, directory, progress)
    return record


def _show(record: PaperRecord, paper: Paper, directory: Path, progress: Progress) -> None:
    """Draw and judge what is written: who reads the files has what the page is about, to the last digit."""
    folder = directory / paper.name
    tables = {name: Table.read(folder / f"{name}.csv", columns) for name, columns in record.tables.items()}
    record.figures = []
    for experiment, figure in paper.figures():
        progress.detail(figure.title)
        record.figures.append(_shown(record, experiment, figure, tables, folder))
    record.write(directory / f"{paper.name}.json")
    (directory / f"{paper.name}.md").write_text(page.markdown(record, page.reading(paper.package)), encoding="utf-8")


def _versions(paper: Paper) -> dict[str, str]:
    known = known_peers()
    found = {name: known[name].version() for name in paper.peers}
    return versions(*paper.libraries) | {name: version for name, version in found.items() if version is not None}


@contextmanager
def _noting(record: PaperRecord, experiment: Experiment) -> Iterator[None]:
    """A broker that dies or a file that cannot be written ends one experiment, not the run."""
    try:
        yield
    except (Failure, OSError) as failure:
        record.failures[experiment.title] = str(failure) or type(failure).__name__


def _shown(record: PaperRecord, experiment: Experiment, figure: Figure, tables: Tables, folder: Path) -> Shown:
    shown = Shown(
        name=figure.name,
        title=figure.title,
        caption=figure.caption,
        fitted=[given.worded() for given in record.parameters if given.name in figure.fitted],
        tables=[name for name in figure.tables if name in tables],
        is_repeatable=experiment.repeatable,
    )
    if experiment.title in record.failures or not set(figure.tables) <= tables.keys():
        why = record.failures.get(experiment.title, "its data are missing")
        shown.claims = [
            Judged.of(Claim(where=figure.title, paper_says="", we_measure="", judgement=unmeasured(why), why=why))
        ]
        return shown
    shown.claims = [Judged.of(claim) for claim in figure.claims(tables)]
    if figure.sheet is not None:
        sheet = figure.sheet(tables)
        shown.headings, shown.lines = list(sheet.headings), [list(line) for line in sheet.lines]
        shown.words = sheet.words
    if figure.panels is not None:
        shown.has_picture = drawing.draw(
            figure.panels(tables), folder / figure.name, columns=figure.columns, size=(figure.width, figure.height)
        )
    return shown
