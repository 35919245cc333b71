"""The paper's two tables beside ours, and its sentences beside what was measured; on the terminal and as a page."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from statistics import median

from rich.console import Console
from rich.table import Table

from tieline.bench.metrics import three_digits
from tieline.bench.papers.psp_record import (
    PAPER_LAGRANGIAN_S,
    PAPER_MIP_S,
    PAPER_SIZES,
    Measured,
    Outcome,
    PlanReproduction,
)

_COLOURS = {"reproduced": "green", "not reproduced": "red", "not measured": "dim"}
_SIZES = (
    "size",
    "paper: nodes",
    "arcs",
    "topics",
    "subscribers",
    "ours: nodes",
    "arcs ",
    "topics ",
    "subscribers ",
    "requests",
)
_TIMES = (
    "size",
    "tightness",
    "paper: MIP",
    "paper: Lagrangian",
    "naive F1",
    "proven",
    "ours",
    "proven ",
    "Lagrangian",
    "off",
    "its bound too high",
    "annealing off",
    "unmet",
)  # fmt: skip
_NOTE = (
    "The columns marked paper are the paper's, on its machine and its instances, which are not to be had. Ours have "
    "the same dimensions and come from seeds. All other times are CPU seconds of this run, the median over the seeds."
)


def show(found: PlanReproduction, console: Console) -> None:
    """Print the tables."""
    for text in _preamble(found):
        console.print(text, highlight=False, markup=False)
    for title, headings, rows in _tables(found):
        table = Table(title=title, title_justify="left")
        for place, heading in enumerate(headings):
            table.add_column(heading, justify="right" if place else "left", overflow="fold")
        for row in rows:
            table.add_row(*row)
        console.print(table)
    console.print(_NOTE, highlight=False, markup=False)
    table = Table(title="Paper says / we measure", title_justify="left", show_lines=True)
    for heading in ("where", "paper says", "we measure", ""):
        table.add_column(heading, overflow="fold")
    for claim in found.claims:
        verdict = f"[{_COLOURS[claim.verdict]}]{claim.verdict}[/]"
        table.add_row(claim.figure, claim.paper_says, claim.we_measure, verdict)
    console.print(table)


def markdown(found: PlanReproduction, pictures: Sequence[str]) -> str:
    """The same as a page, with the pictures."""
    lines = ["# The planner's paper, reproduced", "", *(f"- {text}" for text in _preamble(found))]
    for title, headings, rows in _tables(found):
        lines += ["", f"## {title}", "", f"| {' | '.join(headings)} |", "|---" + "|--:" * (len(headings) - 1) + "|"]
        lines += [f"| {' | '.join(row)} |" for row in rows]
    lines += ["", _NOTE, "", "## Paper says / we measure", ""]
    lines += ["| where | paper says | we measure | |", "|---|---|---|---|"]
    lines += [f"| {one.figure} | {one.paper_says} | {one.we_measure} | {one.verdict} |" for one in found.claims]
    for picture in pictures:
        lines += ["", f"![{picture.removesuffix('.png')}]({picture})"]
    return "\n".join(lines) + "\n"


def _preamble(found: PlanReproduction) -> list[str]:
    machine = found.machine
    where = f"{machine['processor']}, {machine['cores']} cores, Linux {machine['kernel']}; commit {found.commit}"
    when = f"{'quick ' if found.quick else ''}run of {found.seconds:.0f} s at {found.started}"
    return [f"{where}; {when}", "  ".join(f"{name} {version}" for name, version in found.versions.items())]


def _tables(found: PlanReproduction) -> Iterator[tuple[str, Sequence[str], list[list[str]]]]:
    yield "Table 1: dimensions, the paper's and ours", _SIZES, [_size_row(found, size) for size in _sizes(found)]
    yield (
        "Table 2: seconds and distances, the paper's and ours",
        _TIMES,
        [_time_row(size, tightness, group) for size, tightness, group in found.groups()],
    )


def _sizes(found: PlanReproduction) -> list[str]:
    return list(dict.fromkeys(one.size for one in found.measured))


def _size_row(found: PlanReproduction, size: str) -> list[str]:
    one = next(one for one in found.measured if one.size == size)
    paper = [str(number) for number in PAPER_SIZES[size]] if size in PAPER_SIZES else ["not given", "", "", ""]
    return [size, *paper, *(str(number) for number in (one.nodes, one.arcs, one.topics, one.subscribers, one.requests))]


def _time_row(size: str, tightness: float, group: list[Measured]) -> list[str]:
    solved = [one for one in group if one.optimum is not None]
    return [
        size,
        f"{tightness:g}",
        f"{PAPER_MIP_S[size]:g}",
        f"{PAPER_LAGRANGIAN_S[size]:g}",
        _seconds([one.naive for one in group]),
        _proven([one.naive for one in group]),
        _seconds([one.ours for one in group]),
        _proven([one.ours for one in group]),
        _seconds([one.lagrangian for one in group]),
        _off([one.distance(one.lagrangian) for one in group]),
        f"{sum(one.is_false_bound for one in solved)} of {len(solved)}",
        _off([one.distance(one.annealing) if one.has_annealed else None for one in group]),
        f"{median(one.ours.unmet for one in group):g}",
    ]


def _seconds(outcomes: list[Outcome]) -> str:
    middle = median(outcome.cpu_s for outcome in outcomes)
    # a median that was cut off by a limit is a lower estimate
    is_cut = sum(outcome.is_proven for outcome in outcomes) * 2 <= len(outcomes)
    return f"{'≥ ' if is_cut and middle > 1 else ''}{three_digits(middle)}"


def _proven(outcomes: list[Outcome]) -> str:
    return f"{sum(outcome.is_proven for outcome in outcomes)} of {len(outcomes)}"


def _off(distances: list[float | None]) -> str:
    """The worst distance; how often fewer requests were served; how often there was no plan."""
    finite = [one for one in distances if one is not None and math.isfinite(one)]
    words = [f"{100 * max(finite):.1f} %"] if finite else []
    fewer = sum(one is not None and math.isinf(one) for one in distances)
    missing = sum(one is None for one in distances)
    words += [f"{fewer} serve fewer"] if fewer else []
    words += [f"{missing} n.a."] if missing else []
    return ", ".join(words)
