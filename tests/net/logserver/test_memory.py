"""Memory that was given back is there again without the system's help."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

#: Pieces that the C library would otherwise give back at once, and what it costs to take them again.
SCRIPT = """
import resource, sys
from tieline.net.logserver.memory import keep
assert keep() is (sys.argv[1] == "glibc")
def take():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    pieces = [bytearray(b"x") * (8 << 20) for _ in range(3)]
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
take()
print(take())
"""


@pytest.mark.skipif(sys.platform == "win32", reason="counts pages as POSIX does")
def test_what_one_batch_used_the_next_one_has() -> None:
    library = platform.libc_ver()[0] or "another"
    command = [sys.executable, "-c", SCRIPT, library]
    faults = int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    if library == "glibc":
        # 24 MiB are 6,144 pages
        assert faults < 600
