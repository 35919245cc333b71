"""Rounds of faults: after each, everything heals, comes to rest and is judged; between them brokers come and go."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Final

from tests.robust.chaos.faults import befall
from tests.robust.chaos.storm import Storm

ROUND_S: Final = 20.0


#: How long others need to hear that a broker wants nothing any more.
_FORGET_S: Final = 4.0


def run(folder: Path, seed: int, *, seconds: float, brokers: int, tell: Callable[[str], None]) -> str:
    """Rounds for about so long; what happened, in a sentence.  Raises Failed with the story of what went wrong."""
    began = monotonic()
    with closing(Storm(folder, seed, brokers)) as storm:
        storm.settle()
        rounds, coming, leaving = 0, 0, 0
        while rounds == 0 or monotonic() - began < seconds - ROUND_S:
            rounds += 1
            if rounds % 2 == 0 and len(storm.present) < brokers + 2:
                coming += 1
                storm.later(storm.random.uniform(0.0, ROUND_S / 2), storm.join)
            elif rounds % 2 and rounds > 1 and (broker := storm.leave()) is not None:
                leaving += 1
                storm.run_for(_FORGET_S)
                storm.remove(broker)
                storm.later(_FORGET_S, partial(storm.forget, broker))
            befall(storm, ROUND_S)
            healing = monotonic()
            storm.settle()
            most = max(broker.resident_bytes for broker in storm.present)
            tell(
                f"round {rounds}, {monotonic() - began:.0f} s: {_sums(storm)}, at rest after "
                f"{monotonic() - healing:.1f} s, {len(storm.present)} brokers of at most {most / 1e6:.0f} MB, "
                f"{storm.steady.name} holds {storm.weighed[-1][1] / 1e6:.2f} MB"
            )
        held = storm.judge_memory()
        faults = _listed(storm.faults + Counter(join=coming, leave=leaving))
        not_possible = f"; not possible: {_listed(storm.not_possible)}" if storm.not_possible else ""
        return f"{rounds} rounds, {_sums(storm)}, nothing wrong; faults: {faults}{not_possible}; {held}"


def _listed(counts: Counter[str]) -> str:
    return ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))


def _sums(storm: Storm) -> str:
    sent = sum(sum(source.sent.values()) for source in storm.sources.values())
    assured = sum(source.assured for source in storm.sources.values())
    taken = sum(sink.taken for sink in storm.sinks.values())
    again = sum(sink.taken_again for sink in storm.sinks.values())
    return f"{sent:,} published, {assured:,} of them acknowledged, {taken:,} taken, {again:,} of them again"
