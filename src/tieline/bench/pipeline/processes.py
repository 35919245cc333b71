"""Our own programs, run by this very interpreter, and a Spark cluster on this machine."""

from __future__ import annotations

import http.client
import json
import os
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import Final

import tieline
from tieline.bench.load.job import Failure
from tieline.bench.measure import family
from tieline.bench.peer import free_ports
from tieline.bench.process import Process, until


def our_program(*words: str) -> list[str]:
    """The command line of ``tieline WORDS``, run by this interpreter."""
    return [sys.executable, "-m", "tieline", *words]


def our_path() -> dict[str, str]:
    """What the environment needs for the program to be this very one, however it was found here."""
    assert tieline.__file__ is not None
    ours = str(Path(tieline.__file__).resolve().parent.parent)
    paths = [each for each in os.environ.get("PYTHONPATH", "").split(os.pathsep) if each]
    return {"PYTHONPATH": os.pathsep.join(paths if ours in paths else [ours, *paths])}


_HOST: Final = "127.0.0.1"
_START_S: Final = 120.0
_END_S: Final = 60.0
_ASK_S: Final = 5.0
_MASTER: Final = "org.apache.spark.deploy.master.Master"
_WORKER: Final = "org.apache.spark.deploy.worker.Worker"
#: What the JVM of an executor is called on its command line.
_EXECUTOR: Final = b"CoarseGrainedExecutorBackend"
_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})
#: Short-lived JVMs with little to do: the quick compiler, the collector without threads.
_JAVA_OPTIONS: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


class Cluster:
    """A master and its workers, which start an executor each for whoever asks."""

    def __init__(
        self, folder: Path, *, workers: int = 2, memory: str = "1100m", more: Mapping[str, str] = _NOTHING
    ) -> None:
        """``more`` is what the environment of its processes has besides."""
        folder.mkdir(parents=True, exist_ok=True)
        self._port, self._page, *pages = free_ports(2 + workers)
        environment = {**_environment(), **more, "SPARK_WORKER_DIR": str(folder / "work"), "SPARK_LOG_DIR": str(folder)}
        place = ("--host", _HOST, "--port", str(self._port), "--webui-port", str(self._page))
        self._master = Process("Spark master", [_launcher(), _MASTER, *place], folder / "master.log",
                               environment=environment)  # fmt: skip
        self._workers = [
            Process(
                f"Spark worker {number}",
                [_launcher(), _WORKER, "--host", _HOST, "--webui-port", str(page), "-c", "1", "-m", memory, self.url],
                folder / f"worker-{number}.log",
                environment=environment,
            )
            for number, page in enumerate(pages)
        ]

    @property
    def url(self) -> str:
        """The address of the master, as ``--master`` takes it."""
        return f"spark://{_HOST}:{self._port}"

    def start(self) -> None:
        """Start everything and wait until all workers have announced themselves."""
        self._master.start()
        until("a Spark master answers", _START_S, lambda: self._alive() >= 0)
        for worker in self._workers:
            worker.start()
        count = len(self._workers)
        until(f"{count} Spark workers are there", _START_S, lambda: self._alive() == count)

    def stop(self) -> None:
        """End everything, executors too."""
        for process in (*self._workers, self._master):
            process.kill()

    @property
    def workers(self) -> list[Process]:
        """The workers, each of which has an executor below it while somebody asks for one."""
        return self._workers

    @property
    def processes(self) -> list[Process]:
        """The master and its workers, without the executors that these start."""
        return [self._master, *self._workers]

    def executors(self) -> list[int]:
        """The process ids of the executors' JVMs."""
        below = [pid for worker in self._workers if worker.is_running for pid in family(worker.pid)[1:]]
        return [pid for pid in below if _EXECUTOR in command_line(pid)]

    def _alive(self) -> int:
        """How many workers the master knows; -1 while it does not answer."""
        if not self._master.is_running:
            raise Failure(f"the Spark master ended: {self._master.said()}")
        with suppress(OSError, ValueError, http.client.HTTPException):
            connection = http.client.HTTPConnection(_HOST, self._page, timeout=_ASK_S)
            with closing(connection):
                connection.request("GET", "/json/")
                return int(json.loads(connection.getresponse().read())["aliveworkers"])
        return -1


@contextmanager
def cluster(folder: Path, *, workers: int = 2, more: Mapping[str, str] = _NOTHING) -> Iterator[Cluster]:
    """A cluster that ends with the block."""
    made = Cluster(folder, workers=workers, more=more)
    try:
        made.start()
        yield made
    finally:
        made.stop()


def command_line(pid: int) -> bytes:
    """How a process was started; nothing if it has ended."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


def kill_tree(*processes: Process) -> None:
    """End processes and everything below them at once, as a machine that stops does; returns when nothing is left.

    Python workers of Spark are in groups of their own, and would live on for a moment.
    """
    pids = [pid for process in processes if process.is_running for pid in family(process.pid)]
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    for process in processes:
        process.kill()
    until("all killed processes are gone", _END_S, lambda: not any(map(command_line, pids)))


def driver_environment() -> dict[str, str]:
    """What a driver needs to be reached by executors on this machine."""
    return {"SPARK_LOCAL_IP": _HOST}


def _launcher() -> str:
    found = find_spec("pyspark")
    if found is None or found.origin is None:
        raise Failure("Spark is not installed: pip install 'tieline[pipeline]'")
    return str(Path(found.origin).parent / "bin" / "spark-class")


def _environment() -> dict[str, str]:
    from tieline.pipeline.java import find_java

    return {
        "JAVA_HOME": str(find_java().launcher),
        "SPARK_LOCAL_IP": _HOST,
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": _JAVA_OPTIONS,
    }
