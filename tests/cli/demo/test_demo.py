"""`tieline demo`: from the first message to the report, with nothing left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tieline.cli import demo
from tieline.cli.demo.children import Children
from tieline.cli.demo.planner import Planner
from tieline.cli.demo.play import Wishes
from tieline.cli.trouble import Trouble
from tieline.pipeline.java import NoJava

_ANSWER_S = 180.0


def _start(*words: str, folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tieline", "demo", "--headless", *words],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder,
    )  # fmt: skip


def _our_processes(mark: str) -> list[str]:
    """Processes whose command line names a directory of ours."""
    found = []
    for each in Path("/proc").glob("[0-9]*"):
        try:
            command = (each / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if mark in command and int(each.name) != os.getpid():
            found.append(command)
    return found


@pytest.mark.timeout(200)
def test_without_spark_it_shows_the_broker_alone(tmp_path: Path) -> None:
    process = _start("--without-spark", "--seconds", "20", "--keep", "kept", folder=tmp_path)
    shown, errors = process.communicate(timeout=_ANSWER_S)
    assert (process.returncode, errors) == (0, ""), shown
    assert "7 of 7 claims hold" in shown and "Left out: the tables, the report" in shown and "✗" not in shown
    assert (tmp_path / "kept" / "data").is_dir()
    assert [file.name for file in (tmp_path / "tieline-demo").iterdir()] == ["plan.html"]
    account = (tmp_path / "tieline-demo" / "plan.html").read_text("utf-8")
    assert "What the plan changed" in account and "Feeder to feeder" in account and account.count("<tr>") > 10
    assert _our_processes(str(tmp_path)) == []


@pytest.mark.timeout(200)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_stops_everything(tmp_path: Path, number: signal.Signals) -> None:
    process = _start("--without-spark", "--seconds", "300", "--keep", "kept", folder=tmp_path)
    assert process.stdout is not None
    for line in process.stdout:
        if " live" in line:
            break
    assert _our_processes(str(tmp_path))
    process.send_signal(number)
    _shown, errors = process.communicate(timeout=_ANSWER_S)
    assert (process.returncode, errors) == (130, "tieline: interrupted: everything was stopped.\n")
    assert _our_processes(str(tmp_path)) == []


def test_a_directory_that_is_in_use_is_refused(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "something").touch()
    process = _start("--keep", "kept", folder=tmp_path)
    _shown, errors = process.communicate(timeout=_ANSWER_S)
    assert (process.returncode, errors) == (1, "tieline: kept is not empty: --keep takes a new directory.\n")


def test_what_keeps_spark_from_running_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_java() -> None:
        raise NoJava("there is no Java")

    monkeypatch.setattr("tieline.pipeline.java.find_java", no_java)
    assert demo._missing() == "there is no Java"
    monkeypatch.setattr(demo, "is_installed", lambda name: False)
    assert demo._missing() == "pyspark is not installed: pip install 'tieline[pipeline]'"


@pytest.mark.parametrize(
    ("words", "missing", "is_good", "code"),
    [
        ([], (), True, 0),
        ([], (), False, 1),
        ([], ("spark",), True, 1),
        ([], ("planner",), True, 1),
        ([], ("page",), True, 1),
        (["--without-spark"], ("spark",), True, 0),
        (["--without-planner"], ("planner",), True, 0),
        (["--without-spark", "--without-planner"], ("spark",), True, 0),
        (["--without-planner"], ("spark", "planner"), True, 1),
    ],
)
def test_the_exit_code_says_whether_everything_was_shown_and_right(
    monkeypatch: pytest.MonkeyPatch, words: list[str], missing: tuple[str, ...], is_good: bool, code: int
) -> None:
    told: list[tuple[Wishes, demo.LeftOut]] = []

    def perform(_console: object, wishes: Wishes, left_out: demo.LeftOut, **_more: object) -> bool:
        told.append((wishes, left_out))
        return is_good

    monkeypatch.setattr(demo, "_missing", lambda: "no Java" if "spark" in missing else None)
    monkeypatch.setattr(Planner, "missing", lambda: "no scipy" if "planner" in missing else None)
    monkeypatch.setattr(demo, "_no_page", lambda: "no uvicorn" if "page" in missing else "")
    monkeypatch.setattr(demo, "_perform", perform)
    assert CliRunner().invoke(demo.app, words).exit_code == code
    ((wishes, left_out),) = told
    unwanted = {word.removeprefix("--without-") for word in words}
    shown = (wishes.with_spark, wishes.with_planner, wishes.with_page)
    assert shown == tuple(name not in {*missing, *unwanted} for name in ("spark", "planner", "page"))
    assert [why for _what, why in left_out.told()] == [
        demo.AS_ASKED if name in unwanted else why
        for name, why in (("spark", "no Java"), ("planner", "no scipy"), ("page", "no uvicorn"))
        if name in {*missing, *unwanted}
    ]


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_everything(tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    process = _start("--seconds", "20", "--keep", "kept", folder=tmp_path)
    shown, errors = process.communicate(timeout=580)
    assert (process.returncode, errors) == (0, ""), shown
    assert "9 of 9 claims hold" in shown and "✗" not in shown
    report = tmp_path / "tieline-demo" / "power-quality.html"
    assert "EN 50160" in report.read_text("utf-8")
    assert _our_processes(str(tmp_path)) == []


def test_a_child_that_fails_is_quoted(tmp_path: Path) -> None:
    with Children(tmp_path) as children:
        child = children.start("broker", "serve", "--config", "nowhere.toml")
        with pytest.raises(Trouble, match=r"the broker did not start: .*nowhere\.toml"):
            child.ready()
        child.process.wait(_ANSWER_S)
        with pytest.raises(Trouble, match=r"the broker ended with exit code 2: .*nowhere\.toml"):
            children.check()


def test_children_end_with_the_block_even_after_an_error(tmp_path: Path) -> None:
    def fail() -> None:
        with Children(tmp_path) as children:
            words = ("serve", "--data", str(tmp_path / "data"), "--listen", "tcp://127.0.0.1:0")
            assert children.start("broker", *words).ready().port("tcp") > 0
            assert _our_processes(str(tmp_path))
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert _our_processes(str(tmp_path)) == []
