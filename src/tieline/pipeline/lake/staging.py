"""Half-done work: each attempt has a directory of its own, and a lock in it that ends with its process.

Whoever opens a lake removes the attempts whose lock nobody holds.  So a process that was killed leaves nothing behind
for long, and never harms another one that is still at work.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tieline.pipeline.lake.disk import Disk
from tieline.pipeline.lake.layout import Layout, Table
from tieline.pipeline.lake.locks import is_held, locked

#: The name of the lock in each attempt.
_OWNER: Final = "owner.lock"


class Attempt:
    """A place for files that belong to nothing yet."""

    def __init__(self, root: Path) -> None:
        self.root = root
        #: What becomes a batch: one directory per table, and ``state``.
        self.content = root / "content"

    def table(self, table: Table) -> Path:
        """Where the files of a table go: into directories ``day=YYYY-MM-DD`` below this one."""
        return self.content.joinpath("tables", *table.parts)

    @property
    def state(self) -> Path:
        """Where the state after this batch goes."""
        return self.content / "state"


@contextmanager
def attempt(layout: Layout, disk: Disk) -> Iterator[Attempt]:
    """A new attempt; what is left of it at the end is removed."""
    made = Attempt(layout.staging / secrets.token_hex(8))
    disk.make(made.content)
    with locked(made.root / _OWNER):
        try:
            yield made
        finally:
            disk.remove(made.root)


def sweep(layout: Layout, disk: Disk) -> int:
    """Remove the attempts of processes that are gone; returns how many."""
    if not layout.staging.is_dir():
        return 0
    abandoned = [each for each in layout.staging.iterdir() if not is_held(each / _OWNER)]
    for each in abandoned:
        disk.remove(each)
    return len(abandoned)
