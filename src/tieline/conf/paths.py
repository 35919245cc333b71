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
    return private_directory() / f"{name}.sock"


def private_directory() -> Path:
    """Where sockets of brokers without a data directory lie, and what tells of all brokers of this user."""
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    return Path(runtime) / "tieline" if runtime else _shared_directory()


def prepare_directory(socket: Path) -> None:
    """Make the directory that will hold the socket, readable by this user alone; OSError if it cannot be trusted.

    Whoever can open the socket may do everything, and whoever owns its directory could put another one there.
    """
    if problem := _too_long(socket):
        raise OSError(problem)
    socket.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if problem := distrust(socket.parent):
        raise PermissionError(problem)


def too_long(data: str | None, name: str) -> str | None:
    """Why the system would refuse the path of a broker's management socket; None if it would not."""
    return _too_long(management_socket(data, name))


def _too_long(socket: Path) -> str | None:
    if len(os.fsencode(socket)) > _LONGEST:
        return f"the path of the management socket is longer than {_LONGEST} bytes: {socket}"
    return None


def distrust(directory: Path) -> str | None:
    """Why a socket or data in a directory is not to be believed; None if it is.

    The system's temporary directory belongs to everybody, so a directory there has to be a real one, ours, and closed
    to all others.  One that somebody has named has to be ours or the system's, and closed to the world; a group may
    be let in, if it may not write.
    """
    is_shared = directory == _shared_directory()
    try:
        found = directory.lstat() if is_shared else directory.stat()
    except OSError as problem:
        return f"{directory} cannot be looked at: {(problem.strerror or str(problem)).lower()}"
    mode, is_ours = stat.S_IMODE(found.st_mode), found.st_uid == os.getuid()
    if is_shared:
        if stat.S_ISDIR(found.st_mode) and is_ours and not mode & 0o077:
            return None
        return f"{directory} is not a private directory of this user; remove it, or use --data"
    # root looks after the brokers of others
    if not is_ours and found.st_uid and os.getuid():
        return f"{directory} belongs to another user, who could read and replace everything in it: chown it"
    if mode & 0o027:
        return f"{directory} is open to others than its owner (mode {mode:03o}): chmod 700 {directory}"
    return None


def _shared_directory() -> Path:
    return Path(tempfile.gettempdir()) / f"tieline-{os.getuid()}"
