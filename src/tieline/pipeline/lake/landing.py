"""How files get into the tables: a batch lands whole or not at all, whenever the machine stops; a table is exchanged.

Theory of operation
-------------------
Half-done work is in ``_staging``: each attempt has a directory of its own, and a lock in it that ends with its process.
Whoever opens a lake removes the attempts whose lock nobody holds.  So a process that was killed leaves nothing behind
for long, and never harms another one that is still at work.  Tasks write into a directory beside what becomes the
batch, and only files that they have reported get a second name in it: an executor that was given up and comes back
writes where nobody looks any more, or fails because the directory is gone.

Everything of a batch, its state too, is written below one such directory and synchronised.  Renaming it to
``_landing/<number>`` decides: before, the batch does not exist and will be made again; afterwards it will be in the
tables.  Then what each table has of each day is renamed to its place, and the state last.  A process that finds a
directory in ``_landing`` goes on where the last one stopped: what has been moved is no longer there to be moved.  A
reader who looks between two of these renames sees the batch in one table or day and not yet in another; it never sees
part of what a batch has of a day.

A table that was built anew takes the old one's place in one step: ``renameat2(RENAME_EXCHANGE)`` lets the two change
places; the old one is then in ``_staging`` and removed with it.  Where the kernel cannot, the new directory first moves
to ``_landing/exchange/<table>``: from then on it is decided that it will be the table.  The old one moves away, the new
one moves in.  Between these two a reader finds no table; a process that is killed there leaves the rest to the next one
that opens the lake.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

import pyarrow as pa

from tieline.pipeline.lake.disk import CannotExchange, Disk, is_held, locked
from tieline.pipeline.lake.document import prune_states
from tieline.pipeline.lake.layout import (
    DUPLICATES,
    EVENTS,
    QUARANTINE,
    Layout,
    Table,
    day_name,
    day_of,
    events,
)
from tieline.pipeline.lake.layout import table as table_of
from tieline.pipeline.lake.writing import write
from tieline.pipeline.lake.written import Written

#: The name of the lock in each attempt.
_OWNER: Final = "owner.lock"


class Staged:
    """A directory for the files of tasks; see :class:`tieline.pipeline.lake.written.Target`."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def write(self, rows: pa.Table, table: Table) -> list[Written]:
        return [
            Written(table.name, str(path), count, day_of(path))
            for path, count in write(rows, table, self._directory.joinpath(*table.parts))
        ]


class Attempt:
    """A place for files that belong to nothing yet."""

    def __init__(self, root: Path, disk: Disk) -> None:
        self.root = root
        self._disk = disk
        #: What becomes a batch: one directory per table, and ``state``.
        self.content = root / "content"

        #: Where tasks write.  What they have reported is adopted from there; what else is there belongs to nobody.
        self.written = root / "written"

    @property
    def target(self) -> Staged:
        """The directory that tasks write into, as they need to know it."""
        return Staged(self.written)

    def adopt(self, file: Written) -> None:
        """Make a file of a task part of the batch."""
        source = Path(file.path)
        target = self.table(table_of(file.table)) / day_name(file.day) / source.name
        target.parent.mkdir(parents=True, exist_ok=True)
        self._disk.link(source, target)

    def discard(self, files: Iterable[Written]) -> None:
        """Nothing is to be done: what nobody adopts goes with the attempt."""

    def table(self, of: Table) -> Path:
        """Where the files of a table go: into directories ``day=YYYY-MM-DD`` below this one."""
        return self.content.joinpath("tables", *of.parts)

    @property
    def state(self) -> Path:
        """Where the state after this batch goes."""
        return self.content / "state"


@contextmanager
def attempt(layout: Layout, disk: Disk) -> Iterator[Attempt]:
    """A new attempt; what is left of it at the end is removed."""
    made = Attempt(layout.staging / secrets.token_hex(8), disk)
    with ExitStack() as held:
        # who sweeps holds the same lock: it finds no attempt that nobody owns yet
        with locked(layout.lock):
            disk.make(made.root)
            held.enter_context(locked(made.root / _OWNER))
        disk.make(made.content)
        disk.make(made.written)
        try:
            yield made
        finally:
            disk.remove(made.root)


def sweep(layout: Layout, disk: Disk) -> int:
    """Remove the attempts of processes that are gone; returns how many.  The tables' lock is held."""
    if not layout.staging.is_dir():
        return 0
    abandoned = [each for each in layout.staging.iterdir() if not is_held(each / _OWNER)]
    for each in abandoned:
        disk.remove(each)
    return len(abandoned)


_TABLES: Final = "tables"
_STATE: Final = "state"


def decide_batch(layout: Layout, disk: Disk, attempt: Attempt, number: int) -> None:
    """Turn an attempt into a batch; the tables' lock is held."""
    disk.sync_tree(attempt.content)
    disk.move(attempt.content, layout.landing / str(number))


def land_decided(layout: Layout, disk: Disk) -> None:
    """Bring every decided batch into its tables; the tables' lock is held."""
    if not layout.landing.is_dir():
        return
    for number in sorted(int(each.name) for each in layout.landing.iterdir() if each.name.isdecimal()):
        source = layout.landing / str(number)
        for found, files in _parts(source / _TABLES):
            for day in sorted(files.iterdir()):
                target = layout.batch(found, day.name, number)
                disk.make(target.parent)
                disk.move(day, target)
        if (source / _STATE).is_dir():
            disk.move(source / _STATE, layout.state / str(number))
        disk.remove(source)
    prune_states(layout.state, disk)


def _parts(source: Path) -> list[tuple[Table, Path]]:
    """The tables that a batch has files for."""
    found = [(Table((name,)), source / name) for name in (QUARANTINE, DUPLICATES)]
    above = source / EVENTS
    if above.is_dir():
        found += [(events(each.name), each) for each in sorted(above.iterdir())]
    return [(each, path) for each, path in found if path.is_dir()]


def replace_table(layout: Layout, disk: Disk, table: Table, fresh: Path) -> None:
    """Put a directory, synchronised already, in a table's place; what was there is somewhere in the staging area.

    The tables' lock is held.
    """
    target = layout.table(table)
    if not target.exists():
        disk.make(target.parent)
        disk.move(fresh, target)
        return
    try:
        disk.exchange(fresh, target)
    except CannotExchange:
        decided = _decided(layout).joinpath(*table.parts)
        disk.make(decided.parent)
        disk.move(fresh, decided)
        finish_exchanges(layout, disk)


def finish_exchanges(layout: Layout, disk: Disk) -> None:
    """Complete what was decided; the tables' lock is held."""
    above = _decided(layout)
    if not above.is_dir():
        return
    for table in _exchanged(above):
        target = layout.table(table)
        if target.exists():
            disk.move(target, layout.staging / f"replaced-{secrets.token_hex(8)}")
        disk.make(target.parent)
        disk.move(above.joinpath(*table.parts), target)
    disk.remove(above)


def _decided(layout: Layout) -> Path:
    return layout.landing / "exchange"


def _exchanged(above: Path) -> list[Table]:
    found = [Table((each.name,)) for each in above.iterdir() if each.name != EVENTS]
    inside = above / EVENTS
    return found + ([events(each.name) for each in inside.iterdir()] if inside.is_dir() else [])
