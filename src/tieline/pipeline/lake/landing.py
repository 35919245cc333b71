"""How a batch gets into the tables: all of it or nothing, whenever the machine stops.

Theory of operation
-------------------
Everything of a batch, its state too, is written below one directory in ``_staging`` and synchronised.  Renaming that
directory to ``_landing/<number>`` decides: before, the batch does not exist and will be made again; afterwards it will
be in the tables.  Then each table's part is renamed to its place, and the state last.  A process that finds a directory
in ``_landing`` goes on where the last one stopped: what has been moved is no longer there to be moved.

A reader who looks between two of these renames sees the batch in one table and not yet in another; it never sees part
of a batch in one table.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final, Protocol

from tieline.pipeline.lake import state as states
from tieline.pipeline.lake.disk import Disk
from tieline.pipeline.lake.layout import DUPLICATES, EVENTS, QUARANTINE, Layout, Table, events
from tieline.pipeline.lake.staging import Attempt

_TABLES: Final = "tables"
_STATE: Final = "state"


class Place(Protocol):
    """Brings the files of a batch into one table; a second call for the same batch changes nothing."""

    def put(self, source: Path, table: Table, number: int) -> None: ...


class Renamed:
    """The files themselves are the table."""

    def __init__(self, layout: Layout, disk: Disk) -> None:
        self._layout = layout
        self._disk = disk

    def put(self, source: Path, table: Table, number: int) -> None:
        target = self._layout.batch(table, number)
        self._disk.make(target.parent)
        self._disk.move(source, target)


def decide(layout: Layout, disk: Disk, attempt: Attempt, number: int) -> None:
    """Turn an attempt into a batch; the tables' lock is held."""
    disk.sync_tree(attempt.content)
    disk.move(attempt.content, layout.landing / str(number))


def roll_forward(layout: Layout, disk: Disk, place: Place) -> None:
    """Bring every decided batch into its tables; the tables' lock is held."""
    if not layout.landing.is_dir():
        return
    for number in sorted(int(each.name) for each in layout.landing.iterdir() if each.name.isdecimal()):
        source = layout.landing / str(number)
        for table, files in _parts(source / _TABLES):
            place.put(files, table, number)
        if (source / _STATE).is_dir():
            disk.move(source / _STATE, layout.state / str(number))
        disk.remove(source)
    states.prune(layout.state, disk)


def _parts(source: Path) -> list[tuple[Table, Path]]:
    """The tables that a batch has files for."""
    found = [(Table((name,)), source / name) for name in (QUARANTINE, DUPLICATES)]
    above = source / EVENTS
    if above.is_dir():
        found += [(events(each.name), each) for each in sorted(above.iterdir())]
    return [(table, path) for table, path in found if path.is_dir()]
