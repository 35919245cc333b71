"""Processes that tests have started, and their end."""

from __future__ import annotations

import subprocess

from tests.kits.patience import PATIENCE_S


def stop(process: subprocess.Popen[str]) -> None:
    """Ask a process to end, and kill it if it does not; what it has printed and nobody read is gone."""
    process.terminate()
    try:
        process.wait(PATIENCE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    assert process.stdout is not None
    process.stdout.close()
