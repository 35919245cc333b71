"""One table directory in place of another: in one step where the kernel can, in two that are finished after a crash.

Theory of operation
-------------------
``renameat2(RENAME_EXCHANGE)`` lets the new and the old directory change places; the old one is then in ``_staging`` and
removed with it.  Without it, the new directory first moves to ``_landing/exchange/<table>``: from then on it is decided
that it will be the table.  The old one moves away, the new one moves in.  Between these two a reader finds no table;
a process that is killed there leaves the rest to the next one that opens the lake.
"""

from __future__ import annotations

import secrets
from pathlib import Path

from tieline.pipeline.lake.disk import CannotExchange, Disk
from tieline.pipeline.lake.layout import EVENTS, Layout, Table, events


def replace(layout: Layout, disk: Disk, table: Table, fresh: Path) -> None:
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
        finish(layout, disk)


def finish(layout: Layout, disk: Disk) -> None:
    """Complete what was decided; the tables' lock is held."""
    above = _decided(layout)
    if not above.is_dir():
        return
    for table in _tables(above):
        target = layout.table(table)
        if target.exists():
            disk.move(target, layout.staging / f"replaced-{secrets.token_hex(8)}")
        disk.make(target.parent)
        disk.move(above.joinpath(*table.parts), target)
    disk.remove(above)


def _decided(layout: Layout) -> Path:
    return layout.landing / "exchange"


def _tables(above: Path) -> list[Table]:
    found = [Table((each.name,)) for each in above.iterdir() if each.name != EVENTS]
    inside = above / EVENTS
    return found + ([events(each.name) for each in inside.iterdir()] if inside.is_dir() else [])
