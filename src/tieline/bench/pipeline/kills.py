"""The processes between a publisher and the tables: killed at random moments, one or all, stopped, started again."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from random import Random
from typing import ClassVar, Final, NamedTuple, get_args

from tieline.bench.load.job import Failure, Metrics
from tieline.bench.measure import family
from tieline.bench.pipeline.kills_proof import prove
from tieline.bench.pipeline.part import Part, Site
from tieline.bench.pipeline.power import environment, lose
from tieline.bench.pipeline.processes import (
    Cluster,
    command_line,
    driver_environment,
    kill_tree,
    our_path,
    our_program,
)
from tieline.bench.pipeline.publishers import Crowd, Device
from tieline.bench.pipeline.sources import Station
from tieline.bench.process import Process, until
from tieline.bench.suite.results import Row, rows_of
from tieline.pipeline.lake.delta import book
from tieline.pipeline.lake.delta.book import Opened
from tieline.pipeline.lake.delta.store import Store
from tieline.pipeline.lake.document import Format, newest_state
from tieline.pipeline.lake.layout import LakeError, Layout

WORKLOAD: Final = "kills"
TOGETHER: Final = "all of them"
#: What happens; each comes once before one comes again.
VICTIMS: Final = (
    "driver",
    "driver stands still",
    "executor",
    "executor stands still",
    "broker",
    "log server",
    "machine",
)
#: The same on a cluster.
CLUSTER_VICTIMS: Final = (*VICTIMS, "worker with its executor")
#: Messages a second of each publisher, and offsets of one batch: small enough that batches are always in the making.
_RATE: Final = 100.0
_BATCH: Final = 2_000
#: Batches between two merges of small files, which are interrupted as batches are.
_COMPACT: Final = 5
#: How long to wait for a batch to land, for publishers to settle, for the rest to be ingested.
_PATIENCE_S: Final = 300.0
_LOOK_S: Final = 0.2
#: At the longest, between a sign of life and the kill, and between the kill and the restart.
_SOON_S: Final = 3.0
_AWAY_S: Final = 1.0
#: So often nobody waits for a sign of life: a process may be killed while it starts.
_RASH: Final = 0.25
_RASH_S: Final = 8.0
#: An executor is given up when it has said nothing for so long; one that stands still does so for up to twice as long.
_GIVEN_UP_S: Final = 12.0
#: What a driver says that another one has overtaken.
_TOLD: Final = "somebody else fills this lake"
#: On the command lines of Python workers, and of JVMs.
_PYTHON: Final = b"pyspark"
_JAVA: Final = b"java"


class KillCase(NamedTuple):
    """Where kills hit: tables of which format, and Spark in one process or on a standalone cluster with two workers."""

    form: Format
    on_cluster: bool

    @property
    def title(self) -> str:
        """What it is called."""
        return f"{'plain' if self.form == 'parquet' else 'Delta'} tables, {'a cluster' if self.on_cluster else 'local'}"


EVERYWHERE: Final = tuple(KillCase(form, on_cluster) for on_cluster in (False, True) for form in get_args(Format))


@dataclass(frozen=True, slots=True, kw_only=True)
class Kills(Part):
    """So many kills, shared by some places; at each, everything comes to an end and the tables are looked at."""

    name: ClassVar[str] = WORKLOAD
    kills: int
    places: tuple[KillCase, ...] = EVERYWHERE
    #: For what is killed, and when.
    seed: int = 1

    @property
    def steps(self) -> int:
        """The start and the end of each place, and the kills."""
        return 2 * len(self.places) + self.kills

    def rows(self) -> list[Row]:
        """One for each place, and one for all kills."""
        return rows_of(WORKLOAD, "random kills", self.name, [*(place.title for place in self.places), TOGETHER])

    def obstacle(self) -> str:
        """The plain files are read by a library that knows nothing of us."""
        return "" if find_spec("duckdb") else "it needs duckdb: pip install 'tieline[bench]'"

    def measure(self, site: Site, rows: list[Row]) -> None:
        """What the tables hold after all of it."""
        for number, (place, row) in enumerate(zip(self.places, rows, strict=False)):
            # what does not divide goes to the first ones
            kills = self.kills // len(self.places) + (number < self.kills % len(self.places))
            row.repetitions.append(self._at(place, kills, self.seed + number, site))
        found = [row.repetitions[0] for row in rows[:-1]]
        rows[-1].repetitions.append({name: sum(each[name] for each in found) for name in found[0]})

    def _at(self, place: KillCase, kills: int, seed: int, site: Site) -> Metrics:
        site.step(f"kills: {place.title}: starting broker, log server, publishers and Spark")
        began = time.monotonic()
        with under_kills(site.folder / f"{place.form}-{place.on_cluster}", seed, place) as running:
            for number in range(1, kills + 1):
                victim = running.next_victim()
                site.step(f"kills: {place.title}: {number} of {kills}: {victim}")
                running.kill(victim)
            site.step(f"kills: {place.title}: the rest is ingested, and the tables are compared")
            records = running.finish()
            metrics = prove(site.spark, running.lake, running.crowd.publishers, records)
        metrics |= {"kills": float(kills), "restarts": float(running.restarts), "struck": float(running.struck)}
        metrics["told"] = float(running.told)
        return {**metrics, "wall_s": time.monotonic() - began}


class PipelineUnderKills:
    """Everything between publishers and tables, running, and killed bit by bit."""

    def __init__(self, folder: Path, seed: int, form: Format, cluster: Cluster | None) -> None:
        self._random = Random(seed)
        self._folder = folder
        self._form: Format = form
        self._cluster = cluster
        self._victims = VICTIMS if cluster is None else CLUSTER_VICTIMS
        self._journal = journal_of(folder)
        self._book: Opened | None = None
        self.station = Station(folder / "station")
        self.lake = folder / "lake"
        self.crowd = Crowd(
            [Device("one", 1), Device("two", 2), Device("forgetful", 1, forgets=True)],
            self.station.port,
            rate=_RATE,
        )
        self._driver = self._ingest("driver")
        self._replacement = self._ingest("replacement", on_cluster=False)
        self._deck: list[str] = []
        #: The last batch that had landed when something was killed.
        self._batch = -1
        #: Drivers that ended although they were not the ones that were killed.
        self.restarts = 0
        #: Files that a loss of power has hit.
        self.struck = 0
        #: Of two drivers that filled one lake, those that ended because they were told so.
        self.told = 0

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
            self._deck = random.sample(self._victims, len(self._victims))
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
        self._replacement.kill()
        self.station.stop()

    def kill(self, victim: str) -> None:
        """One kill; what was killed is running again when this returns."""
        self._revive()
        if victim == "executor":
            self._signal_executor(signal.SIGKILL)
        elif victim == "executor stands still":
            self._let_executor_stand_still()
        elif victim == "driver stands still":
            self._let_driver_stand_still()
        elif victim == "machine":
            self._stop_machine()
        else:
            self._kill_and_start(victim)
        self._batch = self._landed()

    def _kill_and_start(self, victim: str) -> None:
        if victim == "worker with its executor":
            assert self._cluster is not None
            process = self._random.choice(self._cluster.workers)
            start = process.start
        else:
            process, start = {
                "driver": (self._driver, self._driver.start),
                "broker": (self.station.broker, self.station.start_broker),
                "log server": (self.station.log_server, self.station.start_log_server),
            }[victim]
        if not process.is_running:
            raise Failure(f"the {victim} ended before it was killed: {process.said()}")
        kill_tree(process)
        time.sleep(self._random.uniform(0, _AWAY_S))
        start()

    def _let_executor_stand_still(self) -> None:
        """It is given up meanwhile or not, and goes on where it was."""
        stopped = self._signal_executor(signal.SIGSTOP)
        try:
            time.sleep(self._random.uniform(0, 2 * _GIVEN_UP_S))
        finally:
            _let_go_on(stopped)

    def _let_driver_stand_still(self) -> None:
        """It goes on where it was; where no lock keeps others away, another one has taken its part meanwhile.

        That other one is on this machine, because the one that stands still keeps the executors that it has.
        """
        stopped = family(self._driver.pid)
        for pid in stopped:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)
        try:
            if self._form == "parquet":
                time.sleep(self._random.uniform(0, 2 * _GIVEN_UP_S))
                return
            self._replace()
        finally:
            _let_go_on(stopped)
        both = (self._driver, self._replacement)
        until("of two drivers one is told", _PATIENCE_S, lambda: not all(each.is_running for each in both))
        self.told += sum(not each.is_running and _TOLD in each.said() for each in both)
        # what the other one is making lands, and the place is for one again
        for each in both:
            each.stop()
        self._driver.start()

    def _replace(self) -> None:
        """Start another driver, and wait until it has landed a batch."""
        before = self._landed()
        self._replacement.start()

        def has_landed() -> bool:
            if not self._replacement.is_running:
                raise Failure(f"the replacement of the driver ended: {self._replacement.said()}")
            return self._landed() > before

        until("the replacement of the driver lands a batch", _PATIENCE_S, has_landed)

    def _stop_machine(self) -> None:
        """Everything ends at once, and what nobody had synchronised of the tables is lost."""
        cluster = [] if self._cluster is None else self._cluster.processes
        kill_tree(self._driver, self.station.log_server, self.station.broker, *cluster)
        self.struck += lose(self.lake, self._journal, self._random)
        self._book = None
        if self._cluster is not None:
            self._cluster.start()
        self.station.start()
        self._driver.start()

    def _signal_executor(self, number: signal.Signals) -> list[int]:
        """An executor with its Python processes, or one of these; waits until there is one. Whom it has reached."""
        deadline = time.monotonic() + _PATIENCE_S
        while time.monotonic() < deadline:
            # one may end between the look and the signal
            with suppress(ProcessLookupError, IndexError):
                chosen = self._random.choice(self._executors())
                reached = family(chosen) if number == signal.SIGSTOP else [chosen]
                for pid in reached:
                    os.kill(pid, number)
                return reached
            self._revive()
            time.sleep(_LOOK_S)
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
            time.sleep(_LOOK_S)

    def _landed(self) -> int:
        """The number of the last batch that has landed."""
        if self._form == "delta":
            # whoever only looks does not mend; a page may be removed, and a commit be torn, while it is read
            with suppress(Exception):
                self._book = book.read(Store(self.lake, {}), self._book)
                return self._book.page.state.batch
            return self._batch
        # a state may be replaced by the next one while it is read
        with suppress(LakeError):
            return newest_state(Layout(self.lake).state)[0].batch
        return self._batch

    def _ingest(self, name: str, *more: str, on_cluster: bool = True) -> Process:
        master = self._cluster.url if self._cluster is not None and on_cluster else "local[2]"
        command = our_program(
            "pipeline", "ingest", "--lake", str(self.lake), "--config", str(self.station.config), "--quiet",
            "--url", self.station.url, "--max-rows", str(_BATCH), "--master", master, "--compact-every", str(_COMPACT),
            *(("--delta",) if self._form == "delta" else ()),
            "--conf", f"spark.network.timeout={_GIVEN_UP_S:.0f}s",
            "--conf", f"spark.network.timeoutInterval={_GIVEN_UP_S / 4:.0f}s",
            "--conf", f"spark.executor.heartbeatInterval={_GIVEN_UP_S / 4:.0f}s", *more,
        )  # fmt: skip
        log = self._folder / f"{name.replace(' ', '-')}.log"
        return Process(name, command, log, environment={**with_journal(self._folder), **driver_environment()})


def _let_go_on(stopped: Iterable[int]) -> None:
    for pid in stopped:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


def journal_of(folder: Path) -> Path:
    """Where the programs of a place write down what they synchronise."""
    return folder / "synced"


def with_journal(folder: Path) -> dict[str, str]:
    """The environment of programs that keep the journal."""
    kept, ours = environment(journal_of(folder)), our_path()
    return {**ours, **kept, "PYTHONPATH": os.pathsep.join([kept["PYTHONPATH"], ours["PYTHONPATH"]])}


@contextmanager
def under_kills(folder: Path, seed: int, place: KillCase) -> Iterator[PipelineUnderKills]:
    """Everything running, and ended at the end of the block."""
    folder.mkdir(parents=True, exist_ok=True)
    cluster = Cluster(folder / "cluster", more=with_journal(folder)) if place.on_cluster else None
    made = PipelineUnderKills(folder, seed, place.form, cluster)
    try:
        if cluster is not None:
            cluster.start()
        made.start()
        yield made
    finally:
        made.end()
        if cluster is not None:
            cluster.stop()
