"""A demonstration that is killed leaves nobody behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.kits.patience import PATIENCE_S, until
from tieline.cli.demo.children import Children

_SCRIPT = """
import sys, time
from pathlib import Path
from tieline.cli.demo.children import Children
with Children(Path(sys.argv[1])) as children:
    broker = children.start("broker", "serve", "--listen", "tcp://127.0.0.1:0", "--data", sys.argv[1] + "/data")
    broker.ready()
    print(broker.process.pid, flush=True)
    time.sleep(60)
"""


def lives(pid: int) -> bool:
    try:
        # one that has ended and waits to be collected by its new parent counts as gone
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_whom_a_killed_demonstration_started_ends_too(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", _SCRIPT, str(tmp_path)], stdout=subprocess.PIPE, text=True) as play:
        assert play.stdout is not None
        broker = int(play.stdout.readline())
        assert lives(broker)
        play.kill()
    until(lambda: not lives(broker), "the broker has ended, too")


def test_the_heir_ends_with_the_block_and_kills_nobody_who_was_stopped(tmp_path: Path) -> None:
    with Children(tmp_path) as children:
        child = children.start("broker", "serve", "--listen", "tcp://127.0.0.1:0", "--data", str(tmp_path / "data"))
        child.ready()
        cleanup = children._cleanup._process
    assert cleanup.returncode == 0
    assert child.process.returncode == 0


def test_a_forgotten_group_is_left_alone() -> None:
    from tieline.cli.demo.cleanup import clean_up

    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, start_new_session=True) as other:
        clean_up([f"{other.pid}\n", f"-{other.pid}\n"])
        os.kill(other.pid, 0)
        assert other.poll() is None
        clean_up([f"{other.pid}\n"])
        assert other.wait(PATIENCE_S) == -signal.SIGKILL
