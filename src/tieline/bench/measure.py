"""What a process, or a piece of work, has cost: CPU time and memory, read from the kernel, descendants included."""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TypeVar

_PROC = Path("/proc")
_CPUCLOCK_SCHED = 2


def family(pid: int) -> list[int]:
    """The process and everything below it, parents first."""
    children: dict[int, list[int]] = {}
    for entry in _PROC.iterdir():
        if entry.name.isdigit():
            parent = _parent(int(entry.name))
            if parent:
                children.setdefault(parent, []).append(int(entry.name))
    found = [pid]
    for member in found:
        found.extend(children.get(member, ()))
    return found


def _parent(pid: int) -> int:
    try:
        text = (_PROC / str(pid) / "stat").read_text()
    except OSError:  # gone between listing and reading
        return 0
    # The command name stands in parentheses and may itself hold spaces and parentheses.
    return int(text.rpartition(")")[2].split()[1])


def cpu_ns(pids: list[int]) -> int:
    """CPU time used by the processes, user and system, finished threads included."""
    return sum(_cpu_clock_ns(pid) for pid in pids)


def _cpu_clock_ns(pid: int) -> int:
    # The clock that clock_getcpuclockid(3) names: nanoseconds, current even for a thread that runs right now,
    # where /proc/PID/stat counts in ticks of 10 ms and /proc/PID/schedstat knows one thread only.
    try:
        return time.clock_gettime_ns((~pid << 3) | _CPUCLOCK_SCHED)
    except OSError:
        return 0


def memory_bytes(pids: list[int]) -> int:
    """Memory of the processes, pages shared with others counted by their share."""
    return sum(_memory_kb(pid) for pid in pids) * 1024


def _memory_kb(pid: int) -> int:
    for name, key in (("smaps_rollup", "Pss:"), ("status", "VmRSS:")):
        try:
            lines = (_PROC / str(pid) / name).read_text().splitlines()
        except OSError:
            continue
        for line in lines:
            if line.startswith(key):
                return int(line.split()[1])
    return 0


def new_memory_peak() -> None:
    """Let the kernel forget the most memory that this process ever had."""
    (_PROC / "self" / "clear_refs").write_text("5")


def memory_peak_bytes() -> int:
    """The most memory that this process has had since then, pages shared with others included."""
    lines = (_PROC / "self" / "status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) * 1024


def raise_open_files() -> int:
    """Allow this process and those it starts as many open files as the system permits; returns how many."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard if hard != resource.RLIM_INFINITY else 1 << 20


def busy_s() -> float:
    """CPU time that the whole machine has spent working, in seconds since it started."""
    user, nice, system, _idle, _wait, interrupt, soft = map(int, _first_line("stat").split()[1:8])
    return (user + nice + system + interrupt + soft) / os.sysconf("SC_CLK_TCK")


def _first_line(name: str) -> str:
    with (_PROC / name).open() as lines:
        return lines.readline()


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """What was spent since a meter was started."""

    broker_s: float
    generator_s: float
    machine_s: float
    wall_s: float

    def shares(self) -> dict[str, float]:
        """Cores kept busy by the broker, by the load generator and by everybody else."""
        others_s = max(0.0, self.machine_s - self.broker_s - self.generator_s)
        return {
            "broker_cores": self.broker_s / self.wall_s,
            "generator_cores": self.generator_s / self.wall_s,
            "other_cores": others_s / self.wall_s,
        }


class CostMeter:
    """CPU of the broker, of this process and of the machine, and wall time, since the meter was made."""

    def __init__(self, *pids: int) -> None:
        self._broker = [member for pid in pids for member in family(pid)]
        self._began = self._now()

    def read(self) -> Costs:
        """The costs so far."""
        broker, generator, machine, wall = (now - then for now, then in zip(self._now(), self._began, strict=True))
        return Costs(broker_s=broker, generator_s=generator, machine_s=machine, wall_s=max(wall, 1e-9))

    def _now(self) -> tuple[float, float, float, float]:
        broker_s = cpu_ns(self._broker) / 1e9
        return broker_s, time.process_time(), busy_s(), time.perf_counter()


T = TypeVar("T")


class Spent(NamedTuple):
    """What a piece of work took, in seconds."""

    wall_s: float
    cpu_s: float


def spent(work: Callable[[], T]) -> tuple[T, Spent]:
    """Do something, and say what it took.

    The JVM, its Python workers, brokers and log servers are all below this process, so all of them count.
    """
    cpu, wall = _cpu_s(), time.perf_counter()
    done = work()
    return done, Spent(time.perf_counter() - wall, _cpu_s() - cpu)


def least(found: Iterable[Spent]) -> Spent:
    """The repetition that was disturbed least."""
    return min(found, key=lambda each: each.wall_s)


def _cpu_s() -> float:
    return cpu_ns(family(os.getpid())) / 1e9
