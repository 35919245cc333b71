"""What row groups say about themselves lets readers skip most of a table."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.pipeline.lake import kit
from tieline.pipeline.decode.batch import Curve
from tieline.pipeline.lake.document import new_document
from tieline.pipeline.lake.writing import by_day, clustered, write_file

BOX = {"voltage": (228.0, 232.0), "current": (10.0, 30.0), "frequency": (49.98, 50.02)}


def spread_rows(count: int) -> pa.Table:
    """Readings with their keys, around what a grid usually has."""
    random = np.random.default_rng(1)
    columns = {
        "voltage": pa.array(random.normal(230, 8, count)),
        "current": pa.array(random.uniform(0, 100, count)),
        "frequency": pa.array(random.normal(50, 0.1, count)),
    }
    clustering = new_document("parquet", "now").evolved(kit.settings().event, "now").types["reading"].clustering
    assert clustering is not None
    return pa.table({**columns, "_hilbert": Curve(clustering).keys(columns, count)})


def groups_touched(path: Path, box: dict[str, tuple[float, float]]) -> tuple[int, int]:
    """How many row groups may hold rows of a box, by their statistics, and how many there are."""
    metadata = pq.read_metadata(path)
    touched = 0
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        by_name = {
            group.column(each).path_in_schema: group.column(each).statistics for each in range(group.num_columns)
        }
        touched += all(low <= by_name[name].max and high >= by_name[name].min for name, (low, high) in box.items())
    return touched, metadata.num_row_groups


def test_a_range_of_three_attributes_touches_few_row_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tieline.pipeline.lake.writing.GROUP_ROWS", 512)
    rows = spread_rows(200_000)
    write_file(clustered(rows), tmp_path / "curve.parquet")
    write_file(rows, tmp_path / "time.parquet")
    touched, count = groups_touched(tmp_path / "curve.parquet", BOX)
    assert count == 391
    assert touched <= count // 5
    assert groups_touched(tmp_path / "time.parquet", BOX) == (count, count)
    conditions = [
        condition for name, (low, high) in BOX.items() for condition in ((name, ">=", low), (name, "<=", high))
    ]
    found = [pq.read_table(tmp_path / name, filters=conditions).num_rows for name in ("curve.parquet", "time.parquet")]
    assert found[0] == found[1] > 0


def test_a_group_keeps_its_rows_and_has_them_in_the_order_of_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tieline.pipeline.lake.writing.GROUP_ROWS", 64)
    rows = spread_rows(1_000)
    times = pa.array(np.random.default_rng(2).integers(0, 500, len(rows)), pa.timestamp("us", "UTC"))
    rows = rows.append_column("_time", times).append_column("_offset", pa.array(range(len(rows))))
    ordered = clustered(rows)
    write_file(ordered, tmp_path / "a.parquet")
    with pq.ParquetFile(tmp_path / "a.parquet") as file:
        for number in range(file.num_row_groups):
            found = file.read_row_group(number)
            expected = ordered.slice(64 * number, 64)
            assert sorted(found["_hilbert"].to_pylist()) == sorted(expected["_hilbert"].to_pylist())
            assert found.equals(expected.sort_by([("_time", "ascending"), ("_offset", "ascending")]))


@given(st.lists(st.integers(-(10**15), 10**16), max_size=30))
def test_days_are_those_of_the_calendar(micros: Any) -> None:
    rows = pa.table({"_time": pa.array(micros, pa.timestamp("us", "UTC")), "n": range(len(micros))})
    found = {}
    for day, part in by_day(rows, "_time"):
        assert {each.date() for each in part["_time"].to_pylist()} == {day}
        assert isinstance(day, date)
        found[day] = part["n"].to_pylist()
    assert sorted(place for places in found.values() for place in places) == list(range(len(micros)))
