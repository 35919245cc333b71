"""What a reproduction has in common with the next: where it ran, sentences of a paper beside numbers, and its page."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import ClassVar, NamedTuple, TypedDict

from rich.console import Console
from rich.table import Table

from tieline.bench.machine import describe_commit, describe_machine
from tieline.bench.suite.report import drawn, page_table

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
class Reproduction:
    """Everything one run found out about a paper."""

    form: ClassVar[str]
    title: ClassVar[str]

    quick: bool
    started: str
    commit: str
    machine: dict[str, str | int | float]
    versions: dict[str, str]
    seconds: float = 0.0
    #: Experiments that failed, and why.
    failures: dict[str, str] = field(default_factory=dict)
    claims: list[Claim] = field(default_factory=list)

    def write(self, path: Path) -> None:
        """Write everything as JSON."""
        path.write_text(json.dumps({"format": self.form, **asdict(self)}, indent=1, ensure_ascii=False) + "\n")

    def sheets(self) -> Sequence[Sheet]:
        """The paper's tables beside ours, if it has some."""
        return ()

    def preamble(self) -> list[str]:
        """Machine, commit and versions, and what failed."""
        machine = self.machine
        where = f"{machine['processor']}, {machine['cores']} cores, Linux {machine['kernel']}; commit {self.commit}"
        when = f"{'quick ' if self.quick else ''}run of {self.seconds:.0f} s at {self.started}"
        versions = "  ".join(f"{name} {version}" for name, version in self.versions.items())
        return [f"{where}; {when}", versions, *(f"failed: {name}: {why}" for name, why in self.failures.items())]


class Begun(TypedDict):
    """The fields of a reproduction that say when, where and with what it began."""

    started: str
    commit: str
    machine: dict[str, str | int | float]
    versions: dict[str, str]


def here_and_now(versions: Mapping[str, str]) -> Begun:
    """A reproduction begins with these versions."""
    return {
        "started": dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
        "commit": describe_commit(),
        "machine": describe_machine(),
        "versions": dict(versions),
    }


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
