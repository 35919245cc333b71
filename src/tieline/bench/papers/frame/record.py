"""What a run of a paper leaves behind, as JSON: enough to write its page again, word for word."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import ClassVar, Final, Self

import msgspec

from tieline.bench.papers.frame.declaration import Claim, Effort, Origin, Paper, Parameter, Request
from tieline.bench.papers.frame.verdicts import VERDICTS, Verdict
from tieline.bench.suite.results import Record

#: Places of a machine that say nothing about the numbers.
_PRIVATE: Final = frozenset({"interpreter"})


@dataclass(slots=True, kw_only=True)
class Judged:
    """A claim with its verdict."""

    where: str
    paper_says: str
    we_measure: str
    verdict: Verdict
    rule: str
    why: str

    @classmethod
    def of(cls, claim: Claim) -> Self:
        """The claim in one level."""
        judgement = claim.judgement
        return cls(where=claim.where, paper_says=claim.paper_says, we_measure=claim.we_measure,
                   verdict=judgement.verdict, rule=judgement.rule, why=claim.why)  # fmt: skip


@dataclass(slots=True, kw_only=True)
class Shown:
    """A figure as it stands on the page."""

    name: str
    title: str
    caption: str
    #: Fitted parameters with their values.
    fitted: list[str] = field(default_factory=list)
    has_picture: bool = False
    tables: list[str] = field(default_factory=list)
    headings: list[str] = field(default_factory=list)
    lines: list[list[str]] = field(default_factory=list)
    words: int = 1
    claims: list[Judged] = field(default_factory=list)
    is_repeatable: bool = True


@dataclass(slots=True, kw_only=True)
class Given:
    """A parameter as it was in the run."""

    name: str
    value: str | int | float
    unit: str
    origin: Origin
    note: str

    @classmethod
    def of(cls, parameter: Parameter) -> Self:
        """A parameter of the declaration, with the value that it had."""
        return cls(**asdict(parameter))

    def worded(self) -> str:
        """Name, value and unit."""
        return f"{self.name} {self.value}{' ' if self.unit else ''}{self.unit}"


@dataclass(slots=True, kw_only=True)
class PaperRecord(Record):
    """Everything one run found out about a paper."""

    FORM: ClassVar[str] = "tieline-reproduce-2"

    name: str
    title: str
    citation: str
    effort: Effort
    seed: int
    parameters: list[Given] = field(default_factory=list)
    figures: list[Shown] = field(default_factory=list)
    #: Columns of every table that was written, with their words.
    tables: dict[str, dict[str, str]] = field(default_factory=dict)
    #: By the title of an experiment what it sets for itself, beside the parameters of the paper or otherwise.
    settings: dict[str, list[Given]] = field(default_factory=dict)
    #: Experiments that failed, and why.
    failures: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, paper: Paper, request: Request, versions: dict[str, str]) -> Self:
        """A run of this paper that begins now."""
        record = cls.begun(
            cls.FORM,
            versions,
            quick=request.effort == "quick",
            name=paper.name,
            title=paper.title,
            citation=paper.citation,
            effort=request.effort,
            seed=request.seed,
            parameters=[Given.of(parameter) for parameter in paper.parameters],
        )
        record.machine = {key: value for key, value in record.machine.items() if key not in _PRIVATE}
        return record

    @classmethod
    def read(cls, path: Path) -> Self:
        """The record of an earlier run."""
        data = json.loads(path.read_text(encoding="utf-8"))
        data["form"] = data.pop("format")
        return msgspec.convert(data, cls)

    def claims(self) -> Iterator[Judged]:
        """All claims, figure by figure."""
        return (claim for figure in self.figures for claim in figure.claims)

    def tally(self) -> str:
        """How many claims have which verdict, in words."""
        counts = Counter(claim.verdict for claim in self.claims())
        return ", ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICTS if counts[verdict]) or "no claims"
