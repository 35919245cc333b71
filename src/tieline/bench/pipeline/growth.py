"""Part ``growth``: whether the time of ingest is a straight line of the rows, from few batches to many."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tieline.bench.load.failure import Failure
from tieline.bench.pipeline.fit import bend, line
from tieline.bench.pipeline.readings import EVENT_TYPE, write_history
from tieline.bench.pipeline.spent import Spent, least, spent
from tieline.bench.record import Row
from tieline.conf.load import loads

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WORKLOAD: Final = "growth"
FIT: Final = "a + b · rows"
#: The smallest size in batches: what each batch costs by itself must be part of the slope at both ends.
_LEAST_BATCHES: Final = 2


def rows(sizes: Sequence[int]) -> list[Row]:
    """What will be measured."""
    title = "history to tables"
    sized = [Row(workload=WORKLOAD, title=title, group="growth", peer=peer(size)) for size in sizes]
    return [*sized, Row(workload=WORKLOAD, title=title, group="growth", peer=FIT)]


def peer(size: int) -> str:
    """What a size is called."""
    return f"{size:,} rows"


def measure(
    spark: SparkSession,
    folder: Path,
    found: list[Row],
    *,
    sizes: Sequence[int],
    repetitions: int,
    step: Callable[[str], None],
) -> None:
    """Take history of each size into a lake of its own, the sizes in turns."""
    batch = min(sizes) // _LEAST_BATCHES
    step(f"growth: writing {max(sizes):,} rows of history")
    files = write_history(folder / "history", max(sizes), rows_per_file=batch)
    times: dict[int, list[Spent]] = {size: [] for size in sizes}
    step("growth: warm-up")
    _take(spark, files[:1], folder / "warm-up", batch)
    for repetition in range(repetitions):
        for size in sizes:
            step(f"growth: {size:,} rows ({repetition + 1})")
            place = folder / f"growth-{size}-{repetition}"
            times[size].append(_take(spark, files[: -(-size // batch)], place, batch))
    walls = [least(times[size]).wall_s for size in sizes]
    by_peer = {row.peer: row for row in found}
    for size, wall_s in zip(sizes, walls, strict=True):
        cpu_us = least(times[size]).cpu_s / size * 1e6
        by_peer[peer(size)].repetitions.append({"wall_s": wall_s, "rate": size / wall_s, "cpu_us_row": cpu_us})
    counts = [float(size) for size in sizes]
    whole = line(counts, walls)
    by_peer[FIT].repetitions.append(
        {"start_s": whole.start, "slope_us": whole.slope * 1e6, "bend": bend(counts, walls)}
    )


def _take(spark: SparkSession, files: Sequence[Path], place: Path, batch: int) -> Spent:
    """Bring some files into a new lake, a file in each batch, and look whether everything is there."""
    from tieline.pipeline.jobs.ingest import take_history
    from tieline.pipeline.lake import Lake

    some = place.with_name(f"{place.name}-history")
    some.mkdir()
    for path in files:
        os.link(path, some / path.name)
    lake = Lake.create(place, loads(EVENT_TYPE))
    records, took = spent(lambda: take_history(spark, lake, some, max_rows=batch))
    landed = {table.name: table.rows for table in lake.status().tables if table.rows}
    if landed != {"events/reading": records}:
        raise Failure(f"of {records} records these landed: {landed}")
    return took
