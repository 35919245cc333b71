"""The instrument behind ``make attack``: what it counts as broken, and that it runs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.robust.attack.__main__ import MIXED, _schedule
from tests.robust.attack.catalogue import KINDS
from tests.robust.attack.honest import Rounds
from tests.robust.attack.report import RESIDENT_BYTES, Window

_ROOT = Path(__file__).parents[2]


def _window(times: list[float], *, lost: int = 0, resident_bytes: int = 0, trouble: str = "") -> Window:
    return Window(what="w", rounds=Rounds(times, lost, trouble), resident_bytes=resident_bytes)


def test_a_good_window_breaks_nothing() -> None:
    assert _window([0.001] * 992 + [0.2] * 8).breaches == []


@pytest.mark.parametrize(
    ("window", "words"),
    [
        (_window([0.001] * 980 + [0.06] * 20), "p99"),
        (_window([0.001] * 999 + [0.3]), "worst"),
        (_window([0.001], lost=2), "2 messages of honest clients were lost"),
        (_window([]), "no honest message"),
        (_window([0.001], resident_bytes=RESIDENT_BYTES + 1), "MB"),
        (_window([], trouble="closed"), "closed"),
    ],
)
def test_each_limit_is_named_when_it_is_broken(window: Window, words: str) -> None:
    (text,) = window.breaches
    assert words in text
    assert "BROKEN" in window.line()


def test_every_kind_runs_alone_with_each_number_of_connections_and_among_others() -> None:
    names = list(KINDS)
    schedule = _schedule(names, [1, 8], 600.0)
    assert sum(seconds for _, _, seconds in schedule) == pytest.approx(600.0)
    for name in names:
        assert [size for kinds, size, _ in schedule if kinds == [name]] == [1, 8]
        assert any(name in kinds and len(kinds) == MIXED for kinds, _, _ in schedule)
    assert _schedule(["pings"], [8], 10.0) == [(["pings"], 8, 10.0)]


def test_the_command_says_what_honest_clients_noticed_and_that_none_of_their_messages_was_lost() -> None:
    command = [sys.executable, "-m", "tests.robust.attack", "--kind", "pings", "--connections", "2", "--seconds", "2"]
    done = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode in {0, 1}, done.stderr
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("pings x2")]
    rounds, lost = int(line.split()[2]), int(line.split()[6])
    assert rounds > 0
    assert lost == 0
    assert "lost" not in done.stdout.partition("\n")[2]
