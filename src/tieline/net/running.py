"""Which brokers of this user are running: each leaves a note where the verbs of the command line look for it.

A broker with a data directory has its management socket in there, where nobody would find it without being told.  So
every broker that has such a socket writes one small file into a directory of its user alone, and removes it when it
stops.  Where nobody answers at the socket, the broker was killed, and whoever finds that out removes its note.
"""

from __future__ import annotations

import hashlib
import os
import socket
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from tieline.conf.paths import distrust, private_directory

#: How long a broker may take to accept a connection from somebody who only looks who is there.
_LOOK_S: Final = 2.0


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """What a running broker tells of itself."""

    name: str
    #: The management socket.
    socket: str
    #: Its data directory, if it has one.
    data: str | None = None

    @property
    def words(self) -> str:
        """How to ask this one, on the command line."""
        return f"--name {self.name}" if self.data is None else f"--data {self.data}"


def leave_note(note: Note) -> Path:
    """Tell who is running; OSError if that cannot be told safely."""
    directory = private_directory()
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    if problem := distrust(directory):
        raise PermissionError(problem)
    place = directory / f"{hashlib.sha256(os.fsencode(note.socket)).hexdigest()[:16]}.running"
    # written beside and renamed, so that nobody reads half of it
    draft = place.with_suffix(f".{os.getpid()}")
    draft.write_bytes(msgspec.json.encode(note))
    draft.replace(place)
    return place


def running() -> list[Note]:
    """The brokers of this user that answer now, by name."""
    directory = private_directory()
    if not directory.is_dir() or distrust(directory):
        return []
    found: list[Note] = []
    for place in directory.glob("*.running"):
        try:
            note = msgspec.json.decode(place.read_bytes(), type=Note)
        except (OSError, msgspec.MsgspecError):
            continue
        if _answers(note.socket):
            found.append(note)
        else:
            with suppress(OSError):
                place.unlink()
    return sorted(found, key=lambda note: (note.name, note.socket))


def _answers(path: str) -> bool:
    with socket.socket(socket.AF_UNIX) as looking:
        looking.settimeout(_LOOK_S)
        try:
            looking.connect(path)
        except TimeoutError:
            return True
        except OSError:
            return False
    return True
