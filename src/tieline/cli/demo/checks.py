"""What the demonstration claims, each held against the ledger: the exit code is nothing but these.

What the tables hold is read without Spark: plain Parquet files, as anybody would.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tieline.cli.demo.ledger import URGENT, Ledger, Said, overtaken, waits


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


def check_overtaking(ledger: Ledger, arrived: Mapping[Said, float], now: float) -> Check:
    """Over thin links every urgent message arrives, sooner than half of the others."""
    found = waits(ledger.sent_at, arrived, now)
    urgent = [each for each in found if each.level >= URGENT]
    bulk = [each for each in found if each.level == 0]
    passed = overtaken(ledger.sent_at, arrived)
    if not urgent or not bulk:
        return Check("Urgent first", "there was nothing urgent, or nothing to overtake", is_good=False)
    slowest = max(each.longest_s for each in urgent)
    missing = sum(each.sent - each.arrived for each in urgent)
    story = (
        f"{sum(each.arrived for each in urgent)} commands and trips overtook up to {max(passed, default=0):,} messages "
        f"each; the slowest took {slowest:.2f} s, a reading {bulk[0].median_s:.1f} s (median)"
    )
    is_good = not missing and slowest < bulk[0].median_s and any(passed)
    return Check("Urgent first", story + (f"; {missing} never came" if missing else ""), is_good)


def check_feeder_to_feeder(
    signals: Sequence[float], sent: Mapping[Said, tuple[float, int]], arrived: Mapping[Said, float], now: float
) -> Check:
    """An urgent signal crosses both links sooner than half of the readings cross them; ``signals`` are sorted waits."""
    title = "Feeder to feeder"
    bulk = [each for each in waits(sent, arrived, now) if each.level == 0 and each.arrived]
    if not signals or not bulk:
        return Check(title, "there was nothing urgent, or nothing to overtake", is_good=False)
    p99_s = signals[math.ceil(0.99 * len(signals)) - 1]
    if math.isinf(signals[-1]):
        return Check(
            title, f"{sum(map(math.isinf, signals))} of {len(signals)} urgent signals never came", is_good=False
        )
    story = (
        f"of {len(signals)} urgent signals over both links 99 % took at most {p99_s:.2f} s, a reading over "
        f"one of them {bulk[0].median_s:.1f} s (median)"
    )
    return Check(title, story, p99_s < bulk[0].median_s)


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
