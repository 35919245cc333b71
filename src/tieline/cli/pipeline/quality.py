"""``tieline pipeline quality``: judge voltage and frequency by EN 50160, print the verdicts and write the report."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tieline.cli.pipeline.flags import Json, LakePath, OnSpark, TimeSpan, open_lake
from tieline.cli.pipeline.running import sentences
from tieline.cli.pipeline.sources import check_target, rows_in
from tieline.cli.terminal import console
from tieline.cli.trouble import MISUSED, Trouble
from tieline.cli.verbs import new_app, with_blocks
from tieline.net.log import printable

if TYPE_CHECKING:
    from tieline.pipeline.jobs.quality.columns import Columns
    from tieline.pipeline.jobs.quality.limits import Limits
    from tieline.pipeline.report.findings import Findings

_STYLES: Final = {"pass": "green", "fail": "bold red", "too little data": "yellow"}

app = new_app()


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitOptions:
    """What readings are judged by."""

    nominal: Annotated[float, typer.Option(metavar="VOLTS", help="Nominal voltage, phase to neutral.")] = 230.0
    nominal_frequency: Annotated[float, typer.Option(metavar="HERTZ", help="Nominal frequency.")] = 50.0
    system: Annotated[
        Literal["interconnected", "island"], typer.Option(help="Which frequency ranges of the standard apply.")
    ] = "interconnected"
    edition: Annotated[
        Literal["2010", "1999"], typer.Option(help="Which edition's rules decide: they differ about frequency.")
    ] = "2010"
    signal_frequency: Annotated[
        float | None,
        typer.Option(metavar="HERTZ", help="Frequency of the operator's signals on the mains, on which limits depend."),
    ] = None
    time_zone: Annotated[str, typer.Option(metavar="ZONE", help="Where weeks begin on Monday, 00:00.")] = "UTC"
    every: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="Time between two readings of a node; else its median.")
    ] = None
    least_samples: Annotated[
        float, typer.Option(metavar="SHARE", help="Part of its readings that a mean needs to count as measured.")
    ] = 0.75
    least_coverage: Annotated[
        float, typer.Option(metavar="SHARE", help="Part of a week's means that a verdict needs.")
    ] = 0.9
    flagged: Annotated[
        Literal["exclude", "keep"],
        typer.Option(help="Means during dips, swells and interruptions: left out, or judged."),
    ] = "exclude"

    def limits(self) -> Limits:
        """What a study takes."""
        from tieline.pipeline.jobs.quality.limits import Limits

        try:
            return Limits(
                nominal_v=self.nominal,
                nominal_hz=self.nominal_frequency,
                system=self.system,
                edition=self.edition,
                signal_hz=self.signal_frequency,
                every_s=self.every,
                least_samples=self.least_samples,
                least_coverage=self.least_coverage,
                flagged=self.flagged,
                time_zone=self.time_zone,
            )
        except ValueError as problem:
            raise Trouble(f"{problem}.", code=MISUSED) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnOptions:
    """Where readings and incidents are in the tables."""

    event: Annotated[str, typer.Option(metavar="TYPE", help="The event type of readings.")] = "reading"
    incident_event: Annotated[str, typer.Option(metavar="TYPE", help="The event type of dips and the like.")] = (
        "incident"
    )
    voltage_column: Annotated[str, typer.Option(metavar="NAME", help="The attribute with volts.")] = "voltage"
    frequency_column: Annotated[str, typer.Option(metavar="NAME", help="The attribute with hertz.")] = "frequency"
    node_column: Annotated[str, typer.Option(metavar="NAME", help="The attribute with the node.")] = "node"
    node_topic_level: Annotated[
        int | None, typer.Option(metavar="LEVEL", min=1, help="Take the node from this level of the topic instead.")
    ] = None
    time_column: Annotated[str, typer.Option(metavar="NAME", help="The column with the time of a reading.")] = "_time"
    phase_column: Annotated[
        str, typer.Option(metavar="NAME", help="The attribute with the phase, where phases are told one by one.")
    ] = "phase"
    column: Annotated[
        list[str] | None,
        typer.Option(
            metavar="QUANTITY=NAME",
            help="Where another quantity is: voltage_l1, unbalance, thd, harmonic_5, plt, signalling … Repeatable.",
        ),
    ] = None
    stamped: Annotated[
        Literal["end", "begin"], typer.Option(help="Which moment of what it measured a reading's time is.")
    ] = "end"

    def columns(self) -> Columns:
        """What a study takes."""
        from tieline.pipeline.jobs.quality.columns import Unmapped

        further = dict(each.partition("=")[::2] for each in self.column or [])
        if not all(further.values()):
            raise Trouble("--column takes a quantity and an attribute, such as thd=THD_U.", code=MISUSED)
        try:
            return self._columns(further)
        except Unmapped as problem:
            raise Trouble(f"{problem}.", code=MISUSED) from None

    def _columns(self, further: dict[str, str]) -> Columns:
        from tieline.pipeline.jobs.quality.columns import Columns

        return Columns(
            phase=self.phase_column,
            further=further,
            node=self.node_column,
            node_topic_level=self.node_topic_level,
            time=self.time_column,
            stamped=self.stamped,
            voltage=self.voltage_column,
            frequency=self.frequency_column,
        )


@app.command()
@with_blocks
def quality(  # one for each option
    *,
    lake: LakePath,
    span: TimeSpan,
    out: Annotated[Path, typer.Option(metavar="FILE", help="Where the report goes.")] = Path("power-quality.html"),
    pdf: Annotated[bool, typer.Option("--pdf", help="Print a PDF beside it; needs Chromium or Chrome.")] = False,
    csv: Annotated[bool, typer.Option("--csv", help="Write every figure as CSV beside it.")] = False,
    json_: Json = False,
    strict: Annotated[bool, typer.Option("--strict", help="Exit code 1 if a node fails.")] = False,
    network: Annotated[
        str | None, typer.Option(metavar="NAME", help="The network's name, for the title; else the lake's.")
    ] = None,
    judged_by: LimitOptions,
    found_in: ColumnOptions,
    spark: OnSpark,
) -> None:
    """Judge voltage and frequency by EN 50160, week by week and node by node, and write a report.

    A week in which too little was measured neither passes nor fails. Choose whole weeks with --from and --to.
    """
    with sentences():
        from tieline.pipeline.report import page as _page  # noqa: F401  what the report needs is missed now, not at the end
        from tieline.pipeline.report.study import Question, study

        limits = judged_by.limits()
        opened = open_lake(lake)
        opened.known(found_in.event)
        check_target(out)
        question = Question(
            limits=limits,
            event=found_in.event,
            incident_event=found_in.incident_event,
            columns=found_in.columns(),
            start=span.since,
            end=span.until,
        )
        with _progress() as told:
            told("starting Spark")
            with spark.session("tieline quality", rows=rows_in(opened)) as here:
                findings = study(here, opened, question, told)
        _tell(findings, network or Path(opened.where).name, out, pdf=pdf, as_csv=csv, as_json=json_)
        if strict and any(findings.node_verdict(node) == "fail" for node in findings.nodes):
            raise typer.Exit(1)


def _tell(findings: Findings, network: str, out: Path, *, pdf: bool, as_csv: bool, as_json: bool) -> None:
    """Write the report, then print the result: a report that cannot be written is no success."""
    from tieline.pipeline.report.exports import NoPdf, for_programs, print_pdf
    from tieline.pipeline.report.figures_csv import write
    from tieline.pipeline.report.page import headline, render

    generated = datetime.now(UTC)
    _write(out, render(findings, network, generated))
    if as_csv:
        _write(out.with_suffix(".csv"), write(findings))
    if as_json:
        print(json.dumps(for_programs(findings, network, generated)))
    else:
        here = console()
        here.print(_table(findings))
        here.print(Text(headline(findings)))
        here.print(Text(f"report: {out}"))
        if as_csv:
            here.print(Text(f"figures: {out.with_suffix('.csv')}"))
    if not pdf:
        return
    try:
        print_pdf(out, out.with_suffix(".pdf"))
    except NoPdf as problem:
        raise Trouble(f"{problem}.") from None
    if not as_json:
        console().print(Text(f"PDF: {out.with_suffix('.pdf')}"))


def _write(out: Path, page: str) -> None:
    """The whole page or the old one, never a part."""
    partial = out.with_name(f".{out.name}.{os.getpid()}")
    try:
        partial.write_text(page, "utf-8")
        partial.replace(out)
    except OSError as problem:
        partial.unlink(missing_ok=True)
        raise Trouble(f"the report cannot be written to {out}: {problem.strerror}") from None


def _table(findings: Findings) -> Table:
    """One row for each node: its verdict, the worst week of each clause, how much was measured."""
    from tieline.pipeline.jobs.quality.quantities import QUANTITIES
    from tieline.pipeline.jobs.quality.verdicts import TOO_LITTLE
    from tieline.pipeline.report.figures import percent

    table = Table(box=None, header_style="dim", pad_edge=False)
    table.add_column("node", overflow="fold")
    table.add_column("verdict", no_wrap=True)
    table.add_column("weeks judged", justify="right", no_wrap=True)
    clauses = (*findings.main_clauses(), *findings.further_clauses)
    for clause in clauses:
        aside = "" if findings.limits.is_rule(clause) else ", no rule"
        title = QUANTITIES[clause.quantity].title
        table.add_column(f"{title} {clause.permille / 10:g} %{aside}", justify="right")
    for clause in findings.year_clauses:
        table.add_column(f"{clause.quantity} {clause.permille / 10:g} % of a year", justify="right")
    table.add_column("coverage V / Hz", justify="right", no_wrap=True)
    table.add_column("incidents", justify="right")
    for node in findings.nodes:
        verdict = findings.node_verdict(node)
        shares = [
            Text(
                percent(findings.lowest_share(node, clause)),
                style=_STYLES[findings.clause_verdict(node, clause)],
            )
            for clause in clauses
        ]
        years = [findings.year(node, clause).verdict for clause in findings.year_clauses]
        coverage = [percent(findings.coverage(quantity, [node]), 1) for quantity in ("voltage", "frequency")]
        table.add_row(
            Text(printable(node)),
            Text(verdict, style=_STYLES[verdict]),
            f"{len(findings.weeks) - findings.node_weeks(node)[TOO_LITTLE]} of {len(findings.weeks)}",
            *shares,
            *(Text(verdict, style=_STYLES[verdict]) for verdict in years),
            " / ".join(coverage),
            f"{findings.incident_counts(node).total():,}",
        )
    return table


@contextmanager
def _progress() -> Iterator[Callable[[str], None]]:
    """Say which step runs: a line that changes on a terminal, plain lines elsewhere."""
    screen = Console(stderr=True)
    if not screen.is_terminal:
        yield lambda step: print(step, file=sys.stderr, flush=True)
        return
    with screen.status("") as status:
        yield lambda step: status.update(Text(step))
