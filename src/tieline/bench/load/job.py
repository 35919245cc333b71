"""What the load generator can be asked to do, of whom and how it answers, and the process that does it.

That process is apart from the one that shows progress: its CPU time is its own.  One request at a time travels over a
pipe; a broker that makes the generator hang costs a generator, not the run.
"""

from __future__ import annotations

import gc
import math
import multiprocessing
import signal
from collections.abc import Sequence
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from typing import Protocol, Self

from tieline.bench.machine import Disk


class Failure(Exception):
    """A peer did not do the work; the text says what happened."""


class TurnedDown(Failure):
    """A connection or subscription was turned down."""


class Lost(Failure):
    """Fewer messages arrived than were sent, and nothing more is coming."""


class Stalled(Failure):
    """The broker stopped making progress."""


class Garbled(Failure):
    """What arrived is not what was sent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """One running broker, as the load generator sees it."""

    host: str
    port: int
    pid: int
    #: Port of the TLS listener, absent when the peer offers none here.
    tls_port: int | None = None
    #: Certificate authority to trust on the TLS port.
    ca_file: str | None = None
    #: What the broker keeps its messages on, when it keeps them.
    disk: Disk | None = None
    #: Where publishers connect, if that is another broker than the subscribers'.
    inlet: int | None = None
    #: The processes of all further brokers that messages pass: what they cost counts, too.
    others: tuple[int, ...] = ()

    @property
    def entrance(self) -> Endpoint:
        """The same as publishers see it."""
        return self if self.inlet is None else replace(self, port=self.inlet)

    @property
    def pids(self) -> tuple[int, ...]:
        """The processes whose CPU the work costs."""
        return (self.pid, *self.others)


#: Numbers by name; the names are explained in ``tieline.bench.metrics``.
Metrics = dict[str, float]


class Job(Protocol):
    """One measurement; a frozen dataclass, because it travels to the generator's process."""

    @property
    def patience_s(self) -> float:
        """After so long the measurement has failed."""

    def run(self, at: Endpoint) -> Metrics:
        """Do the work; raises ``Failure`` if the broker does not."""


def quantile(ordered: Sequence[int], q: float) -> int:
    """The smallest value that at least a share ``q`` of the sample does not exceed."""
    return ordered[max(0, math.ceil(q * len(ordered)) - 1)]


# A fresh interpreter, not a fork: the parent has threads, and its garbage would be the child's.
_SPAWN = multiprocessing.get_context("spawn")
_FAREWELL_S = 2.0


class Generator:
    """A handle on the generator's process, which is started on first use and again after a failure."""

    def __init__(self) -> None:
        self._process: multiprocessing.process.BaseProcess | None = None
        self._pipe: Connection | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def run(self, job: Job, at: Endpoint) -> Metrics:
        """Have the job done; raises ``Failure`` with the generator's words."""
        pipe = self._start()
        pipe.send((job, at))
        if not pipe.poll(job.patience_s):
            self.stop()
            raise Stalled(f"no result within {job.patience_s:.0f} s")
        try:
            answer: Metrics | str = pipe.recv()
        except EOFError as error:
            self.stop()
            raise Failure("the load generator died") from error
        if isinstance(answer, str):
            raise Failure(answer)
        return answer

    def stop(self) -> None:
        """End the process; harmless when there is none."""
        process, self._process = self._process, None
        if self._pipe is not None:
            self._pipe.close()
            self._pipe = None
        if process is not None:
            process.terminate()
            process.join(_FAREWELL_S)
            if process.is_alive():
                process.kill()
                process.join()

    def _start(self) -> Connection:
        if self._pipe is None:
            ours, theirs = _SPAWN.Pipe()
            self._process = _SPAWN.Process(target=_serve, args=(theirs,), daemon=True)
            self._process.start()
            theirs.close()
            self._pipe = ours
        return self._pipe


def _serve(pipe: Connection) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's business; it ends us in order
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    while True:
        try:
            job, at = pipe.recv()
        except EOFError:
            return
        pipe.send(_attempt(job, at))


def _attempt(job: Job, at: Endpoint) -> Metrics | str:
    gc.collect()
    gc.disable()  # a collection amid ten thousand sockets would look like the broker's latency
    try:
        return job.run(at)
    except Failure as failure:
        return f"{type(failure).__name__.lower()}: {failure}" if type(failure) is not Failure else str(failure)
    except OSError as error:
        return f"connection: {error}"
    finally:
        gc.enable()
