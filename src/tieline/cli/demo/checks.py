"""What the demonstration claims, each held against the ledger: the exit code is nothing but these.

What the tables hold is read without Spark: plain Parquet files, as anybody would.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple  # Any: values of JSON

from tieline.cli.demo.ledger import URGENT, Ledger, Said, overtaken, waits

if TYPE_CHECKING:
    from tieline.cli.demo.planner import Look

#: The share of readings that has to come as fast as they are sent where there is room: spans end between two of them.
ENOUGH: Final = 0.97


class TableContents(NamedTuple):
    """The rows of some brokers in all tables of events."""

    #: How often each numbered message is there, by publisher and ``seq``.
    numbered: Counter[tuple[str, str]]
    rows: int
    #: Rows of the tables for what could not be read, and for what was sent twice.
    quarantined: int
    duplicates: int


def read_contents(lake: Path, shards: Sequence[str]) -> TableContents:
    """Look into every file below the lake's tables."""
    numbered: Counter[tuple[str, str]] = Counter()
    rows = 0
    for found in _columns(lake / "events", ["_publisher", "_seq"], ("_shard", shards)):
        rows += len(found["_seq"])
        pairs = zip(found["_publisher"], found["_seq"], strict=True)
        numbered.update((publisher or "", seq) for publisher, seq in pairs if seq is not None)
    aside = (
        sum(len(found["offset"]) for found in _columns(lake / name, ["offset"], ("shard", shards)))
        for name in ("quarantine", "duplicates")
    )
    return TableContents(numbered, rows, *aside)


def _columns(folder: Path, names: list[str], only: tuple[str, Sequence[str]]) -> list[dict[str, list[str | None]]]:
    import pyarrow.parquet as pq

    column, values = only
    return [
        # the directories' own names would become columns of another type here and there
        pq.read_table(file, columns=names, filters=[(column, "in", list(values))], partitioning=None).to_pydict()
        for file in sorted(folder.rglob("*.parquet"))
    ]


class Check(NamedTuple):
    """One claim, what was seen, and whether they agree."""

    title: str
    story: str
    is_good: bool


def check_zones(ledger: Ledger, delivered: Mapping[int, Counter[Said]]) -> Check:
    """Each subscriber got the readings of its zone, once each, and no others."""
    parts, is_good = [], True
    for zone, expected in ledger.zones.items():
        got = delivered[zone]
        is_good = is_good and got == Counter(expected)
        parts.append(f"zone {zone}: {got.total():,} of {len(expected):,}")
    return Check("Zones", f"subscribers by content got exactly theirs: {', '.join(parts)}", is_good)


def check_overtaking(
    sent: Mapping[Said, tuple[float, int]], arrived: Mapping[Said, float], reading_s: float | None, now: float
) -> Check:
    """Over thin links every urgent message arrives, sooner than half of the readings while a link was full."""
    urgent = [each for each in waits(sent, arrived, now) if each.level >= URGENT]
    passed = overtaken(sent, arrived)
    if not urgent or reading_s is None:
        return Check("Urgent first", "there was nothing urgent, or nothing to overtake", is_good=False)
    slowest = max(each.longest_s for each in urgent)
    missing = sum(each.sent - each.arrived for each in urgent)
    story = (
        f"{sum(each.arrived for each in urgent)} commands and trips overtook up to {max(passed, default=0):,} messages "
        f"each; the slowest took {slowest:.2f} s, a reading {reading_s:.1f} s (median) while the link was full"
    )
    is_good = not missing and slowest < reading_s and any(passed)
    return Check("Urgent first", story + (f"; {missing} never came" if missing else ""), is_good)


def check_feeder_to_feeder(signals: Sequence[float], reading_s: float | None) -> Check:
    """An urgent signal crosses both links sooner than half of the readings cross the full one; waits are sorted."""
    title = "Feeder to feeder"
    if not signals or reading_s is None:
        return Check(title, "there was nothing urgent, or nothing to overtake", is_good=False)
    p99_s = signals[math.ceil(0.99 * len(signals)) - 1]
    if math.isinf(signals[-1]):
        return Check(
            title, f"{sum(map(math.isinf, signals))} of {len(signals)} urgent signals never came", is_good=False
        )
    story = (
        f"of {len(signals)} urgent signals over both links 99 % took at most {p99_s:.2f} s, a reading over "
        f"the full one of them {reading_s:.1f} s (median)"
    )
    return Check(title, story, p99_s < reading_s)


def check_planned(look: Look | None, status: Mapping[str, Any], shown: Mapping[str, Any] | None) -> Check:
    """A plan that was proven is in force at every broker, and the page shows the same; ``shown`` is None without it."""
    title = "Plan applied"
    if look is None:
        return Check(title, "the planner has applied none", is_good=False)
    brokers = {status["name"]: status, **status["others"]}
    epochs = {name: said.get("epoch", 0) for name, said in brokers.items()}
    behind = sorted(name for name, epoch in epochs.items() if not epoch or epoch != max(epochs.values()))
    story = f"{look.verdict}; {look.checker.split(':')[0]} by a checker that shares no code with the search"
    if behind:
        return Check(title, f"{story}; but {', '.join(behind)} went by another one", is_good=False)
    is_good = look.checker.startswith("proven") and look.flows_moved > 0
    if shown is not None:
        is_shown = bool(shown.get("is_applied")) and shown["proposal"]["epoch"] == max(epochs.values())
        story += ", as the page shows" if is_shown else "; but the page does not show it"
        is_good = is_good and is_shown
    return Check(title, story, is_good)


def check_loop(before: float | None, since: float | None, planner: Mapping[str, Any] | None) -> Check:
    """What was measured became a plan, and since then what is sent gets through; shares of the readings."""
    title = "Loop closed"
    applied = None if planner is None else planner.get("applied")
    if before is None or since is None or applied is None or not (applied["before"] and applied["after"]):
        return Check(title, "nothing was measured before the plan, or since", is_good=False)
    carried, carries = applied["before"]["carried"], applied["after"]["carried"]
    story = (
        f"over the full link {before:.0%} of the readings got through as fast as they were sent, with the plan "
        f"{since:.0%}; links carried {carried * 8 / 1e3:,.0f} kbit/s before it, and carry {carries * 8 / 1e3:,.0f}"
    )
    return Check(title, story, since >= ENOUGH and before < since)


def check_killed(ledger: Ledger, delivered: Mapping[int, Counter[Said]], waiting: int, away_s: float) -> Check:
    """Nothing that was on its way to a broker that is killed is lost, and nothing comes twice."""
    missing = sum(said not in delivered[zone] for zone, expected in ledger.zones.items() for said in expected)
    twice = sum(count > 1 for heard in delivered.values() for count in heard.values())
    story = f"the control centre was killed with {waiting:,} readings on their way to it, and back after {away_s:.1f} s"
    outcome = "none was lost, none came twice" if not missing and not twice else f"{missing} lost, {twice} twice"
    return Check("Killed and back", f"{story}: {outcome}", not missing and not twice and waiting > 0)


def check_acknowledged(ledger: Ledger, refused: int) -> Check:
    """The broker took responsibility for every numbered message."""
    count, total = len(ledger.acknowledged_), len(ledger.numbered)
    return Check(
        "Acknowledged", f"{count:,} of {total:,} messages with QoS 1 and 2", count == total > 0 and not refused
    )


def check_tables(ledger: Ledger, held: TableContents) -> Check:
    """Every acknowledged message is in the tables, once."""
    missing = sum(each not in held.numbered for each in ledger.acknowledged_)
    repeated = sum(count > 1 for count in held.numbered.values())
    strange = sum(each not in ledger.numbered for each in held.numbered)
    faults = {
        "missing": missing,
        "repeated": repeated,
        "never sent": strange,
        "in quarantine": held.quarantined,
        "set aside as duplicates": held.duplicates,
    }
    named = ", ".join(f"{count:,} {name}" for name, count in faults.items() if count)
    story = f"{len(held.numbered):,} of {len(ledger.acknowledged_):,} acknowledged messages are in the tables"
    return Check("Exactly once", f"{story}; {named}" if named else f"{story}, once each", not named)


def check_report(report: Path | None) -> Check:
    """There is a report, and it is a page."""
    if report is None or not report.is_file():
        return Check("Report", "no report was written", is_good=False)
    is_page = report.read_bytes()[:15].lower() == b"<!doctype html>"
    return Check("Report", f"EN 50160, one week, {report.stat().st_size / 1e3:,.0f} kB", is_page)
