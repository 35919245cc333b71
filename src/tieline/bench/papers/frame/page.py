"""The page of a paper: a function of its record and of the prose that was written for it, and of nothing else.

So a page that is kept in the repository can be written again from the record beside it, and a test sees that nobody
typed a number.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from importlib.resources import files

from rich.console import Console
from rich.table import Table as Drawn

from tieline.bench.papers.frame.record import Given, Judged, PaperRecord, Shown
from tieline.bench.papers.frame.verdicts import RULES
from tieline.bench.suite.report import drawn
from tieline.bench.suite.report import page_table as bare_table

_COLOURS = {"reproduced": "green", "in part": "yellow", "not reproduced": "red", "not measured": "dim"}
_FITTED = (
    "*Fitted* are those that were chosen so that something of the paper comes out: agreement in that is no evidence."
)
_SET = "What each experiment sets for itself, beside these or in their place:"
_HEADINGS = ("where", "the paper says", "we measure", "verdict", "why")


def reading(package: str) -> str:
    """The prose that stands beside a paper's declaration."""
    return (files(package) / "reading.md").read_text(encoding="utf-8")


def markdown(record: PaperRecord, prose: str) -> str:
    """The page of a run, from its record and the prose of its paper."""
    return "\n".join(_lines(record, prose)).rstrip() + "\n"


def _lines(record: PaperRecord, prose: str) -> Iterator[str]:
    yield from (f"# {record.title}", "", record.citation, "")
    yield from (f"`{_command(record)}` wrote this page; whoever runs it gets their own.", "")
    yield from (f"* {text}" for text in _preamble(record))
    yield from ("", "## What holds", "", f"Of {sum(1 for _ in record.claims())} claims: {record.tally()}.", "")
    yield from page_table(("where", "the paper says", "verdict"), [
        [claim.where, claim.paper_says, _verdict(claim)] for claim in record.claims()
    ], words=3)  # fmt: skip
    yield from ("", prose.strip(), "", "## Figures and tables", "")
    for figure in record.figures:
        yield from _figure(record, figure)
    if record.parameters:
        yield from ("## Parameters", "")
        yield from (_FITTED, "")
        given = [_parameter(one) for one in record.parameters]
        yield from page_table(("parameter", "value", "from", ""), given, words=4)
        yield ""
    if any(record.settings.values()):
        yield from (_SET, "")
        given = [[title, *_parameter(one)] for title, settings in record.settings.items() for one in settings]
        yield from page_table(("experiment", "parameter", "value", "from", ""), given, words=5)
        yield ""
    yield from (
        "## How verdicts are given",
        "",
        "Each claim gives its numbers, one for each seed, to one of these rules.",
        "",
    )
    yield from page_table(("rule", "verdict"), RULES.items(), words=2)
    yield from (
        "",
        "## Data",
        "",
        f"One row for each point and seed, in the folder `{record.name}`; drawings are there as SVG, too, after a run.",
        "",
    )
    yield from page_table(("file", "columns"), [
        [_file(record, name), "; ".join(f"`{column}` {words}" for column, words in columns.items())]
        for name, columns in record.tables.items()
    ], words=2)  # fmt: skip


def _parameter(one: Given) -> list[str]:
    return [one.name, f"{one.value} {one.unit}".strip(), one.origin, one.note]


def _figure(record: PaperRecord, figure: Shown) -> Iterator[str]:
    yield from (f"### {figure.title}", "")
    if figure.has_picture:
        yield from (f"![{figure.title}]({record.name}/{figure.name}.png)", "")
    fitted = f" Fitted: {', '.join(figure.fitted)}." if figure.fitted else ""
    data = ", ".join(_file(record, name) for name in figure.tables)
    measured = "" if figure.is_repeatable else "; the clock is part of it, so no run repeats another exactly"
    yield from (f"{figure.caption}{fitted} Data: {data or 'none'}{measured}.", "")
    if figure.lines:
        yield from page_table(figure.headings, figure.lines, words=figure.words)
        yield ""
    if figure.claims:
        claims = [[one.where, one.paper_says, one.we_measure, _verdict(one), _why(one)] for one in figure.claims]
        yield from page_table(_HEADINGS, claims, words=len(_HEADINGS))
        yield ""


def page_table(headings: Sequence[str], lines: Iterable[Sequence[str]], *, words: int = 1) -> list[str]:
    """A table of the page; a bar inside a cell would end the cell."""
    return bare_table(headings, [[cell.replace("|", "\\|") for cell in line] for line in lines], words=words)


def _preamble(record: PaperRecord) -> Iterator[str]:
    yield from record.preamble()
    load = record.machine.get("load_before")
    if load is not None:
        is_timed = not all(figure.is_repeatable for figure in record.figures)
        where = "is in everything that the clock measured" if is_timed else "is in nothing but how long the run took"
        yield f"the load of the machine was {load} before the run, and {where}"
    yield f"seeds from {record.seed} on; " + (
        "figures whose data the clock has no part in come out again to the last digit"
        if any(figure.is_repeatable for figure in record.figures)
        else "everything was measured by the clock"
    )
    yield from (f"failed: {name}: {why}" for name, why in record.failures.items())


def _command(record: PaperRecord) -> str:
    effort = "" if record.effort == "full" else f" --{record.effort}"
    seed = f" --seed {record.seed}" if record.seed else ""
    return f"tieline reproduce {record.name}{effort}{seed}"


def _file(record: PaperRecord, table: str) -> str:
    return f"[{table}.csv]({record.name}/{table}.csv)"


def _verdict(claim: Judged) -> str:
    return claim.verdict if claim.verdict == "reproduced" else f"**{claim.verdict}**"


def _why(claim: Judged) -> str:
    return "" if claim.verdict == "reproduced" else claim.why


def show(record: PaperRecord, console: Console) -> None:
    """Print what a reader at a terminal wants: where it ran, the small tables, every claim."""
    console.rule(record.title, align="left")
    for text in _preamble(record):
        console.print(text, highlight=False, markup=False)
    for figure in record.figures:
        if figure.lines:
            console.print(drawn(figure.title, figure.headings, figure.lines, words=figure.words))
    console.print(_claims(list(record.claims())))
    console.print(f"{record.name}: {record.tally()}", highlight=False, markup=False)


def _claims(claims: Sequence[Judged]) -> Drawn:
    table = Drawn(title="The paper says / we measure", title_justify="left", show_lines=True)
    for heading in _HEADINGS:
        table.add_column(heading, overflow="fold")
    for one in claims:
        table.add_row(
            one.where, one.paper_says, one.we_measure, f"[{_COLOURS[one.verdict]}]{one.verdict}[/]", _why(one)
        )
    return table
