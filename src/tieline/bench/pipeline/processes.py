"""Programs that a benchmark starts, waits for and ends by their process ids; a Spark cluster among them."""

from __future__ import annotations

import http.client
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import tieline
from tieline.bench.load.job import Failure
from tieline.bench.measure import family
from tieline.bench.peer import free_ports

#: How long a program may take to say that it is ready, and to end when it is asked to.
READY_S: Final = 120.0
_END_S: Final = 60.0
_TAIL: Final = 600


class Process:
    """A program in a session of its own; it can be started again after it has ended."""

    def __init__(
        self, name: str, command: Sequence[str], log: Path, *, environment: Mapping[str, str] | None = None
    ) -> None:
        self.name = name
        self._command = list(command)
        self._log = log
        self._environment = dict(environment or {})
        self._running: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """The id of the process, which is that of its group too."""
        if self._running is None:
            raise Failure(f"the {self.name} is not running")
        return self._running.pid

    @property
    def is_running(self) -> bool:
        """Whether it has been started and has not ended."""
        return self._running is not None and self._running.poll() is None

    def start(self) -> None:
        """Start it, and do not wait for anything."""
        with self._log.open("ab") as errors:
            self._running = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                env={**os.environ, **self._environment},
                # Ctrl-C reaches the benchmark, which then ends its programs in order
                start_new_session=True,
            )

    def wait_until_ready(self, word: str) -> str:
        """Wait for the line that says that it is ready."""
        assert self._running is not None
        assert self._running.stdout is not None
        readable, _, _ = select.select([self._running.stdout], [], [], READY_S)
        line = self._running.stdout.readline().decode(errors="replace") if readable else ""
        if word not in line:
            raise Failure(f"the {self.name} did not start: {line.strip()} {self.said()}")
        return line

    def wait(self, seconds: float) -> int:
        """Its exit code; a failure if it takes longer."""
        assert self._running is not None
        try:
            return self._running.wait(seconds)
        except subprocess.TimeoutExpired:
            raise Failure(f"the {self.name} did not end within {seconds:.0f} s: {self.said()}") from None

    def kill(self) -> None:
        """Kill it and all that it started, without a word."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """Ask it to end; kill what is left then."""
        if self.is_running:
            assert self._running is not None
            self._running.terminate()
            with suppress(subprocess.TimeoutExpired):
                self._running.wait(_END_S)
        self._end(signal.SIGKILL)

    def said(self) -> str:
        """The last that it said about errors."""
        with suppress(OSError):
            return self._log.read_text("utf-8", "replace").strip()[-_TAIL:]
        return ""

    def _end(self, number: signal.Signals) -> None:
        running, self._running = self._running, None
        if running is None:
            return
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(running.pid, number)
        running.wait()
        if running.stdout is not None:
            running.stdout.close()


def our_program(*words: str) -> list[str]:
    """The command line of ``tieline WORDS``, run by this interpreter."""
    return [sys.executable, "-m", "tieline", *words]


def our_path() -> dict[str, str]:
    """What the environment needs for the program to be this very one, however it was found here."""
    assert tieline.__file__ is not None
    ours = str(Path(tieline.__file__).resolve().parent.parent)
    paths = [each for each in os.environ.get("PYTHONPATH", "").split(os.pathsep) if each]
    return {"PYTHONPATH": os.pathsep.join(paths if ours in paths else [ours, *paths])}


def until(what: str, seconds: float, holds: Callable[[], bool]) -> None:
    """Look again and again, for so long, whether something holds; a failure if it does not."""
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            raise Failure(f"after {seconds:.0f} s still not: {what}")
        time.sleep(0.05)


_HOST: Final = "127.0.0.1"
_START_S: Final = 120.0
_ASK_S: Final = 5.0
_MASTER: Final = "org.apache.spark.deploy.master.Master"
_WORKER: Final = "org.apache.spark.deploy.worker.Worker"
#: What the JVM of an executor is called on its command line.
_EXECUTOR: Final = b"CoarseGrainedExecutorBackend"
#: Short-lived JVMs with little to do: the quick compiler, the collector without threads.
_JAVA_OPTIONS: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


class Cluster:
    """A master and its workers, which start an executor each for whoever asks."""

    def __init__(self, folder: Path, *, workers: int = 2, memory: str = "1100m") -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._port, self._page, *pages = free_ports(2 + workers)
        environment = {**_environment(), "SPARK_WORKER_DIR": str(folder / "work"), "SPARK_LOG_DIR": str(folder)}
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
def cluster(folder: Path, *, workers: int = 2) -> Iterator[Cluster]:
    """A cluster that ends with the block."""
    made = Cluster(folder, workers=workers)
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
