"""What starting takes in CPU seconds, here and in another checkout: ``python -m docs.architecture.startup DIR``.

``tieline --help``, and ``tieline serve`` until it says that it is ready, and its end.  Runs of both take turns, so that
a busy machine is busy for both; CPU seconds are those of the process, with what the kernel did for it.
"""

from __future__ import annotations

import argparse
import os
import signal
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

from docs.architecture.imports import ROOT


def cpu_of_help(source: Path) -> float:
    """CPU seconds of ``tieline --help``."""
    return _cpu_of(subprocess.Popen(_command("--help"), env=_with(source), stdout=subprocess.DEVNULL))  # noqa: S603 - ours


def cpu_of_serve(source: Path) -> float:
    """CPU seconds of ``tieline serve`` until it can be connected to, and of its end."""
    with tempfile.TemporaryDirectory() as directory:
        words = "serve", "--listen", "tcp://127.0.0.1:0", "--name", f"startup-{os.getpid()}", "--data", directory
        process = subprocess.Popen(  # noqa: S603 - ours
            _command(*words), env=_with(source), cwd=directory, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        assert process.stdout is not None
        assert b" ready: " in process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        process.stdout.close()
        return _cpu_of(process)


def _command(*words: str) -> list[str]:
    return [sys.executable, "-m", "tieline", *words]


def _with(source: Path) -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(source / "src")}


def _cpu_of(process: subprocess.Popen[bytes]) -> float:
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, process.args
    return used.ru_utime + used.ru_stime


def compared(one: Path, other: Path, runs: int) -> dict[str, tuple[list[float], list[float]]]:
    """By verb, what each run took at both; one of each goes before and is not counted, for it compiles bytecode."""
    measured: dict[str, Callable[[Path], float]] = {"--help": cpu_of_help, "serve": cpu_of_serve}
    found: dict[str, tuple[list[float], list[float]]] = defaultdict(lambda: ([], []))
    for run in range(runs + 1):
        for verb, measure in measured.items():
            for times, source in zip(found[verb], (one, other), strict=True):
                took = measure(source)
                if run:
                    times.append(took)
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, metavar="DIR", help="the other checkout, with a directory src")
    parser.add_argument("--runs", type=int, default=10)
    asked = parser.parse_args()
    for verb, (before, after) in compared(asked.folder.absolute(), ROOT, asked.runs).items():
        told = " ".join(
            f"{statistics.median(times):.3f} ({min(times):.3f}-{max(times):.3f})" for times in (before, after)
        )
        print(f"tieline {verb}: CPU seconds, median (least-most) there and here: {told}")
