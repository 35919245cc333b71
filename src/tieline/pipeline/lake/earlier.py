"""Lakes of version 1: where their place in the logs is, and how their tables are brought into the order of today.

The place is in the checkpoint of the streaming query that filled such a lake.
Spark writes down where a batch ends before it begins, and the state says which batch landed last; so the two together
are the place.  Spark does not synchronise what it writes: after a loss of power the file of that batch may be gone or
empty.  The state has the offsets too, unless history was taken beside the logs, whose offsets are in the same table.
"""

from __future__ import annotations

import json
from pathlib import Path

from tieline.pipeline.lake.disk import Disk
from tieline.pipeline.lake.document import Document, State
from tieline.pipeline.lake.layout import LakeError, Layout
from tieline.pipeline.options import SparkOffset
from tieline.pipeline.source.offsets import CREATED


def place(layout: Layout, document: Document, state: State) -> SparkOffset | None:
    """Where reading goes on after the last batch of the query; None if no query has filled the lake.

    Offsets that come from the state do not say of which store they are.
    """
    number = None if document.query is None else state.queries.get(document.query)
    if number is None:
        return None
    written = _written(layout.checkpoint / "offsets" / str(number))
    if written is not None and all(written.get(name) == offset for name, offset in _logs(state, written)):
        return written
    if state.history or state.files:
        raise LakeError(
            f"{layout.root} was filled by a streaming query, whose checkpoint {layout.checkpoint} cannot be read, and "
            "has taken history besides, so that nobody can tell how far the logs were read. Bring the checkpoint back, "
            "or begin another lake."
        )
    return {**state.positions}


def put_days_above(layout: Layout, disk: Disk) -> None:
    """Move ``batch=N/day=D`` to ``day=D/batch=N`` in all tables; what was moved before is no longer there to be moved.

    Readers that want one day had to look into every batch.  The tables' lock is held.
    """
    for table in layout.tables():
        for batch in sorted(layout.table(table).glob("batch=*")):
            for day in sorted(batch.iterdir()):
                target = layout.table(table) / day.name / batch.name
                disk.make(target.parent)
                disk.move(day, target)
            disk.remove(batch)


def _logs(state: State, written: SparkOffset) -> list[tuple[str, int]]:
    """What the state knows of the logs that the checkpoint names; without history both say the same."""
    return (
        []
        if state.history or state.files
        else [(name, offset) for name, offset in state.positions.items() if name in written]
    )


def _written(path: Path) -> SparkOffset | None:
    """What Spark wrote down before a batch; the last line is that of the source."""
    try:
        found = json.loads(path.read_text().splitlines()[-1])
    except (OSError, ValueError, IndexError):
        return None
    return found if isinstance(found, dict) and CREATED in found else None
