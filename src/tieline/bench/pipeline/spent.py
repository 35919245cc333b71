"""What a piece of work took: time on the clock, and processor time of this process and everything it started."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from typing import NamedTuple, TypeVar

from tieline.bench.measure import cpu_ns, family

T = TypeVar("T")


class Spent(NamedTuple):
    """Seconds."""

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
