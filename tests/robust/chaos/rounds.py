"""Rounds of faults: after each, everything heals, comes to rest and is judged; between them brokers come and go."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from time import monotonic
from typing import Final

from tests.robust.chaos.faults import befall
from tests.robust.chaos.storm import Storm

ROUND_S: Final = 20.0


def run(folder: Path, seed: int, *, seconds: float, brokers: int, tell: Callable[[str], None]) -> str:
    """Rounds for about so long; what happened, in a sentence.  Raises Failed with the story of what went wrong."""
    began = monotonic()
    with closing(Storm(folder, seed, brokers)) as storm:
        storm.settle()
        rounds = 0
        while rounds == 0 or monotonic() - began < seconds - ROUND_S:
            rounds += 1
            befall(storm, ROUND_S)
            healing = monotonic()
            storm.settle()
            sent = sum(sum(source.sent.values()) for source in storm.sources.values())
            taken = sum(sink.taken for sink in storm.sinks.values())
            most = max(broker.resident_bytes for broker in storm.present)
            tell(
                f"round {rounds}, {monotonic() - began:.0f} s: {sent:,} published, {taken:,} taken, at rest after "
                f"{monotonic() - healing:.1f} s, at most {most / 1e6:.0f} MB"
            )
        faults = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in sorted(storm.faults.items()))
        return f"{rounds} rounds, {sent:,} published, {taken:,} taken, nothing wrong; faults: {faults}"
