"""What a reproduction has in common with the next: where it ran, sentences of a paper beside numbers, and its page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

from rich.console import Console
from rich.table import Table

from tieline.bench.suite.report import drawn, page_table
from tieline.bench.suite.results import Record

_COLOURS = {"reproduced": "green", "not reproduced": "red", "not measured": "dim"}
_HEADINGS = ("where", "paper says", "we measure", "")


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence of a paper beside what was measured."""

    figure: str
    paper_says: str
    we_measure: str
    #: ``reproduced``, ``not reproduced`` or ``not measured``.
    verdict: str


class Sheet(NamedTuple):
    """A table of a paper beside ours; its first column is words."""

    title: str
    headings: Sequence[str]
    lines: list[list[str]]


@dataclass(slots=True, kw_only=True)
class Reproduction(Record):
    """Everything one run found out about a paper."""

    title: ClassVar[str]

    #: Experiments that failed, and why.
    failures: dict[str, str] = field(default_factory=dict)
    claims: list[Claim] = field(default_factory=list)

    def sheets(self) -> Sequence[Sheet]:
        """The paper's tables beside ours, if it has some."""
        return ()

    def preamble(self) -> Iterator[str]:
        """Machine, commit and versions, and what failed."""
        yield from Record.preamble(self)
        yield from (f"failed: {name}: {why}" for name, why in self.failures.items())


def show(found: Reproduction, console: Console, note: str = "") -> None:
    """Print the tables, and what holds of the paper's sentences."""
    for text in found.preamble():
        console.print(text, highlight=False, markup=False)
    for sheet in found.sheets():
        console.print(drawn(sheet.title, sheet.headings, sheet.lines))
    if note:
        console.print(note, highlight=False, markup=False)
    table = Table(title="Paper says / we measure", title_justify="left", show_lines=True)
    for heading in _HEADINGS:
        table.add_column(heading, overflow="fold")
    for claim in found.claims:
        verdict = f"[{_COLOURS[claim.verdict]}]{claim.verdict}[/]"
        table.add_row(claim.figure, claim.paper_says, claim.we_measure, verdict)
    console.print(table)


def markdown(found: Reproduction, pictures: Sequence[str], note: str = "") -> str:
    """The same as a page, with the pictures."""
    lines = [f"# {found.title}", "", *(f"- {text}" for text in found.preamble())]
    for sheet in found.sheets():
        lines += ["", f"## {sheet.title}", "", *page_table(sheet.headings, sheet.lines)]
    lines += ["", *([note, ""] if note else []), "## Paper says / we measure", ""]
    claims = [[one.figure, one.paper_says, one.we_measure, one.verdict] for one in found.claims]
    lines += page_table(_HEADINGS, claims, words=len(_HEADINGS))
    for picture in pictures:
        lines += ["", f"![{picture.removesuffix('.png')}]({picture})"]
    return "\n".join(lines) + "\n"
