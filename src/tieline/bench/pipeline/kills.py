"""The processes between a publisher and the tables, killed one after the other at random moments, and started again."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from random import Random
from typing import ClassVar, Final

from tieline.bench.load.job import Failure
from tieline.bench.measure import family
from tieline.bench.pipeline.kills_proof import prove
from tieline.bench.pipeline.part import Part, Site
from tieline.bench.pipeline.processes import Cluster, command_line, driver_environment, our_path, our_program
from tieline.bench.pipeline.publishers import Crowd, Device
from tieline.bench.pipeline.sources import Station
from tieline.bench.process import Process
from tieline.bench.suite.results import Row, rows_of

WORKLOAD: Final = "crash"
PEER: Final = "log to tables"
#: What is killed; each comes once before one comes again.
VICTIMS: Final = ("driver", "executor", "broker", "log server")
#: Messages a second of each publisher, and offsets of one batch: small enough that batches are always in the making.
_RATE: Final = 100.0
_BATCH: Final = 2_000
#: How long to wait for a batch to land, for publishers to settle, for the rest to be ingested.
_PATIENCE_S: Final = 300.0
#: At the longest, between a sign of life and the kill, and between the kill and the restart.
_SOON_S: Final = 3.0
_AWAY_S: Final = 1.0
#: So often nobody waits for a sign of life: a process may be killed while it starts.
_RASH: Final = 0.25
_RASH_S: Final = 8.0
#: On the command lines of Python workers, and of JVMs.
_PYTHON: Final = b"pyspark"
_JAVA: Final = b"java"


@dataclass(frozen=True, slots=True, kw_only=True)
class Crash(Part):
    """So many kills; then everything comes to an end, and the tables are looked at."""

    name: ClassVar[str] = WORKLOAD
    kills: int
    #: Whether kills hit a standalone cluster with two workers, or Spark in one process.
    on_cluster: bool
    #: For what is killed, and when.
    seed: int = 1

    @property
    def steps(self) -> int:
        """The start, the kills, and the end."""
        return 2 + self.kills

    def rows(self) -> list[Row]:
        """One for all that was killed."""
        return rows_of(WORKLOAD, "random kills", self.name, [PEER])

    def obstacle(self) -> str:
        """The plain files are read by a library that knows nothing of us."""
        return "" if find_spec("duckdb") else "it needs duckdb: pip install 'tieline[bench]'"

    def measure(self, site: Site, rows: list[Row]) -> None:
        """What the tables hold after all of it."""
        site.folder.mkdir(parents=True, exist_ok=True)
        site.step("crash: starting broker, log server, publishers and Spark")
        began = time.monotonic()
        with under_kills(site.folder, self.seed, on_cluster=self.on_cluster) as running:
            for number in range(1, self.kills + 1):
                victim = running.next_victim()
                site.step(f"crash: kill {number} of {self.kills}: {victim}")
                running.kill(victim)
            site.step("crash: the rest is ingested, and the tables are compared")
            records = running.finish()
            metrics = prove(site.spark, running.lake, running.crowd.publishers, records)
        metrics |= {"kills": float(self.kills), "restarts": float(running.restarts)}
        rows[0].repetitions.append({**metrics, "wall_s": time.monotonic() - began})


class PipelineUnderKills:
    """Everything between publishers and tables, running, and killed bit by bit."""

    def __init__(self, folder: Path, seed: int, cluster: Cluster | None) -> None:
        self._random = Random(seed)
        self._folder = folder
        self._cluster = cluster
        self.station = Station(folder / "station")
        self.lake = folder / "lake"
        self.crowd = Crowd(
            [Device("one", 1), Device("two", 2), Device("forgetful", 1, forgets=True)],
            self.station.port,
            rate=_RATE,
        )
        self._driver = self._ingest("driver")
        self._deck: list[str] = []
        #: The last batch that had landed when something was killed.
        self._batch = -1
        #: Drivers that ended although they were not the ones that were killed.
        self.restarts = 0

    def start(self) -> None:
        """Start everything and wait for the first batch."""
        self.station.start()
        self.crowd.start()
        self._driver.start()
        self._await_batch()

    def next_victim(self) -> str:
        """What is to be killed now: a random moment has come."""
        random = self._random
        if not self._deck:
            self._deck = random.sample(VICTIMS, len(VICTIMS))
        victim = self._deck.pop()
        if random.random() < _RASH:
            time.sleep(random.uniform(0, _RASH_S))
        else:
            self._await_batch()
            time.sleep(random.uniform(0, _SOON_S))
        return victim

    def finish(self) -> int:
        """Let everything come to an end; returns how many records the log has."""
        from tieline.pipeline.source.client import LogClient

        self.crowd.settle(_PATIENCE_S)
        self._driver.stop()
        last = self._ingest("last ingest", "--once")
        try:
            last.start()
            if code := last.wait(_PATIENCE_S):
                raise Failure(f"the last ingest ended with exit code {code}: {last.said()}")
        finally:
            last.stop()
        return LogClient(self.station.url).offsets().latest

    def end(self) -> None:
        """End everything that was started."""
        self.crowd.end()
        self._driver.kill()
        self.station.stop()

    def kill(self, victim: str) -> None:
        """One kill; what was killed is running again when this returns."""
        self._revive()
        if victim == "executor":
            self._kill_executor()
        else:
            self._kill_and_start(victim)
        self._batch = self._landed()

    def _kill_and_start(self, victim: str) -> None:
        process, start = {
            "driver": (self._driver, self._driver.start),
            "broker": (self.station.broker, self.station.start_broker),
            "log server": (self.station.log_server, self.station.start_log_server),
        }[victim]
        if not process.is_running:
            raise Failure(f"the {victim} ended before it was killed: {process.said()}")
        process.kill()
        time.sleep(self._random.uniform(0, _AWAY_S))
        start()

    def _kill_executor(self) -> None:
        """An executor, or one of the Python processes that it, or the driver, runs; waits until there is one."""
        deadline = time.monotonic() + _PATIENCE_S
        while time.monotonic() < deadline:
            candidates = self._executors()
            # one may end between the look and the kill
            with suppress(ProcessLookupError, IndexError):
                os.kill(self._random.choice(candidates), signal.SIGKILL)
                return
            self._revive()
            time.sleep(0.1)
        raise Failure(f"no executor was there within {_PATIENCE_S:.0f} s: {self._driver.said()}")

    def _executors(self) -> list[int]:
        executors = self._cluster.executors() if self._cluster is not None else []
        above = [*executors, *([self._driver.pid] if self._driver.is_running else [])]
        lines = {pid: command_line(pid) for each in above for pid in family(each)[1:]}
        # the JVM below the driver has pyspark's jars on its command line
        return [*executors, *(pid for pid, line in lines.items() if _PYTHON in line and _JAVA not in line)]

    def _revive(self) -> None:
        """A driver whose query failed, because of another process's end, is started again."""
        if not self._driver.is_running:
            self.restarts += 1
            self._driver.kill()
            self._driver.start()

    def _await_batch(self) -> None:
        """Wait until ingest has landed a batch since the last kill."""
        deadline = time.monotonic() + _PATIENCE_S
        while self._landed() <= self._batch:
            self._revive()
            if time.monotonic() > deadline:
                raise Failure(f"no batch landed within {_PATIENCE_S:.0f} s: {self._driver.said()}")
            time.sleep(0.1)

    def _landed(self) -> int:
        """The number of the last batch that has landed."""
        from tieline.pipeline.lake.document import newest_state
        from tieline.pipeline.lake.layout import LakeError, Layout

        # a state may be replaced by the next one while it is read
        with suppress(LakeError):
            return newest_state(Layout(self.lake).state)[0].batch
        return self._batch

    def _ingest(self, name: str, *more: str) -> Process:
        master = "local[2]" if self._cluster is None else self._cluster.url
        command = our_program(
            "pipeline", "ingest", "--lake", str(self.lake), "--config", str(self.station.config), "--quiet",
            "--url", self.station.url, "--max-rows", str(_BATCH), "--master", master, *more,
        )  # fmt: skip
        log = self._folder / f"{name.replace(' ', '-')}.log"
        return Process(name, command, log, environment={**our_path(), **driver_environment()})


@contextmanager
def under_kills(folder: Path, seed: int, *, on_cluster: bool) -> Iterator[PipelineUnderKills]:
    """Everything running, and ended at the end of the block."""
    cluster = Cluster(folder / "cluster") if on_cluster else None
    made = PipelineUnderKills(folder, seed, cluster)
    try:
        if cluster is not None:
            cluster.start()
        made.start()
        yield made
    finally:
        made.end()
        if cluster is not None:
            cluster.stop()
