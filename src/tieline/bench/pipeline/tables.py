"""Two parts about tables: whether the time of ingest is a line of the rows, and what a query of three ranges reads.

``growth``: time = a + b · rows.  ``pruning``: of a table along the Hilbert curve, and of one by time.  Both of these
have the same rows, and their files the same writer: ingest and compaction make the first, the second is sorted by time
instead.  What has to be read is counted twice: from the footers (the row groups whose least and greatest values do not
exclude the query), and by the kernel, while pyarrow answers the query.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from tieline.bench.load.job import Failure
from tieline.bench.measure import Spent, least, spent
from tieline.bench.pipeline.part import Part, Site
from tieline.bench.pipeline.readings import EVENT_TYPE, write_history
from tieline.bench.suite.results import Row, rows_of
from tieline.conf.load import loads

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class FittedLine(NamedTuple):
    """``start`` is what nothing takes, ``slope`` what each more takes."""

    start: float
    slope: float


def line(x: Sequence[float], y: Sequence[float]) -> FittedLine:
    """The line with the least squares of relative errors: a second counts less in a long run than in a short one."""
    xs, ys = np.asarray(x, float), np.asarray(y, float)
    if len(xs) < 2 or len(set(x)) < 2 or (ys <= 0).any():
        raise ValueError("a line needs two different places and times above zero")
    weights = 1 / ys
    found, *_ = np.linalg.lstsq(np.stack([weights, xs * weights], axis=1), np.ones(len(xs)), rcond=None)
    return FittedLine(float(found[0]), float(found[1]))


def bend(x: Sequence[float], y: Sequence[float]) -> float:
    """How many times steeper the steeper end of a curve is than the other one; 1 means straight.

    The ends are the first and the last half of the points, two at least.
    """
    half = max(2, len(x) // 2)
    first, last = line(x[:half], y[:half]).slope, line(x[-half:], y[-half:]).slope
    low, high = min(first, last), max(first, last)
    return high / low if low > 0 else float("inf")


GROWTH: Final = "growth"
FIT: Final = "a + b · rows"
#: The smallest size in batches: what each batch costs by itself must be part of the slope at both ends.
_LEAST_BATCHES: Final = 2


def peer(size: int) -> str:
    """What a size is called."""
    return f"{size:,} rows"


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth(Part):
    """History of each size, taken into a lake of its own, the sizes in turns."""

    name: ClassVar[str] = GROWTH
    sizes: Sequence[int]
    repetitions: int

    @property
    def steps(self) -> int:
        """Writing, warming up, and the turns."""
        return 2 + len(self.sizes) * self.repetitions

    def rows(self) -> list[Row]:
        """One for each size, and one for the line through them."""
        return rows_of(GROWTH, "history to tables", self.name, [*map(peer, self.sizes), FIT])

    def measure(self, site: Site, rows: list[Row]) -> None:
        """Times, and the line through them."""
        sizes, folder, step = self.sizes, site.folder, site.step
        batch = min(sizes) // _LEAST_BATCHES
        step(f"growth: writing {max(sizes):,} rows of history")
        files = write_history(folder / "history", max(sizes), rows_per_file=batch)
        times: dict[int, list[Spent]] = {size: [] for size in sizes}
        step("growth: warm-up")
        _take(site.spark, files[:1], folder / "warm-up", batch)
        for repetition in range(self.repetitions):
            for size in sizes:
                step(f"growth: {size:,} rows ({repetition + 1})")
                place = folder / f"growth-{size}-{repetition}"
                times[size].append(_take(site.spark, files[: -(-size // batch)], place, batch))
        best = [least(times[size]) for size in sizes]
        counts, walls = [float(size) for size in sizes], [each.wall_s for each in best]
        # what others do on the machine disturbs the clock and the processors at different moments
        cpus = [min(each.cpu_s for each in times[size]) for size in sizes]
        whole = line(counts, walls)
        for row, size, took, cpu_s in zip(rows, sizes, best, cpus, strict=False):
            cpu_us = cpu_s / size * 1e6
            row.repetitions.append({"wall_s": took.wall_s, "rate": size / took.wall_s, "cpu_us_row": cpu_us})
        rows[-1].repetitions.append({
            "start_s": whole.start,
            "slope_us": whole.slope * 1e6,
            "bend": bend(counts, walls),
            "cpu_slope_us": line(counts, cpus).slope * 1e6,
            "cpu_bend": bend(counts, cpus),
        })  # fmt: skip


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


PRUNING: Final = "pruning"
BY_TIME, BY_CURVE = "sorted by time", "Hilbert-clustered"
PEERS: Final = (BY_TIME, BY_CURVE)
ATTRIBUTES: Final = ("voltage", "current", "frequency")
#: Of all rows, each range takes so many.
_RANGE: Final = 0.1
_BATCHES: Final = 4

#: From least to greatest, by attribute.
Query = Mapping[str, tuple[float, float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pruning(Part):
    """Two tables of the same rows, asked the same questions."""

    name: ClassVar[str] = PRUNING
    records: int
    queries: int

    @property
    def steps(self) -> int:
        """Making the tables, and asking."""
        return 2

    def rows(self) -> list[Row]:
        """One for each table."""
        return rows_of(PRUNING, "three ranges", self.name, PEERS)

    def measure(self, site: Site, rows: list[Row]) -> None:
        """What is read of both."""
        from tieline.pipeline.jobs.ingest import take_history
        from tieline.pipeline.lake import Lake
        from tieline.pipeline.lake.compaction import compact
        from tieline.pipeline.lake.layout import events

        folder, records = site.folder, self.records
        site.step(f"pruning: two tables of {records:,} rows")
        batch = -(-records // _BATCHES)
        write_history(folder / "history", records, rows_per_file=batch)
        lake = Lake.create(folder / "lake", loads(EVENT_TYPE))
        take_history(site.spark, lake, folder / "history", max_rows=batch)
        list(compact(lake))
        curve = lake.plain.layout.table(events("reading"))
        whole = ds.dataset(curve, format="parquet").to_table(columns=lake.schema(events("reading")).names)
        tables = {BY_TIME: _by_time(whole, folder / "by-time"), BY_CURVE: sorted(curve.glob("**/*.parquet"))}
        site.step(f"pruning: {self.queries} queries of both")
        asked = random_queries(whole, self.queries)
        expected = [_selected(whole, query) for query in asked]
        for row in rows:
            files = tables[row.peer]
            answers = [_answer(files, query) for query in asked]
            if [each[0] for each in answers] != expected:
                raise Failure(f"the table {row.peer} gives other rows than were written")
            row.repetitions.append({
                "bytes_table": float(sum(path.stat().st_size for path in files)),
                "bytes_footer": float(np.mean([bytes_needed(files, query) for query in asked])),
                "bytes_read": float(np.mean([each[1] for each in answers])),
                "rows_answer": float(np.mean(expected)),
            })  # fmt: skip
        time, hilbert = (row.repetitions[0] for row in rows)
        for name, metric in (("fewer_footer", "bytes_footer"), ("fewer_read", "bytes_read")):
            hilbert[name] = time[metric] / hilbert[metric]


def bytes_needed(files: Iterable[Path], query: Query) -> int:
    """The bytes of the row groups that the statistics in the footers cannot exclude."""
    needed = 0
    for path in files:
        metadata = pq.read_metadata(path)
        places = {metadata.schema.column(place).name: place for place in range(metadata.num_columns)}
        for number in range(metadata.num_row_groups):
            group = metadata.row_group(number)
            if all(_may_hold(group.column(places[name]), *ends) for name, ends in query.items()):
                needed += sum(group.column(place).total_compressed_size for place in range(metadata.num_columns))
    return needed


def random_queries(table: pa.Table, count: int, *, seed: int = 3) -> list[Query]:
    """Ranges that hold a tenth of the rows each, around the values of random rows."""
    random = np.random.default_rng(seed)
    ordered = {name: np.sort(table[name].to_numpy()) for name in ATTRIBUTES}
    found: list[Query] = []
    for row in random.integers(len(table), size=count).tolist():
        query: dict[str, tuple[float, float]] = {}
        for name, values in ordered.items():
            place = int(np.searchsorted(values, table[name][row].as_py()))
            first = min(max(0, place - int(_RANGE / 2 * len(values))), int((1 - _RANGE) * len(values)))
            last = min(first + int(_RANGE * len(values)), len(values) - 1)
            query[name] = float(values[first]), float(values[last])
        found.append(query)
    return found


def _may_hold(column: pq.ColumnChunkMetaData, low: float, high: float) -> bool:
    statistics = column.statistics
    if statistics is None or not statistics.has_min_max:
        return True
    return bool(statistics.min <= high and statistics.max >= low)


def _by_time(whole: pa.Table, folder: Path) -> list[Path]:
    from tieline.pipeline.lake.compaction import FILE_ROWS
    from tieline.pipeline.lake.writing import write_file

    folder.mkdir()
    ordered = whole.sort_by([("_time", "ascending"), ("_offset", "ascending")])
    paths: list[Path] = []
    for first in range(0, len(ordered), FILE_ROWS):
        paths.append(folder / f"part-{first}.parquet")
        write_file(ordered.slice(first, FILE_ROWS), paths[-1])
    return paths


def _expression(query: Query) -> pc.Expression:
    found = pc.scalar(True)
    for name, (low, high) in query.items():
        found &= (pc.field(name) >= low) & (pc.field(name) <= high)
    return found


def _answer(files: Sequence[Path], query: Query) -> tuple[int, int]:
    """How many rows a query gives, and how many bytes this process read for them."""
    before = _bytes_read()
    answer = ds.dataset([str(path) for path in files], format="parquet").to_table(filter=_expression(query))
    return len(answer), _bytes_read() - before


def _selected(whole: pa.Table, query: Query) -> int:
    return len(whole.filter(_expression(query)))


def _bytes_read() -> int:
    """What this process has ever read, of files and everything else: the kernel's own count."""
    lines = Path(f"/proc/{os.getpid()}/io").read_text().splitlines()
    return next(int(line.partition(":")[2]) for line in lines if line.startswith("rchar"))
