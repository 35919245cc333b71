"""The sums behind the pipeline's benchmark: lines, checksums, bytes, and what counts as lost."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from tieline.bench.load.job import Failure
from tieline.bench.pipeline import PARTS, cases, ranges, tables
from tieline.bench.pipeline.cases import make_plan
from tieline.bench.pipeline.kills_proof import Finding, compared, debris
from tieline.bench.pipeline.publishers import Device
from tieline.bench.pipeline.readings import EVENT_TYPE, METERS, log_table, payloads, portions, readings
from tieline.bench.pipeline.suite import SUITE
from tieline.bench.pipeline.tables import bend, line
from tieline.bench.suite.results import Results, Row, Verdict
from tieline.cli.bench import app
from tieline.cli.trouble import Trouble
from tieline.conf.load import loads
from tieline.pipeline.decode import Decoder
from tieline.pipeline.lake.document import new_document

times = st.floats(0.01, 1_000.0)


@given(start=times, slope=times, x=st.lists(st.integers(1, 10**7), min_size=2, max_size=6, unique=True))
def test_a_line_is_found_again(start: float, slope: float, x: list[int]) -> None:
    found = line([float(each) for each in x], [start + slope * each for each in x])
    assert found.slope == pytest.approx(slope, rel=1e-4)
    assert found.start == pytest.approx(start, rel=1e-3, abs=slope * 1e-3 * max(x))


def test_a_line_needs_two_places() -> None:
    with pytest.raises(ValueError, match="two different places"):
        line([1.0, 1.0], [1.0, 2.0])
    with pytest.raises(ValueError, match="above zero"):
        line([1.0, 2.0], [0.0, 2.0])


@given(start=times, slope=times, more=st.floats(1.0, 3.0))
def test_a_bend_is_how_much_steeper_one_end_is(start: float, slope: float, more: float) -> None:
    x = [1.0, 2.0, 5.0, 10.0]
    straight = [start + slope * each for each in x]
    assert bend(x, straight) == pytest.approx(1.0, rel=1e-6)
    steeper = [*straight[:3], straight[2] + slope * more * 5.0]
    assert bend(x, steeper) == pytest.approx(more, rel=1e-6)
    assert bend([1.0, 3.0, 10.0], [1.0, 3.0, 3.0 + 7.0 * more]) == pytest.approx(more)
    assert bend([1.0, 2.0], [2.0, 1.0]) == float("inf")


def test_what_is_not_steeper_is_not_extrapolated() -> None:
    assert ranges.extrapolated([100, 200], [2.0, 3.0], 1_000) == pytest.approx(11.0)
    with pytest.raises(Failure, match="busy"):
        ranges.extrapolated([100, 200], [3.0, 2.0], 1_000)


@given(st.sets(st.tuples(st.integers(0, 10**6), st.integers(0, 10**4)), max_size=20))
def test_the_checksum_is_the_sum_over_pairs(pairs: set[tuple[int, int]]) -> None:
    offsets, numbers = (np.array([pair[side] for pair in pairs], np.int64) for side in (0, 1))
    expected = sum((offset * 31 + number * 1_000_003) % 2_147_483_647 for offset, number in pairs)
    assert ranges.checksum(offsets, numbers) == expected


def test_boxes_are_in_the_unit_cube_and_as_wide_as_said() -> None:
    lo, hi = ranges.boxes(500, np.random.default_rng(1))
    assert (lo >= 0).all() and (hi <= 1).all()
    assert ((hi - lo) >= 0.05 - 1e-9).all() and ((hi - lo) <= 0.15 + 1e-9).all()


@given(st.integers(0, 10**4), st.integers(1, 10**3))
def test_portions_are_the_whole(count: int, most: int) -> None:
    parts = list(portions(count, most))
    assert [number for part in parts for number in part] == list(range(count))
    assert all(0 < len(part) <= most for part in parts)


def test_payloads_say_what_the_numbers_say() -> None:
    rows = readings(12_300, 250)
    for place, payload in enumerate(payloads(rows).to_pylist()):
        said = json.loads(payload)
        assert said["node"] == f"n{(12_300 + place) % METERS}"
        assert said["voltage"] == pytest.approx(rows.voltage[place], abs=0.006)
        assert said["frequency"] == pytest.approx(rows.frequency[place], abs=0.0001)


def test_the_made_up_log_can_be_decoded_and_all_numbers_differ() -> None:
    log = log_table(readings(0, 1_000))
    decoded = Decoder(new_document("parquet", "now").evolved(loads(EVENT_TYPE).event, "now")).decode(log)
    assert {table.name: len(rows) for table, rows in decoded.rows.items()} == {"events/reading": 1_000}
    (rows,) = decoded.rows.values()
    assert rows["_hilbert"].null_count == 0
    keys = set(zip(rows["_publisher"].to_pylist(), rows["_seq"].to_pylist(), strict=True))
    assert len(keys) == 1_000


def test_bytes_are_those_of_the_groups_that_may_hold_a_row(tmp_path: Path) -> None:
    random = np.random.default_rng(5)
    columns = {name: random.uniform(size=1_000) for name in tables.ATTRIBUTES}
    columns["voltage"].sort()
    table = pa.table({**columns, "other": random.uniform(size=1_000)})
    path = tmp_path / "a.parquet"
    pq.write_table(table, path, row_group_size=100)
    for query in tables.random_queries(table, 20):
        expected = 0
        for number in range(10):
            group = table.slice(100 * number, 100)
            if all(min(group[name].to_pylist()) <= high and max(group[name].to_pylist()) >= low
                   for name, (low, high) in query.items()):  # fmt: skip
                found = pq.read_metadata(path).row_group(number)
                expected += sum(found.column(place).total_compressed_size for place in range(4))
        assert tables.bytes_needed([path], query) == expected > 0
        for name, (low, high) in query.items():
            values = table[name].to_numpy()
            assert ((values >= low) & (values <= high)).mean() == pytest.approx(0.1, abs=0.02)


def test_lost_twice_and_unknown() -> None:
    sure, forgetful = Device("a", 1), Device("b", 1, forgets=True)
    sure.acknowledged, forgetful.acknowledged, forgetful.doubtful = {"0/1", "0/2"}, {"1/1"}, {"1/2", "1/3"}
    right = Counter({("a", "0/1"): 1, ("a", "0/2"): 1, ("b", "1/1"): 1, ("b", "1/2"): 1})
    assert compared(right, [sure, forgetful]) == Finding(0, 0, 0)
    wrong = Counter({("a", "0/1"): 3, ("b", "1/1"): 1, ("b", "1/2"): 2, ("b", "9/9"): 1, ("a", "1/1"): 1})
    assert compared(wrong, [sure, forgetful]) == Finding(lost=1, twice=3, unknown=2)


def test_debris_is_what_is_no_table(tmp_path: Path) -> None:
    good = tmp_path / "events" / "reading" / "batch=0" / "day=2026-03-01" / "part-1.parquet"
    good.parent.mkdir(parents=True)
    good.write_bytes(b"PAR1")
    (tmp_path / "_staging").mkdir()
    assert debris(tmp_path) == []
    empty, strange = good.with_name("part-2.parquet"), good.with_name("part-1.parquet.crc")
    empty.touch()
    strange.write_bytes(b"x")
    (tmp_path / "_staging" / "1234").mkdir()
    assert set(debris(tmp_path)) == {empty, strange, tmp_path / "_staging" / "1234"}


def record_of(found: dict[tuple[str, str], dict[str, float]]) -> Results:
    record = Results(form="pipeline-2", quick=True, started="", commit="", machine={}, versions={}, absent={})
    record.rows = [
        Row(workload=workload, title=workload, group="kills", peer=peer, repetitions=[metrics])
        for (workload, peer), metrics in found.items()
    ]
    return record


def judge(record: Results) -> list[Verdict]:
    return [goal.judge(record) for goal in SUITE.goals]


def test_goals_are_about_the_rows() -> None:
    assert {goal.verdict for goal in judge(record_of({}))} == {"not measured"}
    found = judge(record_of({(tables.GROWTH, tables.FIT): {"bend": 1.1}, ("kills", "all of them"): {"lost": 1.0}}))
    met = [goal.text for goal in found if goal.verdict == "met"]
    missed = [goal.text for goal in found if goal.verdict == "not met"]
    assert len(met) == len(missed) == 1
    assert met[0].startswith("time = a + b · rows")
    assert missed[0].endswith("acknowledged messages lost")


def test_tables_that_do_not_hold_what_they_should_are_wrong() -> None:
    assert list(SUITE.faults(record_of({("kills", "x"): {"kills": 3.0, "lost": 0.0, "duplicates": 9.0}}))) == []
    assert list(SUITE.faults(record_of({("kills", "x"): {"twice": 2.0, "debris": 1.0}}))) == [
        "kills: x: 2 twice",
        "kills: x: 1 debris",
    ]


def test_a_plan_counts_its_steps() -> None:
    assert make_plan(quick=False).steps == sum(make_plan([part], quick=False).steps for part in PARTS)
    assert make_plan(["kills"], quick=False).steps == 50 + 8


def test_the_help_and_the_pages_say_how_long_it_takes() -> None:
    full, quick = (sum(part.seconds for part in parts) / 60 for parts in (cases.FULL, cases.QUICK))
    assert 30 < full < 60 and 7 < quick < 9
    page = (Path(__file__).parents[2] / "docs" / "benchmarks.md").read_text()
    assert re.search(r"tieline bench pipeline +# within an hour;  --quick takes about eight minutes", page)
    told = CliRunner().invoke(app, ["pipeline", "--help"], env={"COLUMNS": "200"}).output
    assert "within an hour, --quick within about eight minutes" in " ".join(told.split())


def test_a_quick_run_measures_every_goal() -> None:
    reasons = make_plan(quick=True).reasons()
    assert [goal.text for goal in SUITE.goals if goal.objection(reasons, {})] == []


def test_the_command_knows_its_parts(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["pipeline", "--part", "tea", "--out", str(tmp_path)])
    assert isinstance(result.exception, Trouble)
    assert str(result.exception) == f"no part is called tea; there are {', '.join(PARTS)}"
    assert not any(tmp_path.iterdir())
