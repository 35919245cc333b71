"""Where and on what the numbers were taken."""

from __future__ import annotations

import os
import platform
import subprocess
from contextlib import suppress
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
            ["git", "-C", str(directory), *arguments],
            capture_output=True,
            text=True,
            timeout=_GIT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


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
