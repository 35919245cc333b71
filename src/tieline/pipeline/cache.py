"""A directory that only this user can write, for small files that are made once and used by later runs.

Scripts from here are run, so nobody else may be able to put one there first: a directory counts only if it is ours and
closed to others.  The user's cache directory comes first.  Where that cannot be written (HOME on a read-only file
system, or somebody else's after ``sudo``) or takes no programs, a directory below the system's temporary one serves.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path


def directory() -> Path:
    """The first directory that is ours alone; raises OSError when nothing can be written anywhere."""
    return next(_directories())


def place(name: str, files: Mapping[str, str], *, runs: str) -> Path:
    """A directory with these files in it, made in one step, or found as it was made before.

    ``runs`` is the one of them that is a program.  Raises OSError when no directory takes it.
    """
    mark = hashlib.sha256(repr(sorted(files.items())).encode()).hexdigest()[:16]
    for parent in _directories():
        target = parent / f"{name}-{mark}"
        with suppress(OSError):
            if not _holds(target, files):
                _build(target, files, runs)
            # false on file systems from which nothing may be run
            if os.access(target / runs, os.X_OK):
                return target
    raise PermissionError("programs cannot be run from the cache directory, nor from the temporary one")


def _directories() -> Iterator[Path]:
    """Candidates that are ours alone, best first; raises OSError when there is none at all."""
    tried: list[str] = []
    for path in _candidates():
        with suppress(OSError):
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            if _is_ours(path) and os.access(path, os.W_OK | os.X_OK):
                yield path
                continue
        tried.append(str(path))
    try:
        # somebody sits on the name that would be ours
        yield Path(tempfile.mkdtemp(prefix="tieline-"))
    except OSError:
        raise PermissionError(f"none of {', '.join(tried)} can be written") from None


def _candidates() -> Iterator[Path]:
    stated = os.environ.get("XDG_CACHE_HOME", "")
    if Path(stated).is_absolute():
        yield Path(stated, "tieline")
    with suppress(RuntimeError):  # no home at all
        home = Path.home()
        # after `sudo`, HOME may be another user's, who could then not clean up what we leave there
        if home.exists() and home.stat().st_uid == os.getuid():
            yield home / ".cache" / "tieline"
    yield Path(tempfile.gettempdir(), f"tieline-{os.getuid()}")


def _is_ours(path: Path) -> bool:
    found = path.lstat()
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o022


def _holds(target: Path, files: Mapping[str, str]) -> bool:
    return target.is_dir() and all(
        (target / each).is_file() and (target / each).read_text() == text for each, text in files.items()
    )


def _build(target: Path, files: Mapping[str, str], runs: str) -> None:
    aside = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    try:
        for each, text in files.items():
            path = aside / each
            path.parent.mkdir(mode=0o700, exist_ok=True)
            path.write_text(text)
            path.chmod(0o700 if each == runs else 0o600)
        with suppress(OSError):  # another process was faster, which is checked below
            aside.rename(target)
        if not _holds(target, files):
            # somebody edited what we had made: put the whole one in its place
            shutil.rmtree(target, ignore_errors=True)
            aside.rename(target)
    finally:
        shutil.rmtree(aside, ignore_errors=True)
