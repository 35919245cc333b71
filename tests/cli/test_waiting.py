"""What takes long says so, on a terminal alone."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest
from rich.console import Console

from tests.kits.patience import until
from tieline.cli import store
from tieline.cli.waiting import Step, waiting
from tieline.net.store.care import Findings


def test_a_terminal_is_told_what_is_done_how_far_it_is_and_for_how_long() -> None:
    text = io.StringIO()
    before = sys.stdout
    with waiting("starting", screen=Console(file=text, force_terminal=True, width=100), after_s=0) as step:
        until(lambda: "starting, " in text.getvalue(), "the line")
        step.go_on("matching", lambda: "3 of 4 tasks")
        until(lambda: "matching, 3 of 4 tasks, " in text.getvalue(), "the next step")
        # an answer that is printed now goes where answers go
        assert sys.stdout is before
    # the line is gone
    assert text.getvalue().rstrip("\x1b[?25h").endswith("\x1b[2K")


def test_nobody_is_told_where_there_is_no_terminal_or_when_it_is_soon_over() -> None:
    text = io.StringIO()
    with waiting("starting", screen=Console(file=text), after_s=0) as step:
        step.go_on("matching")
    with waiting("starting", screen=Console(file=text, force_terminal=True), after_s=600):
        pass
    assert text.getvalue() == ""


def test_the_line_goes_when_the_work_fails() -> None:
    text = io.StringIO()
    with (
        pytest.raises(OSError, match="disk"),
        waiting("starting", screen=Console(file=text, force_terminal=True), after_s=0),
    ):
        until(lambda: "starting" in text.getvalue(), "the line")
        raise OSError("the disk is full")
    assert "\x1b[?25h" in text.getvalue()


def test_who_does_not_know_how_far_it_is_disturbs_nothing() -> None:
    step = Step("matching")
    step.go_on("matching", lambda: str(1 // 0))
    assert step.told(3.0) == "matching, 3.0 s"
    step.go_on("matching", str)
    assert step.told(90.0) == "matching, 1.5 min"


def test_a_store_that_takes_long_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = io.StringIO()
    screen = Console(file=text, force_terminal=True, width=200)
    monkeypatch.setattr(store, "waiting", lambda what: waiting(what, screen=screen, after_s=0))

    def check(data: Path) -> Findings:
        until(lambda: f"reading {data}, " in text.getvalue(), "the line")
        return Findings({"log": 3})

    monkeypatch.setattr("tieline.net.store.care.check", check)
    store.check(tmp_path)
    assert capsys.readouterr().out.splitlines()[-1] == "whole"
