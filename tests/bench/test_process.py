"""Programs that benchmarks start: when they are ready, what they leave behind, and that nothing of them stays."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.kits.patience import PATIENCE_S
from tieline.bench.load.job import Failure
from tieline.bench.process import Process, until

#: Says that it is ready and waits for its end, with a child that does the same.
_PARENT = """\
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1_000)"])
print("child", child.pid, "ready: now", flush=True)
time.sleep(1_000)
"""


@pytest.fixture(name="made")
def _made(tmp_path: Path) -> Iterator[list[Process]]:
    made: list[Process] = []
    yield made
    for each in made:
        each.kill()


def python(made: list[Process], folder: Path, program: str) -> Process:
    made.append(Process("snake", [sys.executable, "-c", program], folder / "output.log"))
    return made[-1]


def is_there(pid: int) -> bool:
    """Whether a process is neither gone nor dead and waiting for its parent to notice."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    return False


def test_a_kill_takes_what_it_started_with_it(made: list[Process], tmp_path: Path) -> None:
    snake = python(made, tmp_path, _PARENT)
    snake.start()
    snake.wait_until_ready(" ready: ")
    child = int(snake.said().split()[1])
    was_running = snake.is_running
    assert is_there(child)
    snake.kill()
    assert (was_running, snake.is_running) == (True, False)
    until("the child has gone", PATIENCE_S, lambda: not is_there(child))
    assert snake.obituary() is None, "it did not die by itself"


def test_it_is_not_ready_because_it_was_before(made: list[Process], tmp_path: Path) -> None:
    once = tmp_path / "once"
    program = f"import pathlib; at = pathlib.Path({str(once)!r}); at.exists() or print('ready: now'); at.touch()"
    snake = python(made, tmp_path, program)
    snake.start()
    snake.wait_until_ready("ready: ")
    assert snake.wait(PATIENCE_S) == 0
    snake.start()
    with pytest.raises(Failure, match="the snake did not start"):
        snake.wait_until_ready("ready: ")


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("import sys; sys.exit('no licence')", "exit code 1) [no licence]"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGTERM)", "signal SIGTERM)"),
    ],
)
def test_what_it_leaves_behind(made: list[Process], tmp_path: Path, program: str, words: str) -> None:
    snake = python(made, tmp_path, program)
    assert snake.obituary() is None
    snake.start()
    snake.wait(PATIENCE_S)
    assert snake.obituary() == f"the snake died ({words}"
