"""The table "paper says / we measure", on the terminal and as a page."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from tieline.bench.papers.record import Reproduction

_COLOURS = {"reproduced": "green", "not reproduced": "red", "not measured": "dim"}


def show(found: Reproduction, console: Console) -> None:
    """Print the table."""
    for text in _preamble(found):
        console.print(text, highlight=False, markup=False)
    table = Table(title="Paper says / we measure", title_justify="left", show_lines=True)
    for heading in ("figure", "paper says", "we measure", ""):
        table.add_column(heading, overflow="fold")
    for claim in found.claims:
        verdict = f"[{_COLOURS[claim.verdict]}]{claim.verdict}[/]"
        table.add_row(claim.figure, claim.paper_says, claim.we_measure, verdict)
    console.print(table)


def markdown(found: Reproduction, pictures: list[str]) -> str:
    """The same as a page, with the figures."""
    lines = ["# The priority papers, reproduced", "", *(f"- {text}" for text in _preamble(found)), ""]
    lines += ["| figure | paper says | we measure | |", "|---|---|---|---|"]
    lines += [
        f"| {claim.figure} | {claim.paper_says} | {claim.we_measure} | {claim.verdict} |" for claim in found.claims
    ]
    for picture in pictures:
        lines += ["", f"![{picture.removesuffix('.png')}]({picture})"]
    return "\n".join(lines) + "\n"


def _preamble(found: Reproduction) -> list[str]:
    machine = found.machine
    where = f"{machine['processor']}, {machine['cores']} cores, Linux {machine['kernel']}; commit {found.commit}"
    when = f"{'quick ' if found.quick else ''}run of {found.seconds:.0f} s at {found.started}"
    versions = "  ".join(f"{name} {version}" for name, version in found.versions.items())
    return [f"{where}; {when}", versions, *(f"failed: {name}: {why}" for name, why in found.failures.items())]
