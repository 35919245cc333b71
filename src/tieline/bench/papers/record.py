"""What the reproduction found: the figures' numbers and the verdict on each of the papers' sentences, as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tieline.bench.papers.feedback import Figures345
from tieline.bench.papers.heat import Figure2

FORMAT = "tieline-reproduce-priority-1"


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence of a paper beside what was measured."""

    figure: str
    paper_says: str
    we_measure: str
    #: ``reproduced``, ``not reproduced`` or ``not measured``.
    verdict: str


@dataclass(slots=True, kw_only=True)
class Reproduction:
    """Everything one run found out."""

    quick: bool
    started: str
    commit: str
    machine: dict[str, str | int | float]
    versions: dict[str, str]
    seconds: float = 0.0
    heat: Figure2 | None = None
    feedback: Figures345 | None = None
    #: Mean delay of each group in microseconds, by experiment: every 50 ms, and saturated.
    groups: dict[str, list[float]] = field(default_factory=dict)
    groups_saturated: dict[str, list[float]] = field(default_factory=dict)
    #: Experiments that failed, and why.
    failures: dict[str, str] = field(default_factory=dict)
    claims: list[Claim] = field(default_factory=list)

    def write(self, path: Path) -> None:
        """The record as JSON."""
        path.write_text(json.dumps({"format": FORMAT, **asdict(self)}, indent=1, ensure_ascii=False) + "\n")
