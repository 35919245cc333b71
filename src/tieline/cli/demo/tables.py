"""What the tables hold of the live messages, read without Spark: plain Parquet files, as anybody would."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import NamedTuple


class Held(NamedTuple):
    """The rows of one broker in all tables of events."""

    #: How often each numbered message is there, by publisher and ``seq``.
    numbered: Counter[tuple[str, str]]
    rows: int
    #: Rows of the tables for what could not be read, and for what was sent twice.
    quarantined: int
    duplicates: int


def read_held(lake: Path, shard: str) -> Held:
    """Look into every file below the lake's tables."""
    numbered: Counter[tuple[str, str]] = Counter()
    rows = 0
    for found in _columns(lake / "events", ["_publisher", "_seq"], ("_shard", shard)):
        rows += len(found["_seq"])
        pairs = zip(found["_publisher"], found["_seq"], strict=True)
        numbered.update((publisher or "", seq) for publisher, seq in pairs if seq is not None)
    aside = (
        sum(len(found["offset"]) for found in _columns(lake / name, ["offset"], ("shard", shard)))
        for name in ("quarantine", "duplicates")
    )
    return Held(numbered, rows, *aside)


def _columns(folder: Path, names: list[str], only: tuple[str, str]) -> list[dict[str, list[str | None]]]:
    import pyarrow.parquet as pq

    column, value = only
    return [
        # the directories' own names would become columns of another type here and there
        pq.read_table(file, columns=names, filters=[(column, "=", value)], partitioning=None).to_pydict()
        for file in sorted(folder.rglob("*.parquet"))
    ]
