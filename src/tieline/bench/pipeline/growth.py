"""Part ``growth``: whether the time of ingest is a straight line of the rows, time = a + b · rows."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from tieline.bench.load.job import Failure
from tieline.bench.measure import Spent, least, spent
from tieline.bench.pipeline.readings import EVENT_TYPE, write_history
from tieline.bench.suite.results import Row
from tieline.conf.load import loads

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Line(NamedTuple):
    """``start`` is what nothing takes, ``slope`` what each more takes."""

    start: float
    slope: float


def line(x: Sequence[float], y: Sequence[float]) -> Line:
    """The line with the least squares of relative errors: a second counts less in a long run than in a short one."""
    xs, ys = np.asarray(x, float), np.asarray(y, float)
    if len(xs) < 2 or len(set(x)) < 2 or (ys <= 0).any():
        raise ValueError("a line needs two different places and times above zero")
    weights = 1 / ys
    found, *_ = np.linalg.lstsq(np.stack([weights, xs * weights], axis=1), np.ones(len(xs)), rcond=None)
    return Line(float(found[0]), float(found[1]))


def bend(x: Sequence[float], y: Sequence[float]) -> float:
    """How many times steeper the steeper end of a curve is than the other one; 1 means straight.

    The ends are the first and the last half of the points, two at least.
    """
    half = max(2, len(x) // 2)
    first, last = line(x[:half], y[:half]).slope, line(x[-half:], y[-half:]).slope
    low, high = min(first, last), max(first, last)
    return high / low if low > 0 else float("inf")


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
