"""What this process may use of the machine: processors and memory, as containers limit them."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path


def cores() -> int:
    """Processors that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def memory_bytes(group: Path = Path("/sys/fs/cgroup/memory.max")) -> int:
    """Memory of the machine, or of the container if that has less."""
    whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with suppress(OSError, ValueError):  # no such file, or "max"
        return min(whole, int(group.read_text()))
    return whole
