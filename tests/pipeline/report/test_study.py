"""``tieline pipeline quality`` on a real lake: verdicts, report, JSON, exit codes, and what it refuses."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tests.pipeline.report import lakes
from tests.pipeline.report.invented import invent
from tieline.cli.pipeline import flags, quality
from tieline.cli.trouble import Trouble
from tieline.pipeline.report.exports import find_browser

pytestmark = pytest.mark.timeout(300)

#: Monday, 9 November 2026, 00:00 UTC.
MONDAY = 1_794_182_400
WEEK_S = 604_800
BAD = "<b>bad</b>"
WHOLE_WEEK = ("--from", "2026-11-09", "--to", "2026-11-16")


@pytest.fixture(name="lake", scope="module")
def _lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A week of two nodes, one good, one with a low voltage for a day, and a reading before and behind it.

    Readings end what they measured: that of Monday, 00:00, is about the week before.
    """
    path = tmp_path_factory.mktemp("quality") / "lake"
    lake = lakes.empty(path)
    times = [float(MONDAY + second) for second in range(0, WEEK_S + 121, 120)]
    count = len(times)
    rows = {
        "time": times * 2,
        "node": ["good"] * count + [BAD] * count,
        "voltage": [230.0] * count + [200.0 if number <= 720 else 231.0 for number in range(count)],
        "frequency": [50.0] * (2 * count),
    }
    lakes.land(lake, "reading", pa.table(rows))
    happened = {
        # a dip; an interruption of the week before, which is over in the second window; and what a meter calls a dip
        "time": [MONDAY + 100_000.0, MONDAY - 3_600.0, float(MONDAY)],
        "node": ["good", "good", BAD],
        "kind": ["dip", "interruption", "dip"],
        "residual": [150.0, 0.0, 200.0],
        "duration": [0.3, 3_600.0 + 650.0, 86_400.0],
    }
    lakes.land(lake, "incident", pa.table(happened))
    return path


@pytest.fixture(name="command")
def _command(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command works in the session of the tests, which outlives it."""

    @contextmanager
    def shared(*_: object, **__: object) -> Iterator[SparkSession]:
        yield spark

    monkeypatch.setattr(flags, "session", shared)


def _run(*arguments: object) -> int:
    result = quality.app(args=[str(each) for each in arguments], standalone_mode=False)
    return int(result or 0)


@pytest.mark.usefixtures("command")
def test_a_week_as_json_and_as_report(lake: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "report.html"
    assert _run("--lake", lake, "--out", out, "--network", "Ring 7", "--json", "--strict", *WHOLE_WEEK) == 1
    found = json.loads(capsys.readouterr().out)
    # One reading in two minutes is plenty for 10-minute means and too little for 10-second ones.
    assert {each["node"]: each["verdict"] for each in found["nodes"]} == {BAD: "fail", "good": "too little data"}
    assert {week["week"] for each in found["nodes"] for week in each["weeks"]} == {"2026-W46"}
    good, bad = (each["weeks"][0]["clauses"] for each in reversed(found["nodes"]))
    assert good["voltage-95"] == {
        "windows": 1008,
        "measured": 1008,
        "thin": 0,
        "flagged": 3,
        "judged": 1005,
        "outside": 0,
        "share": 1.0,
        "coverage": 1005 / 1008,
        "verdict": "pass",
    }
    assert (bad["voltage-95"]["outside"], bad["voltage-95"]["verdict"]) == (144, "fail")
    assert bad["voltage-100"]["verdict"] == "pass"
    assert good["frequency-95"]["coverage"] == pytest.approx(1 / 12, rel=1e-3)
    assert found["offsets"] == [{"shard": "north", "first": 1, "last": 10_082, "readings": 10_080}]
    page = out.read_text()
    assert "Ring 7" in page and "&lt;b&gt;bad" in page and BAD not in page
    assert list(tmp_path.iterdir()) == [out]


@pytest.fixture(name="known")
def _known(monkeypatch: pytest.MonkeyPatch) -> None:
    """What would be found is known already: for tests of what follows."""
    monkeypatch.setattr("tieline.pipeline.report.study.study", lambda *_: invent())


@pytest.mark.usefixtures("command", "known")
def test_verdicts_on_a_terminal(lake: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "report.html"
    assert _run("--lake", lake, "--out", out) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:5] for line in lines[1:4]] == [
        ["C12", "pass", "3", "of", "3"],
        ["I2", "pass", "2", "of", "3"],
        ["R1", "fail", "3", "of", "3"],
    ]
    assert "Of 6 nodes, 5 met every clause" in lines[-2]
    assert lines[-1] == f"report: {out}"


@pytest.mark.usefixtures("command", "known")
def test_a_report_that_cannot_be_written(lake: Path) -> None:
    with pytest.raises(Trouble, match="cannot be written"):
        _run("--lake", lake, "--out", "/nowhere/at/all.html")


@pytest.mark.usefixtures("command", "known")
def test_no_browser_no_pdf(lake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Trouble, match="Chromium or Chrome"):
        _run("--lake", lake, "--out", tmp_path / "a.html", "--pdf")
    assert (tmp_path / "a.html").exists()


@pytest.mark.usefixtures("command")
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--voltage-column", "volts"), 'no column "volts"; there is time, node, voltage, frequency'),
        (("--voltage-column", "node"), "holds string"),
        (("--event", "weather"), 'no event type "weather"'),
        (("--from", "2031-01-01"), 'no events of type "reading" in that time'),
        (("--time-zone", "Mars/Base"), "Mars/Base"),
    ],
)
def test_refusals_are_sentences(lake: Path, tmp_path: Path, arguments: tuple[str, ...], said: str) -> None:
    with pytest.raises(Trouble, match=said):
        _run("--lake", lake, "--out", tmp_path / "a.html", *arguments)


@pytest.mark.usefixtures("command")
def test_an_empty_lake_and_no_lake(tmp_path: Path) -> None:
    lakes.empty(tmp_path / "lake")
    with pytest.raises(Trouble, match='holds no events of type "reading"'):
        _run("--lake", tmp_path / "lake")
    with pytest.raises(Trouble):
        _run("--lake", tmp_path / "missing")


@pytest.mark.slow
@pytest.mark.usefixtures("command", "known")
def test_pdf(lake: Path, tmp_path: Path, need: Callable[[str], str]) -> None:
    if find_browser() is None:
        need("chromium")
    assert _run("--lake", lake, "--out", tmp_path / "report.html", "--pdf") == 0
    assert (tmp_path / "report.pdf").read_bytes().startswith(b"%PDF-")
