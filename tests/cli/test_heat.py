"""`tieline heat` gives a running broker a table, shows it, and takes it back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Served, Tieline
from tieline.cli.heat import pieces
from tieline.cli.terminal import console, number
from tieline.cli.top import Snapshot, render


@pytest.fixture(name="where")
def _where(served: Served, tieline: Tieline) -> tuple[str, str]:
    where = ("--data", str(served.data))
    tieline("heat", "clear", *where)
    return where


def test_put_show_clear(tieline: Tieline, where: tuple[str, str], tmp_path: Path) -> None:
    own = "own: topics are as hot as the broker finds them\n"
    assert tieline("heat", "show", *where).stdout == own
    table = tmp_path / "heat.json"
    table.write_text('{\n  "plant/7/state": 12.5,\n  "plant/+/log": 0, "plant/#": 1234567\n}\n')
    put = tieline("heat", "put", str(table), "--period", "2m", *where)
    assert (put.returncode, put.stdout, put.stderr) == (0, "given: 3 entries for 2.0 min\n", "")
    shown = tieline("heat", "show", "--most", "2", *where).stdout.splitlines()
    assert shown[0].startswith("given: 3 entries, ") and shown[0].endswith(" left")
    assert [line.split() for line in shown[1:]] == [["1,234,567", "plant/#"], ["12.5", "plant/7/state"]]
    assert json.loads(tieline("heat", "show", "--json", *where).stdout)["entries"] == 3
    assert tieline("heat", "clear", *where).stdout == "own\n"
    assert tieline("heat", "show", *where).stdout == own


def test_a_large_table_from_standard_input_line_by_line(tieline: Tieline, where: tuple[str, str]) -> None:
    lines = "\n".join(json.dumps({f"plant/{one}/temperature": one}) for one in range(5_000))
    put = tieline("heat", "put", "-", *where, stdin=lines)
    assert (put.stdout, put.stderr) == ("given: 5,000 entries for 1.0 min\n", "")
    tieline("heat", "clear", *where)


@pytest.mark.parametrize(
    ("text", "period", "code", "said"),
    [
        ("nonsense", "60s", 2, "no JSON object"),
        ('["a"]', "60s", 2, "no JSON object"),
        ('{"a": NaN}', "60s", 2, "no JSON object"),
        ('{"a": 1}\n{"b": 1, "a": 2}', "60s", 2, 'has "a" twice'),
        ("{}", "60s", 1, "the table is empty"),
        ('{"a": -1}', "60s", 1, "from zero up"),
        ('{"a/#/b": 1}', "60s", 1, "is no topic filter"),
        ('{"a": 1}', "soon", 1, "the period is none"),
    ],
)
def test_a_table_that_cannot_be_meant(
    tieline: Tieline, where: tuple[str, str], text: str, period: str, code: int, said: str
) -> None:
    tieline("heat", "put", "-", *where, stdin='{"before": 1}')
    put = tieline("heat", "put", "-", "--period", period, *where, stdin=text)
    assert (put.returncode, put.stdout) == (code, "") and said in put.stderr
    assert json.loads(tieline("heat", "show", "--json", *where).stdout)["hottest"] == [["before", 1]]


def test_a_file_that_is_not_there(tieline: Tieline, tmp_path: Path) -> None:
    put = tieline("heat", "put", str(tmp_path / "none.json"))
    assert put.returncode == 1 and "no such file" in put.stderr


def test_pieces_fit_in_a_request_whatever_is_in_them() -> None:
    table = {"é" * count + str(count): count for count in range(2_000)}
    parts = [*pieces(table)]
    assert {filter_: heat for part in parts for filter_, heat in part.items()} == table
    assert all(len(json.dumps(part, ensure_ascii=False).encode()) < 60_000 for part in parts) and len(parts) > 1


def test_top_says_whose_heat_it_is() -> None:
    rows = {"name": "edge", "classes": [{"name": "normal", "received": 5}]}

    def drawn(**more: object) -> str:
        import msgspec

        with (screen := console()).capture() as captured:
            screen.print(render(msgspec.convert({**rows, **more}, Snapshot)))
        return captured.get()

    own = drawn(hottest=[["a/b", 3, "own"]])
    assert "subscribers" in own and "left" not in own
    given = drawn(hottest=[["a/b", 2.5, "given"], ["c", 1, "own"]], heat={"source": "given", "left_s": 41.0})
    assert "given, 41.0 s left" in given and "2.5" in given and "own" in given


def test_numbers() -> None:
    assert [number(one) for one in (0.0, 5.0, 1234567.0, 2.5, 0.123456)] == ["0", "5", "1,234,567", "2.5", "0.1235"]
