"""Where a broker's management socket lies: the broker and ``tieline top`` must agree without talking."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

#: What sockaddr_un can hold on Linux, without the closing zero byte.
_LONGEST = 107


def management_socket(data: str | None, name: str) -> Path:
    """In the data directory if there is one, otherwise in a directory of this user alone."""
    if data is not None:
        return Path(data) / "tieline.sock"
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime:
        return Path(runtime) / "tieline" / f"{name}.sock"
    return _shared_directory() / f"{name}.sock"


def prepare_directory(socket: Path) -> None:
    """Make the directory that will hold the socket, readable by this user alone.

    The system's temporary directory belongs to everybody, so a directory that is already there is used only if it is
    a real one, ours, and closed to others; a data directory keeps the permissions that its owner gave it.
    """
    if len(os.fsencode(socket)) > _LONGEST:
        raise OSError(f"the path of the management socket is longer than {_LONGEST} bytes: {socket}")
    directory = socket.parent
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    if directory != _shared_directory():
        return
    found = directory.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise PermissionError(f"{directory} is not a private directory of this user; remove it, or use --data")


def _shared_directory() -> Path:
    return Path(tempfile.gettempdir()) / f"tieline-{os.getuid()}"
