"""Part ``formats``: one log into tables of each kind, in turns, and what the driver holds while it becomes tables.

Plain files in a directory, Delta tables in a directory, and Delta tables behind a server of the S3 API on this machine,
which takes its share of the processors: what an object store costs in requests and waiting, and not how fast one is.

The driver is this process: it sees names of files and the keys of a batch, and no rows.  So batches of one size are
landed from a quarter of the log first, and then from all of it; the most memory that the process ever had is told by
the kernel.  Live heap is what the JVM still holds after a collection.  In a session on this machine the JVM also runs
the tasks, so that it is an upper bound.
"""

from __future__ import annotations

import gc
import http.client
import os
import secrets
import shutil
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final

from tieline.bench.load.job import Failure, Metrics
from tieline.bench.measure import Spent, least, memory_peak_bytes, new_memory_peak
from tieline.bench.peer import free_ports
from tieline.bench.pipeline.ingest import fill
from tieline.bench.pipeline.part import Part, Site
from tieline.bench.pipeline.readings import portions, readings
from tieline.bench.pipeline.sources import Station, publish, running
from tieline.bench.process import Process
from tieline.bench.suite.results import Row, rows_of
from tieline.conf.load import load

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tieline.pipeline.lake import Lake

WORKLOAD, DRIVER = "formats", "driver"
PLAIN, DELTA, S3 = "plain tables", "Delta tables", "Delta tables behind an S3 API"
FORMS: Final = (PLAIN, DELTA, S3)
QUARTER, ALL = "a quarter of the log", "all of it"
#: Batches in which all of the log lands while memory is looked at; a quarter of it has a quarter of them.
_BATCHES: Final = 16
#: Messages that are made at a time.
_PORTION: Final = 250_000
_HOST: Final = "127.0.0.1"
_PATIENCE_S: Final = 60.0
_MEGABYTE: Final = 1e6


@dataclass(frozen=True, slots=True, kw_only=True)
class Formats(Part):
    """A log that becomes tables of each kind."""

    name: ClassVar[str] = WORKLOAD
    records: int
    repetitions: int

    @property
    def steps(self) -> int:
        """Two fillings of the log, a warm-up, memory twice, and the turns."""
        return 5 + len(FORMS) * self.repetitions

    def rows(self) -> list[Row]:
        """One for each kind of tables, and one for each length of the log."""
        return [
            *rows_of(WORKLOAD, "log to tables", self.name, FORMS),
            *rows_of(DRIVER, "memory of the driver", self.name, (QUARTER, ALL)),
        ]

    def measure(self, site: Site, rows: list[Row]) -> None:
        """Rates and CPU by kind, and memory by length."""
        by_peer = {row.peer: row for row in rows}
        with running(site.folder / "station") as station, object_store(site.folder) as stored:
            forms = [form for form in FORMS if form != S3 or stored is not None]
            if stored is None:
                by_peer[S3].end("not run", "no moto_server is installed: make object-store installs one")
            lakes = Lakes(station, site.folder, stored or {})
            held: dict[str, Metrics] = {}
            published = 0
            for length, count in ((QUARTER, self.records // 4), (ALL, self.records)):
                site.step(f"formats: {count:,} messages through a broker")
                for part in portions(count - published, _PORTION):
                    publish(station, readings(published + part.start, len(part)))
                published = count
                if length == QUARTER:
                    site.step("formats: warm-up")
                    for form in forms:
                        fill(site.spark, station, lakes.made(form), count)
                site.step(f"formats: memory, {length}")
                held[length] = _held(site.spark, station, lakes.made(PLAIN), count, self.records // _BATCHES)
            times: dict[str, list[Spent]] = {form: [] for form in forms}
            for repetition in range(self.repetitions):
                for form in forms:
                    site.step(f"formats: {form} ({repetition + 1})")
                    times[form].append(fill(site.spark, station, lakes.made(form), self.records))
        for length, metrics in held.items():
            by_peer[length].repetitions.append(metrics)
        by_peer[ALL].repetitions[0]["times_quarter"] = held[ALL]["driver_mb"] / held[QUARTER]["driver_mb"]
        plain = least(times[PLAIN])
        for form, found in times.items():
            best = least(found)
            # the clock of a busy machine and its processors are disturbed at different moments
            cpu_s, plain_cpu_s = (min(each.cpu_s for each in some) for some in (found, times[PLAIN]))
            by_peer[form].repetitions.append({
                "rate": self.records / best.wall_s,
                "cpu_us_row": cpu_s / self.records * 1e6,
                "wall_s": best.wall_s,
                "times_plain": best.wall_s / plain.wall_s,
                "cpu_times_plain": cpu_s / plain_cpu_s,
            })  # fmt: skip


class Lakes:
    """Makes empty lakes of each kind, each in a place of its own."""

    def __init__(self, station: Station, folder: Path, stored: Mapping[str, str]) -> None:
        self._settings = load(station.config)
        self._folder = folder
        self._options = dict(stored)

    def made(self, form: str) -> Lake:
        """An empty lake of this kind, at a place that no other one has."""
        from tieline.pipeline.lake import Lake

        name = f"lake-{secrets.token_hex(4)}"
        if form == PLAIN:
            return Lake.create(self._folder / name, self._settings)
        if form == DELTA:
            return Lake.create(self._folder / name, self._settings, form="delta")
        _make_bucket(self._options["aws_endpoint_url"], name)
        return Lake.create(f"s3://{name}/lake", self._settings, form="delta", options=self._options)


def _make_bucket(endpoint: str, name: str) -> None:
    with closing(http.client.HTTPConnection(endpoint.rpartition("/")[2], timeout=_PATIENCE_S)) as store:
        store.request("PUT", f"/{name}")
        if (answer := store.getresponse()).status != HTTPStatus.OK:
            raise Failure(f"the S3 server made no bucket: {answer.status} {answer.reason}")


@contextmanager
def object_store(folder: Path) -> Iterator[dict[str, str] | None]:
    """A server of the S3 API that ends with the block: what a lake has to be told; None if none is installed."""
    program = shutil.which("moto_server", path=os.pathsep.join([str(Path(".s3/bin").resolve()), os.environ["PATH"]]))
    if program is None:
        yield None
        return
    (port,) = free_ports(1)
    server = Process("S3 server", [program, "-H", _HOST, "-p", str(port)], folder / "s3.log")
    server.start()
    try:
        server.wait_until_ready("Running on")
        yield {
            "aws_endpoint_url": f"http://{_HOST}:{port}",
            "aws_allow_http": "true",
            "aws_region": "us-east-1",
            "aws_access_key_id": "bench",
            "aws_secret_access_key": "bench",
        }
    finally:
        server.stop()


def _held(spark: SparkSession, station: Station, lake: Lake, records: int, batch: int) -> Metrics:
    """The most memory that this process has while a log lands in batches of one size, and the JVM's live heap then."""
    gc.collect()
    new_memory_peak()
    fill(spark, station, lake, records, max_rows=batch)
    peak = memory_peak_bytes()
    jvm = spark._jvm  # noqa: SLF001 - pyspark has no other way to it
    assert jvm is not None
    jvm.System.gc()
    runtime = jvm.Runtime.getRuntime()
    return {"driver_mb": peak / _MEGABYTE, "heap_mb": (runtime.totalMemory() - runtime.freeMemory()) / _MEGABYTE}
