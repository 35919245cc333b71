"""Rules about what outlives the process: a log needs a place, and bounds that make sense together."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from tieline.conf.filters import flaw
from tieline.conf.schema import Settings, bound

#: The name of a reader becomes a file name.
_READER: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def broken(settings: Settings) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Each broken rule: the path of the key to blame and a sentence."""
    log = settings.log
    for number, filter_ in enumerate(log.capture):
        if problem := flaw(filter_):
            yield ("log", "capture", number), problem
    is_logging = bool(log.capture) or log.events == "on"
    key = "capture" if log.capture else "events"
    if is_logging and settings.data is None:
        yield ("log", key), "there is no data directory to keep a log in: set data in this file."
    elif is_logging and settings.store.engine == "memory":
        yield ("log", key), 'store.engine = "memory" keeps nothing, so there can be no log: use "sqlite".'
    if bound(log.hard_bytes) < bound(log.retention_bytes):
        yield ("log", "hard_bytes"), "hard_bytes is below retention_bytes: readers could hold nothing at all."
    for number, reader in enumerate(log.readers):
        if not _READER.fullmatch(reader):
            yield (
                ("log", "readers", number),
                f'"{reader}" is no name for a reader: letters, digits, dots, dashes and underscores.',
            )
