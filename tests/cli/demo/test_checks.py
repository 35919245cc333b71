"""What the demonstration claims is checked for real: each claim fails when it should."""

from __future__ import annotations

from collections import Counter
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tieline.cli.demo.checks import (
    TableContents,
    check_acknowledged,
    check_feeder_to_feeder,
    check_killed,
    check_loop,
    check_overtaking,
    check_planned,
    check_report,
    check_tables,
    check_zones,
    read_contents,
)
from tieline.cli.demo.ledger import FILTERS, Ledger, Said, before, got_through, median_wait, overtaken, waits, zone_of
from tieline.cli.demo.planner import Look
from tieline.match.where import parse, split
from tieline.sim.microgrid import Message

_VOLTS = st.sampled_from([0.0, 195.49, 195.5, 206.99, 207.0, 230.0, 253.0, 253.01]) | st.floats(0, 400)
_HERTZ = st.none() | st.sampled_from([42.49, 42.5, 48.99, 49.0, 51.0, 51.01, 57.5, 57.51]) | st.floats(30, 70)


@given(_VOLTS, _HERTZ)
def test_the_broker_and_the_oracle_mean_the_same_zones(voltage: float, frequency: float | None) -> None:
    values = {"voltage": voltage, "frequency": frequency}
    found = []
    for zone, filter_ in FILTERS.items():
        asked = split(filter_, question_mark=True)
        assert asked.filter == "microgrid/+/+/reading" and asked.expression is not None
        if parse(asked.expression).holds(values.get):
            found.append(zone)
    expected = zone_of(voltage, frequency)
    assert found == ([] if expected is None else [expected])


def _message(kind: str, payload: bytes) -> Message:
    return Message(0.0, kind, f"microgrid/g/n/{kind}", payload, "c")  # type: ignore[arg-type]


def _reading(number: int, voltage: float, frequency: str = "50.0") -> Message:
    payload = f'{{"time":{number},"node":"n","voltage":{voltage},"frequency":{frequency}}}'
    return _message("reading", payload.encode())


@pytest.fixture(name="ledger")
def _ledger() -> Ledger:
    made = Ledger()
    for number, (voltage, hertz) in enumerate([(230, "50"), (200, "50"), (230, "48"), (180, "50"), (0.4, "null")]):
        message = _reading(number, voltage, hertz)
        made.sent(message, "meter", f"r/{number}")
        made.acknowledged(message, "meter", f"r/{number}")
    return made


def _delivered(ledger: Ledger) -> dict[int, Counter[Said]]:
    return {zone: Counter(said) for zone, said in ledger.zones.items()}


def test_the_ledger_knows_the_zones(ledger: Ledger) -> None:
    assert {zone: len(said) for zone, said in ledger.zones.items()} == {1: 1, 2: 2, 3: 2}
    assert (ledger.now.frequency, ledger.now.voltages) == (50, {"n": 0.4})


def test_zones_must_be_exact(ledger: Ledger) -> None:
    assert check_zones(ledger, _delivered(ledger)).is_good
    for spoil in ("missing", "repeated", "another"):
        delivered = _delivered(ledger)
        one = next(iter(ledger.zones[2]))
        if spoil == "missing":
            del delivered[2][one]
        elif spoil == "repeated":
            delivered[2][one] += 1
        else:
            delivered[1][one] += 1
        assert not check_zones(ledger, delivered).is_good, spoil


def test_nothing_may_be_lost_or_doubled_by_a_kill(ledger: Ledger) -> None:
    delivered = _delivered(ledger)
    assert check_killed(ledger, delivered, 3, 0.5).is_good
    assert not check_killed(ledger, delivered, 0, 0.5).is_good, "nothing was on its way, so nothing was shown"
    one = next(iter(ledger.zones[2]))
    delivered[2][one] += 1
    assert "0 lost, 1 twice" in check_killed(ledger, delivered, 3, 0.5).story
    del delivered[2][one]
    assert "1 lost, 0 twice" in check_killed(ledger, delivered, 3, 0.5).story


def test_a_signal_has_to_be_faster_than_readings_and_has_to_come() -> None:
    assert check_feeder_to_feeder([0.1, 0.2], 3.0).is_good
    assert not check_feeder_to_feeder([0.1, 5.0], 3.0).is_good
    assert "1 of 2 urgent signals never came" in check_feeder_to_feeder([0.1, float("inf")], 3.0).story
    assert not check_feeder_to_feeder([], 3.0).is_good
    assert not check_feeder_to_feeder([0.1], None).is_good


_LOOK = Look(1.0, "applied", "plan 1 is in force at 3 brokers: 5 flows moved", "proven: every limit is kept", 5)


def _status(*epochs: int) -> dict[str, Any]:
    first, *others = ({"name": name, "epoch": epoch} for name, epoch in zip("abc", epochs, strict=False))
    return {**first, "others": {said["name"]: said for said in others}}


def test_a_plan_has_to_be_proven_in_force_everywhere_and_shown() -> None:
    shown = {"is_applied": True, "proposal": {"epoch": 1}}
    assert check_planned(_LOOK, _status(1, 1, 1), shown).is_good
    assert check_planned(_LOOK, _status(1, 1, 1), None).is_good, "without the extra there is no page"
    assert not check_planned(None, _status(1, 1, 1), shown).is_good
    assert "but c went by another one" in check_planned(_LOOK, _status(2, 2, 1), shown).story
    assert not check_planned(_LOOK, _status(1, 1, 0), shown).is_good
    assert "does not show it" in check_planned(_LOOK, _status(2, 2, 2), shown).story
    assert not check_planned(_LOOK._replace(checker="refused: worse"), _status(1, 1, 1), shown).is_good
    assert not check_planned(_LOOK._replace(flows_moved=0), _status(1, 1, 1), shown).is_good


def test_the_loop_is_closed_if_what_is_measured_since_is_better() -> None:
    passing = {"carried": 1.0, "waiting": 50_000.0}
    planner = {"applied": {"before": passing, "after": passing | {"waiting": 0.0}}}
    assert check_loop(0.7, 1.1, planner).is_good
    assert not check_loop(0.7, 0.9, planner).is_good, "what waits would still grow"
    assert not check_loop(1.0, 0.99, planner).is_good, "nothing was wrong before"
    assert not check_loop(0.7, None, planner).is_good
    assert not check_loop(0.7, 1.1, {"applied": None}).is_good
    assert not check_loop(0.7, 1.1, {"applied": {"before": passing, "after": None}}).is_good


def test_what_gets_through_is_what_arrives_beside_what_is_sent() -> None:
    ledger, arrived = _story([(0.0, 0, 1.0), (1.0, 0, 6.0), (2.0, 0, None), (3.0, 3, 3.1), (5.0, 0, 6.5)])
    assert got_through(ledger.sent_at, arrived, 0.0, 4.0) == 1 / 3
    assert got_through(ledger.sent_at, arrived, 5.0, 9.0) == 2.0
    assert got_through(ledger.sent_at, arrived, 20.0, 30.0) is None


def test_what_has_not_arrived_has_waited_until_now() -> None:
    ledger, arrived = _story([(0.0, 0, 1.0), (1.0, 0, None), (2.0, 3, 2.1), (9.0, 0, 9.5)])
    assert median_wait(ledger.sent_at, arrived, 0.0, 5.0, 11.0) == (1.0 + 10.0) / 2
    assert median_wait(ledger.sent_at, arrived, 20.0, 25.0, 30.0) is None
    assert len(before(ledger.sent_at, 2.0)) == 3


def test_everything_must_be_acknowledged(ledger: Ledger) -> None:
    assert check_acknowledged(ledger, 0).is_good
    assert not check_acknowledged(ledger, 1).is_good
    ledger.sent(_reading(9, 230), "meter", "r/9")
    assert not check_acknowledged(ledger, 0).is_good
    assert not check_acknowledged(Ledger(), 0).is_good


def test_the_tables_must_hold_each_once(ledger: Ledger) -> None:
    whole = Counter(ledger.acknowledged_)
    assert check_tables(ledger, TableContents(whole, 5, 0, 0)).is_good
    one = next(iter(whole))
    wrong = {
        "1 missing": TableContents(whole - Counter([one]), 4, 0, 0),
        "1 repeated": TableContents(whole + Counter([one]), 6, 0, 0),
        "1 never sent": TableContents(whole + Counter([("meter", "other/1")]), 6, 0, 0),
        "2 in quarantine": TableContents(whole, 5, 2, 0),
        "3 set aside": TableContents(whole, 5, 0, 3),
    }
    for words, held in wrong.items():
        check = check_tables(ledger, held)
        assert not check.is_good and words in check.story


def test_tables_are_read_as_anybody_would(tmp_path: Path) -> None:
    columns = {"_publisher": ["a", "a", "b"], "_seq": ["r/1", None, "r/1"], "_shard": ["demo", "demo", "other"]}
    for day in (1, 2):
        folder = tmp_path / "events" / "reading" / f"batch={day}" / f"day=2026-03-0{day}"
        folder.mkdir(parents=True)
        pq.write_table(pa.table(columns), folder / "part-0.parquet")
    aside = tmp_path / "quarantine" / "batch=1" / "day=2026-03-01"
    aside.mkdir(parents=True)
    pq.write_table(pa.table({"offset": [1, 2], "shard": ["demo", "history"]}), aside / "part-0.parquet")
    assert read_contents(tmp_path, ["demo", "absent"]) == TableContents(Counter({("a", "r/1"): 2}), 4, 1, 0)


def _story(rows: list[tuple[float, int, float | None]]) -> tuple[Ledger, dict[Said, float]]:
    """Messages as (sent, level, arrived)."""
    ledger, arrived = Ledger(), {}
    for number, (sent, level, came) in zip(count(), rows, strict=False):
        said = (f"t/{number}", b"")
        ledger.sent_at[said] = (sent, level)
        if came is not None:
            arrived[said] = came
    return ledger, arrived


_ROWS = st.lists(
    st.tuples(st.integers(0, 20), st.integers(0, 3), st.none() | st.integers(0, 10)).map(
        lambda row: (float(row[0]), row[1], None if row[2] is None else float(row[0] + row[2]))
    ),
    max_size=25,
)


@given(_ROWS)
def test_overtaking_is_counted_as_one_would_by_hand(rows: list[tuple[float, int, float | None]]) -> None:
    ledger, arrived = _story(rows)
    expected = [
        sum(other[1] < 2 and other[0] < sent and (other[2] is None or other[2] > came) for other in rows)
        for sent, level, came in rows
        if level >= 2 and came is not None
    ]
    assert overtaken(ledger.sent_at, arrived) == expected


@given(_ROWS)
def test_what_has_not_arrived_still_waits(rows: list[tuple[float, int, float | None]]) -> None:
    ledger, arrived = _story(rows)
    found = {each.level: each for each in waits(ledger.sent_at, arrived, 40.0)}
    assert sorted(found) == sorted({level for _sent, level, _came in rows})
    for level, each in found.items():
        times = [(40.0 if came is None else came) - sent for sent, which, came in rows if which == level]
        assert (each.sent, each.longest_s) == (len(times), max(times))
        assert each.arrived == sum(came is not None for _sent, which, came in rows if which == level)


_BULK = [(float(second), 0, float(second) + 5) for second in range(10)]


@pytest.mark.parametrize(
    ("urgent", "is_good"),
    [
        ([(5.0, 2, 5.2), (6.0, 3, 6.1)], True),
        ([(5.0, 2, 5.2), (6.0, 3, None)], False),  # lost
        ([(5.0, 2, 10.5)], False),  # as slow as a reading
        ([], False),
    ],
)
def test_urgent_messages_must_overtake(urgent: list[tuple[float, int, float | None]], is_good: bool) -> None:
    ledger, arrived = _story([*_BULK, *urgent])
    assert check_overtaking(ledger.sent_at, arrived, 5.0, 20.0).is_good is is_good


def test_without_anything_in_the_way_nothing_is_overtaken() -> None:
    ledger, arrived = _story([(0.0, 0, 0.1), (1.0, 2, 1.05)])
    assert not check_overtaking(ledger.sent_at, arrived, 0.1, 2.0).is_good
    assert not check_overtaking(ledger.sent_at, arrived, None, 2.0).is_good


def test_a_report_must_be_a_page(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert not check_report(None).is_good and not check_report(page).is_good
    page.write_text("nothing")
    assert not check_report(page).is_good
    page.write_text("<!doctype html>\n<html></html>")
    assert check_report(page).is_good
