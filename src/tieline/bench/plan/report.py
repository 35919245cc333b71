"""The run in words and tables: what was measured, against what, and which goals are met."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median
from typing import Final

from tieline.bench.plan.metrics import SHARES, shown
from tieline.bench.plan.record import NAIVE, PlanRecord
from tieline.bench.record import Row
from tieline.bench.sheets import Layout

#: Group of rows: title, and the shown numbers with their headings.
TABLES: dict[str, tuple[str, dict[str, str]]] = {
    "sizes": (
        "The paper's sizes: CPU seconds, median and worst over the seeds",
        {"cpu_s": "until the end", "found_s": "best plan found", "is_proven": "proven", "gap": "gap", "unmet": "unmet"},
    ),
    "found": (
        "Other instances of the two largest sizes: when the best plan that is known was there, by the clock",
        {
            "best_wall_s": "best plan found",
            "is_found": "found",
            "soon": "after 1 s, above it",
            "is_proven": "known to be optimal",
            "unmet": "unmet",
        },
    ),
    "networks": (
        "Larger meshes: what is proven after the time given",
        {
            "gap": "gap",
            "unmet": "unmet",
            "first_s": "first plan",
            "done_s": "gap of 1 %",
            "cpu_s": "CPU",
            "wall_s": "clock",
        },
    ),
    "first": (
        "Very large: the first plan that keeps every limit",
        {"first_s": "first plan, CPU", "first_wall_s": "by the clock", "unmet": "unmet", "gap": "gap"},
    ),
    "replan": (
        "A link fails: planning again, beside a cold start; seconds by the clock",
        {
            "warm_s": "again",
            "read_s": "read first",
            "proven_s": "with proof",
            "cold_s": "cold, to a gap of 1 %",
            "as_good_s": "cold, as good",
            "moved": "flows moved",
            "moved_cold": "cold",
            "flows": "of",
            "lost": "lost",
            "gap": "gap",
        },
    ),
    "bounds": (
        "Bounds against the optimum",
        {"instances": "instances", "above": "above the optimum", "closeness": "bound : optimum"},
    ),
    "distributed": (
        "Brokers among themselves, beside the central plan",
        {
            "behind": "dearer per served request",
            "more_unmet": "more unmet",
            "messages": "messages",
            "messages_request": "per request",
            "cpu_s": "CPU",
        },
    ),
}
#: Numbers of which the worst is shown beside the median.
_WITH_WORST = ("cpu_s", "found_s", "best_wall_s", "soon", "gap")


def _cell(row: Row, name: str) -> str:
    values = [one[name] for one in row.repetitions if name in one]
    if not values:
        return ""
    if name in SHARES:
        return f"{sum(values):.0f} of {len(values)}"
    middle = shown(name, median(values))
    return f"{middle} / {shown(name, max(values))}" if name in _WITH_WORST and len(values) > 1 else middle


def _words(record: PlanRecord) -> Iterator[str]:
    yield f"compiling and warming up took {record.compile_s:.1f} s, which are in no number below"
    limited = sum(not one["is_proven"] for row in record.rows if row.peer == NAIVE for one in row.repetitions)
    if limited:
        yield f"the naive model was ended by its time limit {limited} times: its times are at least what is shown"


LAYOUT: Final[Layout[PlanRecord]] = Layout(tables=TABLES, first=("case", "with"), shown=shown, cell=_cell, words=_words)
show, markdown, line = LAYOUT.show, LAYOUT.markdown, LAYOUT.line
