"""Part ``ingest``: how fast records come out of a broker's log, and how fast they become tables.

Arrow batches and tuples are compared three times, each time with the same columns on both sides.  The goal is about the
first: place, time, topic and payload of short JSON messages, read from a log through its server.  The others are for
information and have no goal: all columns that ingest needs, through the server too, and the same ones from the workers'
memory, where no server takes its share of the time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final

from tieline.bench.load.job import Failure, Metrics
from tieline.bench.measure import Spent, least, spent
from tieline.bench.pipeline.part import Part, Site
from tieline.bench.pipeline.readings import portions, readings
from tieline.bench.pipeline.sources import Station, publish, running
from tieline.bench.suite.results import Row
from tieline.conf.load import load

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from tieline.pipeline.lake import Lake

WORKLOAD: Final = "ingest"
CLIENT, ARROW, TUPLES, TABLES = "client without Spark", "Arrow batches", "tuples", "tables"
WIDE_ARROW, WIDE_TUPLES = "Arrow batches, all columns of ingest", "tuples, all columns of ingest"
MEMORY_ARROW, MEMORY_TUPLES = "Arrow batches, from memory", "tuples, from memory"
#: What a job reads that has its own idea of payloads.
COLUMNS: Final = ("offset", "received", "topic", "payload")
_GOAL: Final = f"log to Spark: {', '.join(COLUMNS)} (the goal)"
_WIDE: Final = "log to Spark (for information)"
_MEMORY: Final = "records to Spark (for information)"
_TITLES: Final = {
    CLIENT: "log alone",
    ARROW: _GOAL,
    TUPLES: _GOAL,
    WIDE_ARROW: _WIDE,
    WIDE_TUPLES: _WIDE,
    MEMORY_ARROW: _MEMORY,
    MEMORY_TUPLES: _MEMORY,
    TABLES: "log to tables",
}
_PAIRS: Final = ((ARROW, TUPLES), (WIDE_ARROW, WIDE_TUPLES), (MEMORY_ARROW, MEMORY_TUPLES))
PEERS: Final = tuple(_TITLES)
#: Tasks of one reading; as many as there are cores would leave one waiting for the other.
_TASKS: Final = 8
_WAIT_S: Final = 1
#: Messages that are made at a time.
_PORTION: Final = 250_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Ingest(Part):
    """A log filled through its broker, and read in all ways, in turns."""

    name: ClassVar[str] = WORKLOAD
    records: int
    #: Rows that are handed over from memory.
    from_memory: int
    repetitions: int

    @property
    def steps(self) -> int:
        """Filling it, a look at each way, and the turns."""
        return 5 + 8 * self.repetitions

    def rows(self) -> list[Row]:
        """One for each way."""
        return [Row(workload=WORKLOAD, title=_TITLES[peer], group=self.name, peer=peer) for peer in PEERS]

    def measure(self, site: Site, rows: list[Row]) -> None:
        """Rates, and how many times as fast batches are as tuples."""
        times, counts = self._times(site)
        rates: dict[str, float] = {}
        for row in rows:
            metrics = _metrics(least(times[row.peer]), counts.get(row.peer, self.records))
            rates[row.peer] = metrics["rate"]
            row.repetitions.append(metrics)
        for row in rows:
            for arrow, tuples in _PAIRS:
                if row.peer == arrow:
                    row.repetitions[0]["times_tuples"] = rates[arrow] / rates[tuples]
        (into_tables,) = (row.repetitions[0] for row in rows if row.peer == TABLES)
        (tuples_of,) = (row.repetitions[0] for row in rows if row.peer == WIDE_TUPLES)
        into_tables["tables_of_tuples"] = into_tables["rate"] / tuples_of["rate"]
        into_tables["tables_cpu_of_tuples"] = into_tables["cpu_us_row"] / tuples_of["cpu_us_row"]

    def _times(self, site: Site) -> tuple[dict[str, list[Spent]], dict[str, int]]:
        """What each way took, and how many records it read."""
        from tieline.bench.pipeline.sources import BATCH_ROWS, MemorySource, TupleSource
        from tieline.pipeline.decode.records import NEEDED

        spark, folder, step, records = site.spark, site.folder, site.step, self.records
        for source in (TupleSource, MemorySource):
            spark.dataSource.register(source)
        with running(folder / "station") as station:
            step(f"log: {records:,} messages through a broker")
            for part in portions(records, _PORTION):
                publish(station, readings(part.start, len(part)))
            frames = {
                ARROW: _frame(spark, "tieline", station, records, COLUMNS),
                TUPLES: _frame(spark, "tieline_tuples", station, records, COLUMNS),
                WIDE_ARROW: _frame(spark, "tieline", station, records, NEEDED),
                WIDE_TUPLES: _frame(spark, "tieline_tuples", station, records, NEEDED),
            }
            for name, frame in frames.items():
                step(f"log: {name}, compared with what was sent")
                _check(frame, records)
            counts = dict.fromkeys(frames, records)
            batches = max(1, self.from_memory // BATCH_ROWS // _TASKS)
            frames |= {
                MEMORY_ARROW: _from_memory(spark, batches, tuples="false"),
                MEMORY_TUPLES: _from_memory(spark, batches, tuples="true"),
            }
            counts |= dict.fromkeys((MEMORY_ARROW, MEMORY_TUPLES), batches * BATCH_ROWS * _TASKS)
            times: dict[str, list[Spent]] = {peer: [] for peer in PEERS}
            for repetition in range(self.repetitions):
                step(f"log: {CLIENT} ({repetition + 1})")
                times[CLIENT].append(spent(lambda: _client(station, records))[1])
                for name, frame in frames.items():
                    step(f"log: {name} ({repetition + 1})")
                    times[name].append(spent(partial(_noop, frame))[1])
                step(f"log to tables ({repetition + 1})")
                times[TABLES].append(_tables(spark, station, folder / f"lake-{repetition}", records))
        return times, counts


def _metrics(took: Spent, records: int) -> Metrics:
    return {"rate": records / took.wall_s, "cpu_us_row": took.cpu_s / records * 1e6, "wall_s": took.wall_s}


def _frame(spark: SparkSession, form: str, station: Station, records: int, columns: Sequence[str]) -> DataFrame:
    reader = spark.read.format(form).option("url", station.url).option("columns", ",".join(columns))
    return reader.option("partitionRows", str(-(-records // _TASKS))).load()


def _from_memory(spark: SparkSession, batches: int, *, tuples: str) -> DataFrame:
    reader = spark.read.format("tieline_memory").option("tuples", tuples)
    return reader.option("tasks", str(_TASKS)).option("batches", str(batches)).load()


def _noop(frame: DataFrame) -> None:
    """Read everything, keep nothing."""
    frame.write.format("noop").mode("overwrite").save()


def _client(station: Station, records: int) -> None:
    from tieline.pipeline.decode.records import NEEDED
    from tieline.pipeline.source.client import LogClient

    columns = [name for name in NEEDED if name != "shard"]
    count = sum(batch.num_rows for batch in LogClient(station.url).read("log", 0, records, columns=columns))
    if count != records:
        raise Failure(f"the client read {count} of {records} records")


def _check(frame: DataFrame, records: int) -> None:
    """Look whether every record is there, once."""
    from pyspark.sql import functions as sql

    count, distinct, total, payload = frame.agg(
        sql.count("*"), sql.count_distinct("offset"), sql.sum("offset"), sql.sum(sql.length("payload"))
    ).first()  # type: ignore[misc]  # one row, always
    if (count, distinct, total) != (records, records, records * (records - 1) // 2) or not payload:
        raise Failure(f"of {records} records {count} were read, {distinct} different ones")


def fill(spark: SparkSession, station: Station, lake: Lake, records: int, *, max_rows: int | None = None) -> Spent:
    """Bring the log of a station into an empty lake, and look whether so many records have landed as readings."""
    from tieline.pipeline.jobs.ingest import Filling
    from tieline.pipeline.jobs.ingest_batch import MAX_ROWS, Logs

    def ingest() -> None:
        query = Filling(spark, lake, Logs([station.url], max_rows or MAX_ROWS))
        query.start(once=True)
        try:
            while not query.wait(_WAIT_S):
                pass
        finally:
            query.stop()

    _, took = spent(ingest)
    landed = {table.name: table.rows for table in lake.status().tables if table.rows}
    if landed != {"events/reading": records}:
        raise Failure(f"of {records} records these landed: {landed}")
    return took


def _tables(spark: SparkSession, station: Station, place: Path, records: int) -> Spent:
    from tieline.pipeline.lake import Lake

    return fill(spark, station, Lake.create(place, load(station.config)), records)
