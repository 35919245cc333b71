from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tieline.net.store.durable import Durable
from tieline.net.store.frames import Keep
from tieline.net.store.schema import path_of


def tieline(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "tieline", *words], capture_output=True, text=True, check=False)


def kept(data: Path) -> None:
    """A data directory with a store in it."""
    store = Durable(data, Keep())
    store.open()
    store.close()


def test_check_says_whether_a_store_is_whole(tmp_path: Path) -> None:
    kept(tmp_path)
    found = tieline("store", "check", str(tmp_path))
    assert found.returncode == 0
    assert found.stdout.splitlines()[-1] == "whole"
    path = path_of(tmp_path)
    os.truncate(path, path.stat().st_size - 8_192)
    broken = tieline("store", "check", str(tmp_path))
    assert broken.returncode == 1
    assert broken.stderr.startswith("tieline: ") and "tieline store" in broken.stderr


def test_backup_and_repair(tmp_path: Path) -> None:
    data, copy = tmp_path / "data", tmp_path / "copy.db"
    kept(data)
    assert tieline("store", "backup", str(data), str(copy)).stdout.startswith(f"{copy}: ")
    again = tieline("store", "backup", str(data), str(copy))
    assert (again.returncode, again.stderr) == (1, f"tieline: {copy} exists already: a backup replaces nothing\n")
    path_of(data).write_bytes(b"nonsense" * 1_000)
    fixed = tieline("store", "repair", str(data))
    assert fixed.returncode == 0
    assert "! " in fixed.stdout and "the old file is" in fixed.stdout
    assert tieline("store", "check", str(data)).returncode == 0


def test_where_there_is_nothing(tmp_path: Path) -> None:
    for words in (["check"], ["repair"], ["backup", str(tmp_path / "x")]):
        ended = tieline("store", words[0], str(tmp_path), *words[1:])
        assert ended.returncode == 1
        assert "does not exist" in ended.stderr and ended.stderr.count("\n") == 1
