"""Part ``match``: events in ranges of four attributes, found by our job, by a nested-loop join, and by one process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from numpy.typing import NDArray

from tieline.bench.load.job import Failure, Metrics
from tieline.bench.measure import Spent, least, spent
from tieline.bench.pipeline.part import Part, Site
from tieline.bench.pipeline.tables import line
from tieline.bench.suite.results import Row, rows_of
from tieline.conf.load import loads
from tieline.match.events import Events

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from tieline.pipeline.jobs.match.bound import BoundSubscriptions

Floats = NDArray[np.float64]

WORKLOAD: Final = "match"
JOB, NESTED, ALONE = "our job", "nested-loop join", "one process, same index"
PEERS: Final = (JOB, NESTED, ALONE)
ATTRIBUTES: Final = ("a", "b", "c", "d")
_TOPIC: Final = "bench/point"
_TYPE: Final = (
    f'[event.point]\ntopic = "{_TOPIC}"\nattributes = [\n'
    + "".join(f'{{name = "{name}", bounds = [0.0, 1.0]}},\n' for name in ATTRIBUTES)
    + "]\n"
)
#: Boxes are so wide in each attribute, at least and at most.
_WIDTH: Final = (0.05, 0.15)
_FILES: Final = 8
#: Factors of the checksum of a pair, and its modulus: sums of a million pairs stay far below 2**63.
_OFFSET_FACTOR, _NUMBER_FACTOR, _MODULUS = 31, 1_000_003, 2_147_483_647


class Pairs(NamedTuple):
    """How many pairs of event and subscription there are, and a sum over all of them that tells sets apart."""

    number: int
    checksum: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Match(Part):
    """All pairs, found in three ways; the nested-loop join gets one of ``share`` events, and a quarter of that.

    It is linear in the events, so a line through both says what all of them would take, its start not multiplied.
    """

    name: ClassVar[str] = WORKLOAD
    events: int
    subscriptions: int
    share: int
    repetitions: int

    @property
    def steps(self) -> int:
        """Warm-up and turns of two ways, and the third on two numbers of events."""
        return 4 + 2 * self.repetitions

    def rows(self) -> list[Row]:
        """One for each way."""
        return rows_of(WORKLOAD, "events in boxes", self.name, PEERS)

    def measure(self, site: Site, rows: list[Row]) -> None:
        """Times, and how many times those of the others they are."""
        random = np.random.default_rng(4)
        points = random.uniform(size=(self.events, len(ATTRIBUTES)))
        ends = boxes(self.subscriptions, random)
        plan = _plan(*ends)
        whole = _write(points, site.folder / "events")
        times, pairs = self._in_turns(site, whole, plan)
        sizes = [max(1, self.events // self.share // 4), max(2, self.events // self.share)]
        nested = [_nested(site, points[:count], ends, plan) for count in sizes]
        whole_s = extrapolated(sizes, [each.wall_s for each in nested], self.events)
        job, alone = least(times[JOB]), least(times[ALONE])
        found = {
            JOB: {
                **_metrics(job, self.events), "pairs": float(pairs.number), "times_nested": whole_s / job.wall_s,
                "times_alone": job.wall_s / alone.wall_s,
            },
            NESTED: {**_metrics(nested[1], sizes[1]), "extrapolated_s": whole_s},
            ALONE: {**_metrics(alone, self.events), "pairs": float(pairs.number)},
        }  # fmt: skip
        for row in rows:
            row.repetitions.append(found[row.peer])

    def _in_turns(self, site: Site, whole: Path, plan: BoundSubscriptions) -> tuple[dict[str, list[Spent]], Pairs]:
        """What our job and the index alone take, and the pairs that both find."""
        times: dict[str, list[Spent]] = {JOB: [], ALONE: []}
        answers: set[Pairs] = set()
        for repetition in range(self.repetitions + 1):
            for name, work in ((JOB, lambda: _job(site.spark, whole, plan)), (ALONE, lambda: _alone(whole, plan))):
                site.step(f"match: {name} ({'warm-up' if repetition == 0 else repetition})")
                answer, took = spent(work)
                answers.add(answer)
                # the first one starts workers and compiles
                times[name] += [took] if repetition else []
        if len(answers) > 1:
            raise Failure(f"our job and the index alone find different pairs: {answers}")
        return times, answers.pop()


def _metrics(took: Spent, events: int) -> Metrics:
    return {"wall_s": took.wall_s, "cpu_s": took.cpu_s, "rate": events / took.wall_s, "events": float(events)}


def boxes(count: int, random: np.random.Generator) -> tuple[Floats, Floats]:
    """The lower and upper ends of boxes within the unit cube."""
    width = random.uniform(*_WIDTH, size=(count, len(ATTRIBUTES)))
    lo = random.uniform(size=width.shape) * (1 - width)
    return lo, lo + width


def extrapolated(sizes: Sequence[int], times_s: Sequence[float], size: int) -> float:
    """What a larger size would take, if every further event takes as long as those between the measured sizes did."""
    start_s, slope_s = line([float(each) for each in sizes], times_s)
    if slope_s <= 0:
        raise Failure("the nested-loop join took no longer for more events: the machine was busy with something else")
    return max(start_s, 0.0) + slope_s * size


def checksum(offsets: NDArray[np.int64], numbers: NDArray[np.int64]) -> int:
    """The sum over pairs that Spark computes, too."""
    return int(((offsets * _OFFSET_FACTOR + numbers * _NUMBER_FACTOR) % _MODULUS).sum())


def _plan(lo: Floats, hi: Floats) -> BoundSubscriptions:
    from tieline.pipeline.jobs.match.bound import bind_all
    from tieline.pipeline.jobs.match.subscriptions import subscription

    def text(number: int) -> str:
        ends = zip(ATTRIBUTES, lo[number].tolist(), hi[number].tolist(), strict=True)
        return " and ".join(f"{name} >= {low!r} and {name} <= {high!r}" for name, low, high in ends)

    wanted = [subscription(f"{_TOPIC}?{text(number)}", id=str(number)) for number in range(len(lo))]
    return bind_all(wanted, Events(loads(_TYPE)).types["point"], only_declared=True)


def _write(points: Floats, folder: Path) -> Path:
    """Events as a table of a lake, in so many files that all cores have something to read."""
    folder.mkdir(parents=True)
    edges = np.linspace(0, len(points), _FILES + 1).astype(int)
    for number, (first, last) in enumerate(pairwise(edges.tolist())):
        part = points[first:last]
        columns = {name: part[:, axis] for axis, name in enumerate(ATTRIBUTES)}
        table = pa.table({"_offset": np.arange(first, last), "_topic": [_TOPIC] * len(part), **columns})
        pq.write_table(table, folder / f"{number}.parquet", compression="zstd", compression_level=1)
    return folder


def _job(spark: SparkSession, folder: Path, plan: BoundSubscriptions) -> Pairs:
    from tieline.pipeline.jobs.match.job import match_bound

    return _summed(match_bound(spark.read.parquet(str(folder)), plan, keep=("_offset",)))


def _alone(folder: Path, plan: BoundSubscriptions) -> Pairs:
    """What Spark's workers do, without Spark: one process, one thread, the same files and the same index."""
    from tieline.pipeline.jobs.match.rows import column_of
    from tieline.pipeline.jobs.match.worker import on_columns

    find = on_columns(plan)
    ids = pa.array(plan.ids, pa.string())
    attributes = {column_of(axis): ds.field(name) for axis, name in enumerate(ATTRIBUTES)}
    columns = {"_offset": ds.field("_offset"), **attributes}
    found: list[tuple[pa.Array, pa.Array]] = []
    total = 0
    for batch in ds.dataset(folder).to_batches(columns=columns, use_threads=False):
        taken, numbers = find(batch)
        offsets = batch.column("_offset").take(pa.array(taken))
        found.append((ids.take(pa.array(numbers)), offsets))
        total += checksum(offsets.to_numpy(), numbers)
    return Pairs(sum(len(offsets) for _ids, offsets in found), total)


def _nested(site: Site, points: Floats, ends: tuple[Floats, Floats], plan: BoundSubscriptions) -> Spent:
    """The join that Spark makes of eight comparisons, on some of the events, whose pairs our job finds as well."""
    from pyspark.sql import functions as sql

    site.step(f"match: {NESTED} of {len(points):,} events")
    events = _write(points, site.folder / f"events-{len(points)}")
    columns = {
        f"{side}_{name}": values[:, axis]
        for side, values in zip(("lo", "hi"), ends, strict=True)
        for axis, name in enumerate(ATTRIBUTES)
    }
    wanted = site.spark.createDataFrame(pa.table({"subscription": np.arange(len(ends[0])), **columns}))
    condition = sql.lit(True)
    for name in ATTRIBUTES:
        condition &= (sql.col(name) >= sql.col(f"lo_{name}")) & (sql.col(name) <= sql.col(f"hi_{name}"))
    joined = site.spark.read.parquet(str(events)).join(sql.broadcast(wanted), condition)
    answer, took = spent(lambda: _summed(joined))
    if answer != (ours := _job(site.spark, events, plan)):
        raise Failure(f"the nested-loop join finds {answer}, and our job {ours}")
    return took


def _summed(pairs: DataFrame) -> Pairs:
    from pyspark.sql import functions as sql

    number = sql.col("subscription").cast("bigint")
    each = (sql.col("_offset") * _OFFSET_FACTOR + number * _NUMBER_FACTOR) % _MODULUS
    summed = pairs.agg(sql.count("*"), sql.coalesce(sql.sum(each), sql.lit(0)))
    count, total = summed.first()  # type: ignore[misc]  # one row, always
    return Pairs(int(count), int(total))
