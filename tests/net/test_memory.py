"""Memory that was given back is there again without the system's help."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

from tieline.net import vitals

#: Pieces that the C library would otherwise give back at once, and what it costs to take them again.
SCRIPT = """
import resource, sys
from tieline.net.vitals import keep_memory
assert keep_memory(int(sys.argv[2]), int(sys.argv[3])) is (sys.argv[1] == "glibc")
def take():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for size in map(int, sys.argv[4:]):
        pieces = [bytearray(b"x") * size for _ in range(3)]
        del pieces
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
take()
print(take())
"""


@pytest.mark.skipif(sys.platform == "win32", reason="counts pages as POSIX does")
@pytest.mark.parametrize(
    ("largest", "unused", "sizes"),
    [(vitals.LARGEST, 64 << 20, [8 << 20]), (4 << 20, 16 << 20, [65_536, 262_144, 1 << 20] * 10)],
    ids=["batches of the log server", "chunks of the broker"],
)
def test_what_one_buffer_used_the_next_one_has(largest: int, unused: int, sizes: list[int]) -> None:
    library = platform.libc_ver()[0] or "another"
    command = [sys.executable, "-c", SCRIPT, library, *map(str, (largest, unused, *sizes))]
    faults = int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    if library == "glibc":
        # 24 MiB are 6,144 pages; the chunks have more
        assert faults < 600
