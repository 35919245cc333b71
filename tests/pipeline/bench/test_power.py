"""What a loss of power may take, and what it may not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from random import Random

from tieline.bench.pipeline.power import environment, lose
from tieline.bench.pipeline.processes import our_path

PROGRAM = """
import os, sys
from pathlib import Path
from tieline.pipeline.lake.disk import Disk

root, disk = Path(sys.argv[1]), Disk()
disk.make(root / "table")
disk.write(root / "kept", b"kept")
(root / "careless").write_bytes(b"never synchronised")
with (root / "table" / "nameless").open("wb") as file:
    file.write(b"content is there, the name is not")
    file.flush()
    os.fsync(file.fileno())
with (root / "moved").open("wb") as file:
    file.write(b"its rename is in the journal of the file system")
    file.flush()
    os.fsync(file.fileno())
os.rename(root / "moved", root / "table" / "moved")
"""


def run(root: Path, folder: Path, random: Random) -> int:
    root.mkdir()
    kept, ours = environment(folder), our_path()
    paths = os.pathsep.join([kept["PYTHONPATH"], ours["PYTHONPATH"]])
    subprocess.run([sys.executable, "-c", PROGRAM, root], env={**os.environ, **kept, "PYTHONPATH": paths}, check=True)
    return lose(root, folder, random)


def test_only_what_nobody_synchronised_is_hit(tmp_path: Path) -> None:
    fates, nameless = set(), set()
    for seed in range(12):
        root = tmp_path / str(seed)
        run(root, tmp_path / f"synced-{seed}", Random(seed))
        assert (root / "kept").read_bytes() == b"kept"
        assert (root / "table" / "moved").read_bytes().startswith(b"its rename")
        careless = root / "careless"
        fates.add(len(careless.read_bytes()) if careless.exists() else None)
        nameless.add((root / "table" / "nameless").exists())
    assert fates == {None, 0, 9, 18}
    assert nameless == {True, False}
