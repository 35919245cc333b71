"""The run in words and tables: what was measured, against what, and which targets are met."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.table import Table

from tieline.bench.metrics import METRICS, readable, three_digits
from tieline.bench.peers import BASELINE, SUBJECT
from tieline.bench.record import Record, Row
from tieline.bench.targets import Verdict
from tieline.bench.workloads import WORKLOADS
from tieline.bench.workloads.workload import Workload

_TITLES = {
    "throughput": "Saturated: messages delivered per second, broker CPU per delivered message",
    "payloads": "Long payloads, saturated: messages delivered per second, broker CPU per delivered message",
    "durable": "Durable: messages delivered per second, CPU of the broker and its writer per delivered message",
    "promise": "Durable: time from send to acknowledgement, p50, p99",
    "first": "First message of a topic: broker CPU for it, for a later one, and their ratio",
    "latency": "Latency: time from send to receive, p50, p99",
    "paced": "Paced: broker CPU per message, time from send to receive p50, p99",
    "filters": "CPU of a PUBLISH with the other filters : without, one topic, changing topics",
    "connections": "Connections: accepted per second and CPU for each; memory when idle, idle with a subscription",
}
#: More rows than these are counted instead of named.
_LISTED = 12


def show(record: Record, console: Console, *, measured_only: bool = False) -> None:
    """Print everything a reader needs to judge the numbers; perhaps without the targets that were not asked about."""
    for line in preamble(record):
        console.print(line, highlight=False, markup=False)
    for group, title in _TITLES.items():
        rows = [row for row in record.rows if row.group == group]
        if rows:
            console.print(_table(title, record, rows))
    for line in remarks(record):
        console.print(line, highlight=False, markup=False)
    measured = [one for one in record.targets if one.verdict != "not measured"]
    if measured:
        console.print(_targets(measured if measured_only else record.targets))


def preamble(record: Record) -> Iterator[str]:
    """Machine, commit, versions."""
    machine = record.machine
    yield (
        f"{machine['processor']}, {machine['cores']} cores, {machine['memory_gb']} GB, Linux {machine['kernel']}; "
        f"commit {record.commit}; {'quick ' if record.quick else ''}run of {record.seconds:.0f} s at {record.started}"
    )
    yield "  ".join(f"{name} {version}" for name, version in record.versions.items())
    for name, install in record.absent.items():
        yield f"absent: {name} (to install it: {install})"


def remarks(record: Record) -> Iterator[str]:
    """Rows without numbers, and rows to be read with care."""
    flagged: dict[str, list[str]] = {}
    for row in record.rows:
        if row.status != "measured":
            yield f"{row.title}: {row.peer}: {row.status}: {row.note}"
        for flag in row.flags:
            flagged.setdefault(flag, []).append(f"{row.workload} ({row.peer})")
        if row.peer == SUBJECT and "flushes_per_s" in row.metrics:
            yield f"{row.title}: {_flushed(row, record)}"
    yield from _delivered(record)
    measured = sum(row.status == "measured" for row in record.rows)
    for flag, rows in flagged.items():
        where = ", ".join(rows) if len(rows) <= _LISTED else f"{len(rows)} of {measured} rows, marked *"
        yield f"* {flag}: {where}"


def _delivered(record: Record) -> Iterator[str]:
    """How much the rows rest on: what was not delivered would have made its row fail."""
    spells = [one for row in record.rows if row.status == "measured" for one in row.repetitions if "delivered" in one]
    if spells:
        count, checked = (sum(one.get(name, 0.0) for one in spells) for name in ("delivered", "checked"))
        yield (
            f"{count:,.0f} messages were owed in the {len(spells)} spells of these rows, and all were delivered; "
            f"{checked:,.0f} before them were compared byte for byte"
        )


def _flushed(row: Row, record: Record) -> str:
    """How often the disk really was told, and how much went into one such commit; the count is the whole machine's."""
    per_s = row.metrics["flushes_per_s"]
    text = f"{SUBJECT} flushed the disk ({record.machine.get('disk', 'unknown')}) {per_s:,.0f} times a second"
    if per_s >= 1:
        text += f", with {row.metrics['inbound_rate'] / per_s:,.1f} published messages in each"
    others = record.value(row.workload, BASELINE, "flushes_per_s")
    return text if others is None else f"{text}; {others:,.0f} times while {BASELINE} worked"


def cell(row: Row | None, workload: Workload, *, separator: str = ", ") -> str:
    """The shown numbers of a row, or why there are none."""
    if row is None:
        return ""
    metrics = row.metrics
    if not metrics:
        return row.status
    mark = " *" if row.flags else ""
    return separator.join(readable(metrics[name], METRICS[name].unit) for name in workload.shown) + mark


def against_baseline(record: Record, workload: Workload, *, separator: str = ", ") -> str:
    """Ratios of the subject to the baseline for the shown numbers."""
    if workload.group == "filters":
        return ""  # these numbers are ratios already
    ratios = [record.ratio(workload.name, metric, SUBJECT, BASELINE) for metric in workload.shown]
    return separator.join("-" if ratio is None else f"{three_digits(ratio)}x" for ratio in ratios)


def shown_value(value: float | None, unit: str) -> str:
    """A target's number."""
    if value is None:
        return "-"
    return readable(value, "B") if unit == "B" else f"{three_digits(value)}x"


def _table(title: str, record: Record, rows: Sequence[Row]) -> Table:
    peers = [name for name in record.versions if any(row.peer == name for row in rows)]
    # The numbers of a cell stand one below the other, in the order of the title: five brokers fit a terminal.
    table = Table(title=title, title_justify="left", show_lines=True)
    table.add_column("workload", overflow="fold")
    for peer in peers:
        table.add_column(peer, justify="right", no_wrap=True)
    table.add_column(f"{SUBJECT} :\n{BASELINE}", justify="right", no_wrap=True)
    for workload in _workloads_of(rows):
        cells = [cell(record.row(workload.name, peer), workload, separator="\n") for peer in peers]
        table.add_row(workload.title, *cells, against_baseline(record, workload, separator="\n"))
    return table


def _targets(targets: Sequence[Verdict]) -> Table:
    table = Table(title="Targets", title_justify="left")
    table.add_column("target")
    for heading in ("limit", "measured"):
        table.add_column(heading, justify="right")
    table.add_column("")
    colours = {"met": "green", "not met": "red", "not measured": "dim"}
    for one in targets:
        limit = ("≥ " if one.at_least else "≤ ") + shown_value(one.limit, one.unit)
        verdict = f"[{colours[one.verdict]}]{one.verdict}[/]"
        table.add_row(one.target, limit, shown_value(one.measured, one.unit), verdict)
    return table


def _workloads_of(rows: Sequence[Row]) -> list[Workload]:
    names = {row.workload for row in rows}
    return [workload for workload in WORKLOADS if workload.name in names]


def markdown(record: Record) -> str:
    """The same tables as a page."""
    lines = [f"- {line}" for line in preamble(record)]
    for group, title in _TITLES.items():
        rows = [row for row in record.rows if row.group == group]
        if not rows:
            continue
        peers = [name for name in record.versions if any(row.peer == name for row in rows)]
        lines += ["", f"### {title}", "", f"| workload | {' | '.join(peers)} | {SUBJECT} : {BASELINE} |"]
        lines.append("|---" + "|--:" * (len(peers) + 1) + "|")
        for workload in _workloads_of(rows):
            cells = [cell(record.row(workload.name, peer), workload) for peer in peers]
            lines.append(f"| {' | '.join([workload.title, *cells, against_baseline(record, workload)])} |")
    lines += ["", *(f"- {line}" for line in remarks(record)), "", "### Targets", ""]
    lines += ["| target | limit | measured | |", "|---|--:|--:|---|"]
    for one in record.targets:
        limit = ("≥ " if one.at_least else "≤ ") + shown_value(one.limit, one.unit)
        lines.append(f"| {one.target} | {limit} | {shown_value(one.measured, one.unit)} | {one.verdict} |")
    return "\n".join(lines) + "\n"
