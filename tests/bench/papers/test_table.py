"""Tables in long form: what is chosen of them, and how they are written."""

from __future__ import annotations

from pathlib import Path

import pytest

from tieline.bench.papers.frame.table import Table

TABLE = Table(
    "delay",
    {"protocol": "protocol", "events": "events", "seed": "seed", "delay_s": "delay, s"},
    [("psm", 100, 0, 0.5), ("psm", 100, 1, 1.5), ("ours", 100, 0, 0.25), ("psm", 50, 0, None)],
)


def test_rows_are_chosen_by_cells_and_by_functions() -> None:
    assert TABLE.where(protocol="psm", events=100).column("delay_s") == [0.5, 1.5]
    assert TABLE.where(events=lambda cell: cell == 50).rows == [("psm", 50, 0, None)]
    assert TABLE.median("delay_s", protocol="psm", events=100) == 1.0
    assert TABLE.words("protocol") == ["psm", "ours"]
    assert TABLE.numbers("events") == [50, 100]
    assert TABLE.by("events", "delay_s", protocol="psm") == [[], [0.5, 1.5]]


def test_a_column_that_is_not_there_is_named() -> None:
    with pytest.raises(KeyError, match=r"delay has no column speed, only protocol, events"):
        TABLE.column("speed")


def test_the_file_has_six_digits_and_empty_cells(tmp_path: Path) -> None:
    Table("one", {"a": "", "b": "", "c": ""}, [(1 / 3, None, "x,y"), (1_234_567.0, True, "")]).write(
        tmp_path / "one.csv"
    )
    assert (tmp_path / "one.csv").read_text() == 'a,b,c\n0.333333,,"x,y"\n1.23457e+06,True,\n'


def test_flaws_are_found() -> None:
    assert TABLE.flaws() == []
    assert Table("bare", {"a": ""}, []).flaws() == ["table bare has no rows"]
    assert Table("odd", {"a": ""}, [(1, 2)]).flaws() == ["table odd: rows of 2 cells under 1 columns"]


def test_a_file_is_read_as_it_was_written(tmp_path: Path) -> None:
    table = Table("mixed", {"a": "first", "b": "second"}, [(1, 0.25), ("x, y", None), (True, -3.5), (False, "")])
    table.write(tmp_path / "mixed.csv")
    assert Table.read(tmp_path / "mixed.csv", table.columns).rows == [
        (1, 0.25),
        ("x, y", None),
        (True, -3.5),
        (False, None),
    ]
    with pytest.raises(ValueError, match=r"has the columns a, b, not a"):
        Table.read(tmp_path / "mixed.csv", {"a": "first"})
