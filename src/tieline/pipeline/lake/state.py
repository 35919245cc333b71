"""What is known after a batch: which query and history files it came from, how far each broker's log was read.

It lands together with the batch, in the same step, so that it is never ahead of the tables nor behind them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import msgspec

from tieline.pipeline.lake.disk import Disk
from tieline.pipeline.lake.errors import LakeError

_NAME: Final = "state.json"
#: States kept besides the newest, for people who look for a fault.
_SPARE: Final = 1


class State(msgspec.Struct, frozen=True):
    """The state after a batch."""

    #: The number of the batch; -1 before the first.
    batch: int = -1
    #: The newest batch of each streaming query, by the query's own count.
    queries: dict[str, int] = {}
    #: The offset behind the last one seen of each broker's log.
    positions: dict[str, int] = {}
    #: Where ingest that keeps no checkpoint goes on, as a checkpoint would say it.
    place: dict[str, Any] = {}
    #: History files that were taken, by name, with their sizes.
    history: dict[str, int] = {}
    #: Rows that ever landed, by table.
    rows: dict[str, int] = {}
    #: When the batch landed.
    landed: str | None = None

    def has(self, query: str, batch: int) -> bool:
        """Whether a batch of a query is in the tables already."""
        return batch <= self.queries.get(query, -1)


def newest(states: Path) -> tuple[State, Path | None]:
    """The state after the last batch that landed, and the directory in which more may lie."""
    found = _numbers(states)
    if not found:
        return State(), None
    directory = states / str(found[-1])
    try:
        return msgspec.json.decode((directory / _NAME).read_bytes(), type=State), directory
    except (OSError, msgspec.DecodeError) as problem:
        raise LakeError(f"{directory / _NAME} cannot be read: {problem}.") from None


def save(state: State, directory: Path, disk: Disk) -> None:
    """Write a state into a directory."""
    disk.make(directory)
    disk.write(directory / _NAME, msgspec.json.encode(state))


def prune(states: Path, disk: Disk) -> None:
    """Remove the states that newer ones have replaced."""
    for number in _numbers(states)[: -1 - _SPARE]:
        disk.remove(states / str(number))


def _numbers(states: Path) -> list[int]:
    if not states.is_dir():
        return []
    return sorted(int(each.name) for each in states.iterdir() if each.name.isdecimal())
