"""The commands as people call them; those that need no Spark run here, in this process."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.pipeline.lake import kit
from tieline.cli.pipeline import ingest
from tieline.cli.pipeline.lake import compact_app, status_app
from tieline.cli.pipeline.running import sentences, stopping
from tieline.cli.trouble import INTERRUPTED, Trouble
from tieline.pipeline.lake import Lake, LakeError


@pytest.fixture(name="lake")
def _lake(tmp_path: Path) -> Any:
    lake = Lake.create(tmp_path / "lake", kit.settings())
    for number in range(2):
        kit.land(lake, {kit.READING: kit.rows_of(lake, kit.READING, [number])})
    return lake


def call(app: Any, *arguments: Any) -> Any:
    app(args=[str(each) for each in arguments], standalone_mode=False)


def test_status_and_compact(lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    root = lake.plain.layout.root
    call(status_app, "--lake", root)
    assert "events/reading" in capsys.readouterr().out
    call(compact_app, "--lake", root)
    assert capsys.readouterr().out == "events/reading: 2 files became 1, 2 rows\n"
    call(compact_app, "--lake", root)
    assert capsys.readouterr().out == "nothing to do\n"
    call(compact_app, "--lake", root, "--keep", "0d", "--json")
    assert json.loads(capsys.readouterr().out)["removed"] == 2
    call(status_app, "--lake", root, "--json")
    found = json.loads(capsys.readouterr().out)
    assert found["batch"] == 1 and found["tables"][0]["rows"] == 0


@pytest.mark.parametrize(
    ("app", "arguments", "said"),
    [
        (status_app, ["--lake", "/nowhere"], "is no lake"),
        (compact_app, ["--lake", "/nowhere", "--keep", "soon"], "--keep takes a number of days"),
        (ingest.app, ["--lake", "/nowhere", "--every", "soon"], "--every takes a number with its unit"),
        (ingest.app, ["--lake", "/nowhere", "--history", "x", "--url", "http://x"], "--history takes files"),
        (ingest.app, ["--lake", "/nowhere", "--config", "/no.toml"], "cannot be read"),
    ],
)
def test_mistakes_are_sentences(app: Any, arguments: Any, said: str) -> None:
    with pytest.raises(Trouble, match=said):
        call(app, *arguments)


def test_delta_is_for_new_lakes(lake: Lake) -> None:
    with pytest.raises(Trouble, match="plain Parquet"):
        call(ingest.app, "--lake", lake.plain.layout.root, "--delta")


def test_two_ingests_are_refused(lake: Lake) -> None:
    with lake.ingesting(), pytest.raises(Trouble, match="another process ingests"):
        call(ingest.app, "--lake", lake.plain.layout.root)


def test_errors_become_sentences() -> None:
    with pytest.raises(Trouble, match="no lake here"), sentences():
        raise LakeError("no lake here")
    with pytest.raises(Trouble, match=r"needs deltalake: pip install 'tieline\[delta\]'"), sentences():
        raise ModuleNotFoundError("x", name="deltalake")
    with pytest.raises(Trouble, match="interrupted") as caught, sentences():
        raise KeyboardInterrupt
    assert caught.value.code == INTERRUPTED
    with pytest.raises(ZeroDivisionError), sentences():
        _ = 1 / 0


def test_signals_only_set_the_event() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with stopping() as asked:
        signal.raise_signal(signal.SIGTERM)
        assert asked.is_set()
    assert signal.getsignal(signal.SIGTERM) is before
