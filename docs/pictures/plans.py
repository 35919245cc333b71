"""Pictures of plans, drawn by the commands that the pages show: ``make pictures``.

The same instances and the same seeds give the same plans, so that only another search or another way to draw changes a
picture.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = ROOT / "docs" / "how" / "plan.md"
_WRITTEN: Final = re.compile(r"^```json file=villages\.json\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def draw(out: Path) -> list[Path]:
    """Two villages, as the page writes them down, and a network across a continent with traffic from a seed."""
    villages = _WRITTEN.search(PAGE.read_text("utf-8"))
    if villages is None:
        raise ValueError(f"{PAGE} does not write villages.json down any more")
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        (folder / "villages.json").write_text(villages[1], "utf-8")
        _plan(folder, "generate", "topohub:sndlib/abilene", "--seed", "1", "--out", "abilene.json")
        drawn = []
        for name in ("villages", "abilene"):
            _plan(folder, "solve", f"{name}.json", "--seed", "1", "--json", f"{name}.plan.json")
            drawn.append(out.absolute() / f"plan-{name}.png")
            _plan(folder, "draw", f"{name}.json", f"{name}.plan.json", "--out", str(drawn[-1]))
    return drawn


def _plan(folder: Path, *words: str) -> None:
    subprocess.run([sys.executable, "-m", "tieline", "plan", *words], cwd=folder, check=True)  # noqa: S603 - our own interpreter
