"""The command line as users meet it: a process of its own, and a broker started by `tieline serve`."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

import pytest

from tests.kits.patience import PATIENCE_S

#: The first search of a planner after an installation compiles its loops: most of a minute where others work too.
FIRST_S = 3 * PATIENCE_S

Run = subprocess.CompletedProcess[str]


class Tieline(Protocol):
    """Runs the command line to its end."""

    def __call__(self, *words: str, stdin: str = "") -> Run: ...


@pytest.fixture(name="tieline", scope="session")
def _tieline() -> Tieline:
    def run(*words: str, stdin: str = "") -> Run:
        return subprocess.run(
            [sys.executable, "-m", "tieline", *words],
            input=stdin, capture_output=True, text=True, timeout=FIRST_S, check=False,
        )  # fmt: skip

    return run


@pytest.fixture(name="start", scope="session")
def _start() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts the command line and leaves it running until the tests end."""
    started: list[subprocess.Popen[str]] = []

    def start(*words: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", "tieline", *words],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        started.append(process)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            process.terminate()
        process.communicate(timeout=PATIENCE_S)


class Served:
    """A broker in a process of its own."""

    def __init__(self, process: subprocess.Popen[str], data: Path) -> None:
        self.process = process
        self.data = data
        assert process.stdout is not None
        self.ready = process.stdout.readline()
        self.port = re.findall(r"tcp://127\.0\.0\.1:(\d+)", self.ready)[0]
        self.ws_port = re.findall(r"ws://127\.0\.0\.1:(\d+)", self.ready)[0]


@pytest.fixture(name="served", scope="session")
def _served(start: Callable[..., subprocess.Popen[str]], tmp_path_factory: pytest.TempPathFactory) -> Served:
    data = tmp_path_factory.mktemp("data")
    listen = ("--listen", "tcp://127.0.0.1:0", "--listen", "ws://127.0.0.1:0")
    return Served(start("serve", "--name", "edge", "--data", str(data), *listen), data)
