"""A loss of power, played: what no program has synchronised is gone, torn or there, as it happens.

Theory of operation
-------------------
Killing a process loses nothing that it has written: the kernel keeps it.  So the programs under test run with a module
that Python imports at every start, which writes into a journal what they synchronise: the content of a file as it was
at that moment, and the names that a directory had.  When everything has been killed, the journal says which files of
the lake nobody had synchronised.  Each of these is removed, emptied, cut in half or left, at random; one whose content
was synchronised and whose name was not is removed or left.  Renames stay: file systems with a journal carry them out in
order, and a file that has lost both of its names would be no power cut but a broken disk.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from typing import Any, Final  # Any: the functions of os take many kinds of paths

#: Names the journal, in the environment of the programs.
JOURNAL: Final = "TIELINE_BENCH_SYNCED"
_MODULE: Final = "from tieline.bench.pipeline.power import keep_journal\n\nkeep_journal()\n"
_FATES: Final = ("removed", "empty", "half", "left")


def environment(folder: Path) -> Mapping[str, str]:
    """What programs need to have in their environment, beside the path to our modules, to keep the journal."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "sitecustomize.py").write_text(_MODULE)
    return {"PYTHONPATH": str(folder), JOURNAL: str(folder / "journal")}


def keep_journal() -> None:
    """From now on, this process and those that it forks write down what they synchronise and rename."""
    path = os.environ.get(JOURNAL)
    if path is None:
        return
    journal = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def note(*words: object) -> None:
        os.write(journal, (json.dumps(words) + "\n").encode())

    fsync = os.fsync

    def synced(file: Any) -> None:  # Any: a number, or what has one
        handle = file if isinstance(file, int) else file.fileno()
        is_directory = stat.S_ISDIR(os.fstat(handle).st_mode)
        # before, because what comes between may not be on the disk
        names = sorted(os.listdir(handle)) if is_directory else None  # noqa: PTH208 - by its number
        found = os.fstat(handle)
        fsync(handle)
        note("names", found.st_ino, names) if is_directory else note("content", found.st_ino, found.st_mtime_ns)

    def renamed(real: Callable[..., None]) -> Callable[..., None]:
        def carried_out(source: Any, target: Any, **more: Any) -> None:
            real(source, target, **more)
            note("renamed", Path(target).stat().st_ino)

        return carried_out

    os.fsync = synced  # type: ignore[assignment]  # the library's own protocol is not to be had
    os.rename, os.replace, os.link = renamed(os.rename), renamed(os.replace), renamed(os.link)


def lose(root: Path, folder: Path, random: Random) -> int:
    """Let the power fail for everything below a directory, after its programs have ended; how many files it hit."""
    contents: set[tuple[int, int]] = set()
    names: dict[int, set[str]] = {}
    moved: set[int] = set()
    for kind, inode, *rest in _lines(folder / "journal"):
        if kind == "content":
            contents.add((inode, rest[0]))
        elif kind == "names":
            names[inode] = set(rest[0])
        else:
            moved.add(inode)
    hit = 0
    for above, _folders, files in os.walk(root):
        known = names.get(Path(above).stat().st_ino, set())
        for name in sorted(files):
            path = Path(above, name)
            found = path.stat()
            is_whole = (found.st_ino, found.st_mtime_ns) in contents or not found.st_size
            if is_whole and (name in known or found.st_ino in moved):
                continue
            fate = random.choice(("removed", "left") if is_whole else _FATES)
            _strike(path, fate, found.st_size)
            hit += fate != "left"
    return hit


def _strike(path: Path, fate: str, size: int) -> None:
    if fate == "removed":
        path.unlink()
    elif fate != "left":
        os.truncate(path, 0 if fate == "empty" else size // 2)


def _lines(journal: Path) -> list[list[Any]]:
    if not journal.exists():
        return []
    return [json.loads(line) for line in journal.read_text().splitlines() if line.endswith("]")]
