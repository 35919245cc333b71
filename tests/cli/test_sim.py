"""`tieline sim microgrid`, as users type it."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.cli.conftest import Served, Tieline
from tieline.conf.load import load


def test_it_writes_a_history(tieline: Tieline, tmp_path: Path) -> None:
    done = tieline("sim", "microgrid", "--history", str(tmp_path), "--days", "0.01", "--start", "2026-03-02T00:00:00")
    assert (done.returncode, done.stderr) == (0, "")
    rows = pq.read_table(tmp_path)
    assert f"written: {rows.num_rows:,} rows in 1 files" in done.stdout
    assert rows.num_rows > 864 * 15


def test_it_writes_a_configuration(tieline: Tieline, tmp_path: Path) -> None:
    done = tieline("sim", "microgrid", "--config", str(tmp_path / "grid.toml"))
    assert done.returncode == 0 and "tieline serve --config" in done.stdout
    assert set(load(tmp_path / "grid.toml").event) == {"reading", "incident", "fault", "protection", "command"}


def test_it_publishes(tieline: Tieline, served: Served) -> None:
    words = ("--to", f"mqtt://127.0.0.1:{served.port}", "--seconds", "30", "--speed", "300", "--island", "5")
    done = tieline("sim", "microgrid", *words, "--start", "2026-03-02T00:00:00")
    assert done.returncode == 0, done.stderr
    lines = {line.split()[0]: line.split() for line in done.stdout.splitlines()}
    assert lines["reading"][1] == "450"
    for kind in ("protection", "command", "incident"):
        assert lines[kind][1] == lines[kind][3] != "0"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ((), "say what to do with the world: --to URL, --history DIR or --config FILE."),
        (("--to", "mqtt://x", "--history", "y"), "say what to do with the world"),
        (("--to", "http://x"), '"http://x" is refused: write it as mqtt://host:1883'),
        (("--history", "x", "--network", "moon"), 'there is no network "moon"'),
        (("--history", "/dev/null/x", "--days", "0.001"), "/dev/null/x cannot be written"),
    ],
)
def test_what_makes_no_sense_is_a_sentence(tieline: Tieline, words: tuple[str, ...], sentence: str) -> None:
    done = tieline("sim", "microgrid", *words)
    assert done.returncode in (1, 2)
    assert sentence in done.stderr and len(done.stderr.splitlines()) == 1
