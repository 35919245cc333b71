"""Where and on what the numbers were taken: processor, system, versions, and the disk below a directory."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import sysconfig
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from tieline.native import is_compiled
from tieline.version import __version__

_GIT_S = 5


def describe_machine() -> dict[str, str | int | float]:
    """Processor, memory, system: what a reader needs to place the numbers."""
    return {
        "processor": _field("/proc/cpuinfo", "model name") or platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gb": round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 1e9, 1),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "interpreter": os.path.realpath(sys.executable),
        "interpreter_options": _optimizations(),
        "load_before": round(os.getloadavg()[0], 2),
    }


def describe_commit() -> str:
    """The commit of the source in use, marked when the tree differs from it; "unknown" outside a repository."""
    here = Path(__file__).parent
    commit = _git(here, "rev-parse", "HEAD")
    if not commit:
        return "unknown"
    return f"{commit[:12]}{' with changes' if _git(here, 'status', '--porcelain', '--', '.') else ''}"


def _git(directory: Path, *arguments: str) -> str:
    try:
        done = subprocess.run(
            ["git", "-C", str(directory), *arguments], capture_output=True, text=True, timeout=_GIT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def _optimizations() -> str:
    """How the interpreter was configured to be fast; empty where it was not, or where a distribution does not say."""
    options = str(sysconfig.get_config_var("CONFIG_ARGS") or "")
    return " ".join(name for name in ("--enable-optimizations", "--with-lto") if name in options)


def _field(path: str, name: str) -> str:
    try:
        lines = Path(path).read_text().splitlines()
    except OSError:
        return ""
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(name)), "")


def own_version() -> str:
    """Our version, whether its hot modules are compiled, and Python's version."""
    how = " compiled" if is_compiled() else ""
    return f"{__version__}{how} on Python {platform.python_version()}"


def versions(*libraries: str) -> dict[str, str]:
    """Our version and Python's, and those of the libraries that are installed."""
    found = {"tieline": own_version()}
    for name in libraries:
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


#: File systems that live in memory: whatever a broker writes there, a power cut takes.
VOLATILE = frozenset({"tmpfs", "ramfs", "devtmpfs"})
_MOUNTS = Path("/proc/self/mountinfo")
_DISKS = Path("/proc/diskstats")
#: Where a line of diskstats counts the flush requests that the device has completed (Linux 5.5 and later).
_FLUSHES = 18


@dataclass(frozen=True, slots=True, kw_only=True)
class Disk:
    """What a directory is on."""

    #: ``ext4``, ``xfs``, ``tmpfs``, …; "unknown" where the system does not say.
    file_system: str
    #: Major and minor number, with a colon between.
    device: str

    @property
    def is_volatile(self) -> bool:
        """Nothing on it outlives the machine's power."""
        return self.file_system in VOLATILE

    def flushes(self) -> int | None:
        """Flush requests that the device has completed since the machine started, whoever caused them.

        An fsync that is more than a promise ends in one.  None where the device does not count them.
        """
        try:
            lines = _DISKS.read_text().splitlines()
        except OSError:
            return None
        for line in lines:
            fields = line.split()
            if ":".join(fields[:2]) == self.device and len(fields) > _FLUSHES:
                return int(fields[_FLUSHES])
        return None


def disk_of(directory: Path, mounts: str | None = None) -> Disk:
    """The disk of an existing directory; ``mounts`` is the system's own table."""
    if mounts is None:
        try:
            mounts = _MOUNTS.read_text()
        except OSError:
            mounts = ""
    there = directory.resolve()
    found = Disk(file_system="unknown", device="")
    longest = -1
    for line in mounts.splitlines():
        # number, parent, major:minor, root, mount point, options, optional fields, a dash, type, source, options
        head, _, tail = line.partition(" - ")
        fields, kind = head.split(), tail.split()
        if len(fields) < 5 or not kind:
            continue
        point = Path(fields[4].replace("\\040", " "))
        # the last of two at one point hides the first
        if (there == point or point in there.parents) and len(point.parts) >= longest:
            longest = len(point.parts)
            found = Disk(file_system=kind[0], device=fields[2])
    return found
