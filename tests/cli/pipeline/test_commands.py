"""The commands as people call them; those that need no Spark run here, in this process."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec
import pytest
from pyspark.errors import PySparkException

from tests.pipeline.lake import kit
from tests.pipeline.source.served import Served
from tieline.cli.pipeline import flags, heat, ingest, match, quality, sources
from tieline.cli.pipeline.deliveries import latency_app
from tieline.cli.pipeline.lake import compact_app, status_app
from tieline.cli.pipeline.running import sentences, stopping
from tieline.cli.trouble import INTERRUPTED, Trouble
from tieline.pipeline.lake import Lake, LakeError
from tieline.pipeline.session import BRIEF


@pytest.fixture(name="lake")
def _lake(tmp_path: Path) -> Any:
    lake = Lake.create(tmp_path / "lake", kit.settings())
    for number in range(2):
        kit.land(lake, {kit.READING: kit.rows_of(lake, kit.READING, [number])})
    return lake


@pytest.fixture(name="serve")
def _serve(tmp_path: Path) -> Iterator[Callable[..., Served]]:
    with ExitStack() as stack:
        yield lambda name="edge", **how: stack.enter_context(Served(tmp_path / name, name, **how))


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
    assert found["behind"] == {} and 0 <= found["landed_ago_s"] < 3_600


def test_status_says_how_far_behind_the_tables_are(
    lake: Lake, serve: Callable[..., Served], capsys: pytest.CaptureFixture[str]
) -> None:
    call(status_app, "--lake", lake.plain.layout.root, "--url", serve(records=40).url, "--json")
    found = json.loads(capsys.readouterr().out)
    assert found["latest"] == {"edge": 40}
    assert found["behind"] == {"edge": 40 - found["positions"].get("edge", 0)}


@pytest.mark.parametrize(
    ("app", "arguments", "said"),
    [
        (status_app, ["--lake", "/nowhere"], "is no lake"),
        (compact_app, ["--lake", "/nowhere", "--keep", "soon"], "--keep takes a number of days"),
        (ingest.app, ["--lake", "/nowhere", "--every", "soon"], "--every takes a number with its unit"),
        (ingest.app, ["--lake", "/nowhere", "--history", "x", "--url", "http://x"], "--history takes files"),
        (ingest.app, ["--lake", "/nowhere", "--config", "/no.toml"], "cannot be read"),
        (ingest.app, ["--lake", "/nowhere", "--conf", "a=b"], "--conf takes a setting of Spark"),
        (ingest.app, ["--lake", "/nowhere", "--metrics", "soon"], "--metrics takes HOST:PORT"),
        (ingest.app, ["--lake", "/nowhere", "--history", "/nix"], "/nix is no directory"),
        (ingest.app, ["--lake", "/nowhere", "--url", "http://127.0.0.1:1"], "connection refused"),
        (ingest.app, ["--lake", "/nowhere", "--url", "mqtt://x"], "is not the address of a log server"),
        (heat.app, ["--lake", "/nowhere"], "is no lake"),
        (heat.app, ["--events", "/nix"], "/nix is no directory"),
        (match.app, ["--url", "http://127.0.0.1:1", "-s", "#"], "connection refused"),
        (match.app, ["--history", "/nix", "-s", "#"], "/nix is no directory"),
        (latency_app, ["--url", "http://127.0.0.1:1"], "connection refused"),
        (quality.app, ["--lake", "/nowhere"], "is no lake"),
    ],
)
def test_mistakes_are_sentences(app: Any, arguments: Any, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of them before Spark starts, and before anything is made."""

    def start(*_: object, **__: object) -> None:
        raise AssertionError("Spark was started")

    monkeypatch.setattr(flags, "session", start)
    monkeypatch.setattr(sources, "_FIRST_S", 0.1)
    with pytest.raises(Trouble, match=said):
        call(app, *arguments)
    assert not Path("/nowhere").exists()


def test_files_that_cannot_be_reached_are_a_sentence() -> None:
    with pytest.raises(Trouble, match="/proc/x: no such file or directory"), sentences():
        Path("/proc/x").mkdir()


@pytest.mark.parametrize(
    ("few", "words", "is_brief"), [(10, (), True), (1, (), False), (10, ("--master", "local[1]"), False)]
)
def test_a_job_over_few_rows_starts_quickly(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, few: int, words: tuple[str, ...], is_brief: bool
) -> None:
    class Started(Exception):
        pass

    def start(*_: object, settings: dict[str, str], **__: object) -> None:
        raise Started(settings)

    monkeypatch.setattr(flags, "session", start)
    monkeypatch.setattr(flags, "_FEW_ROWS", few)
    root = lake.plain.layout.root
    state = lake.state()
    (root / "_state" / str(state.batch) / "state.json").write_bytes(
        msgspec.json.encode(msgspec.structs.replace(state, rows={"events/reading": 2}))
    )
    with pytest.raises(Started) as caught:
        call(match.app, "--lake", root, "-s", "#", *words)
    assert caught.value.args == ((dict(BRIEF) if is_brief else {}),)


def test_what_one_may_set_of_spark(lake: Lake, monkeypatch: pytest.MonkeyPatch, serve: Callable[..., Served]) -> None:
    class Started(Exception):
        pass

    def start(*_: object, settings: dict[str, str], **__: object) -> None:
        assert settings == {"spark.ui.enabled": "true", "spark.hadoop.a": "b=c"}
        raise Started

    monkeypatch.setattr(flags, "session", start)
    words = ("--conf", "spark.ui.enabled=true", "--conf", "spark.hadoop.a=b=c", "--url", serve(records=1).url)
    with pytest.raises(Started):
        call(ingest.app, "--lake", lake.plain.layout.root, *words)


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
    missing = PySparkException("Traceback (most recent call last):\nModuleNotFoundError: No module named 'pyarrow'\n")
    with pytest.raises(Trouble, match=r"tasks have no module 'pyarrow': .*tieline pipeline package"), sentences():
        raise missing
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
