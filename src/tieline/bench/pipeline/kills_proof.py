"""What the tables hold against what the publishers were told: read by Spark, and by DuckDB from the plain files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tieline.bench.load.job import Metrics
from tieline.bench.pipeline.publishers import Device

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: How often each message is in the tables, by publisher and ``RUN/NUMBER``.
Counts = Counter[tuple[str, str]]


class Finding(NamedTuple):
    """How the tables differ from what they should hold."""

    #: Acknowledged and not there; there more than once; there and never sent.
    lost: int
    twice: int
    unknown: int


def compared(found: Counts, publishers: Iterable[Device]) -> Finding:
    """Hold the tables against the memory of the publishers."""
    acknowledged: set[tuple[str, str]] = set()
    doubtful: set[tuple[str, str]] = set()
    for each in publishers:
        acknowledged |= {(each.client_id, seq) for seq in each.acknowledged}
        doubtful |= {(each.client_id, seq) for seq in each.doubtful}
    return Finding(
        lost=len(acknowledged - found.keys()),
        twice=sum(count - 1 for count in found.values()),
        unknown=len(found.keys() - acknowledged - doubtful),
    )


def in_spark(spark: SparkSession, lake: Path) -> Counts:
    """The messages of the table, as Spark reads it."""
    from tieline.pipeline.lake import Lake

    grouped = Lake.open(lake).read(spark, "reading").groupBy("_publisher", "_seq").count()
    return Counter({(row["_publisher"], row["_seq"]): row["count"] for row in grouped.collect()})


def in_duckdb(lake: Path) -> Counts:
    """The same as DuckDB reads the files that count, knowing nothing of us but their list."""
    import duckdb

    from tieline.pipeline.lake import Lake

    opened = Lake.open(lake)
    directory = str(lake / "events" / "reading" / "**" / "*.parquet")
    # in a plain table every file counts, whoever lists them
    files = [directory] if opened.document.format == "parquet" else opened.files("events/reading")
    query = "SELECT _publisher, _seq, count(*) FROM read_parquet(?) GROUP BY ALL"
    with duckdb.connect() as database:
        return Counter({(who, seq): count for who, seq, count in database.execute(query, [files]).fetchall()})


def debris(lake: Path) -> list[Path]:
    """What a killed process left: files in the tables that are no tables, and anything where batches are made.

    In Delta tables files may lie that do not count, until they have come of age; what counts must be whole.
    """
    from tieline.pipeline.lake import Lake
    from tieline.pipeline.lake.delta.keeper import has_delta

    if has_delta(lake, {}):
        opened = Lake.open(lake)
        counted = [Path(file) for table in opened.tables() for file in opened.files(table.name)]
        return [path for path in counted if not path.is_file() or not path.stat().st_size]
    tables = [path for name in ("events", "quarantine", "duplicates") for path in (lake / name).glob("**/*")]
    strange = [path for path in tables if path.is_file() and (path.suffix != ".parquet" or not path.stat().st_size)]
    unfinished = [path for name in ("_staging", "_landing") for path in (lake / name).glob("*")]
    return [*strange, *unfinished]


def prove(spark: SparkSession, lake: Path, publishers: Iterable[Device], records: int) -> Metrics:
    """Everything that can be said about the tables after ``records`` were put into the log."""
    from tieline.pipeline.lake import Lake

    publishers = list(publishers)
    opened = Lake.open(lake)
    findings = [compared(found, publishers) for found in (in_spark(spark, lake), in_duckdb(lake))]
    landed = {table.name: table.rows for table in opened.status().tables}
    return {
        "acknowledged": float(sum(len(each.acknowledged) for each in publishers)),
        "doubtful": float(sum(len(each.doubtful) for each in publishers)),
        "lost": float(max(each.lost for each in findings)),
        "twice": float(max(each.twice for each in findings)),
        "unknown": float(max(each.unknown for each in findings)),
        "debris": float(len(debris(lake))),
        # every record of the log is in one table, and all of ours can be read
        "unaccounted": float(abs(records - sum(landed.values()))),
        "quarantined": float(landed["quarantine"]),
        "duplicates": float(landed["duplicates"]),
    }
