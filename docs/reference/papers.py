"""The pages beside the papers: each is written again from the record of the run that it is about, beside it."""

from __future__ import annotations

from pathlib import Path

from tieline.bench.papers.frame import page
from tieline.bench.papers.frame.record import PaperRecord
from tieline.bench.papers.registry import PAPERS

FOLDER = Path(__file__).parents[1] / "papers"


def written() -> list[str]:
    """The papers of which a run is kept here."""
    return [name for name in PAPERS if (FOLDER / f"{name}.json").exists()]


def markdown(name: str) -> str:
    """The page of a paper, as `tieline reproduce` writes it: record and prose, and nothing else."""
    return page.markdown(PaperRecord.read(FOLDER / f"{name}.json"), page.reading(PAPERS[name].module))
