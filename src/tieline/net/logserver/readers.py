"""Named readers: where each has got to, and how one is moved on.

The broker keeps what the readers of its configuration (``log.readers``) have not read yet, so a position is a promise
to need nothing below it.  It moves forward; taking it back cannot bring removed records back, and is done only on
request.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Collection
from pathlib import Path
from typing import Final

from tieline.net.store.reading import keep_position, position

#: What a reader may be called; the store's rule.
READER: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
#: Readers whose positions are kept where no configuration names them: each is a file.
MOST: Final = 100


class Unknown(Exception):
    """No reader has this name."""


class Backwards(Exception):
    """A reader would be moved back."""

    def __init__(self, name: str, asked: int, now: int) -> None:
        super().__init__(f"reader {name} is at {now} already, and {asked} lies before: only with force")
        self.position = now


class Readers:
    """The readers of one data directory."""

    def __init__(self, data: str | Path, known: Collection[str] | None) -> None:
        """``known`` are the readers of the configuration; None where there is none to say so."""
        self._data = data
        self.known = known
        #: Between looking where a reader is and moving it, nobody else moves it.
        self._moving = threading.Lock()

    def positions(self) -> dict[str, int | None]:
        """Where each reader is, by name; None for one that has not said so yet."""
        names = set(self.known or ())
        folder = Path(self._data) / "readers"
        if folder.is_dir():
            # what somebody else put there is no reader
            names.update(each.name for each in folder.iterdir() if READER.fullmatch(each.name))
        return {name: position(self._data, name) for name in sorted(names)}

    def move(self, name: str, to: int, *, force: bool = False) -> None:
        """Say where a reader is; ValueError names what is wrong with a name."""
        with self._moving:
            now = position(self._data, name)
            if now is None and not self._is_welcome(name):
                raise Unknown(f'no reader is called "{name}": name it in log.readers of the configuration')
            if now is not None and to < now and not force:
                raise Backwards(name, to, now)
            if to != now:
                keep_position(self._data, name, to)

    def _is_welcome(self, name: str) -> bool:
        return len(self.positions()) < MOST if self.known is None else name in self.known
