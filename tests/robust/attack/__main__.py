"""``python -m tests.robust.attack``: honest clients play while the broker is attacked, and say what they noticed.

By default all kinds attack in pairs and then all at once, on a broker without a data directory and on one with it.  The
time of a phase begins when what it needs is set up, so the whole takes some minutes longer than was asked for.  Every
ten seconds of the run are judged, with what comes before and after each attack; a broken limit makes the exit code 1.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from itertools import groupby
from pathlib import Path
from time import monotonic, sleep
from typing import Final

from tests.robust.attack.catalogue import KINDS
from tests.robust.attack.honest import Honest, Rounds
from tests.robust.attack.report import HEAD, Period, Run
from tests.robust.attack.schedule import Phase, chosen, whole_run
from tests.robust.attack.site import Site, serving
from tests.robust.attack.squad import Squad

#: What kinds may take to set up what they need, on a machine that is busy.
SET_UP_S: Final = 240.0
#: How often it is looked at what honest clients say, and what the broker holds.
LOOK_S: Final = 0.5
#: Nothing happens for so long at first.
CALM_S: Final = 5.0


class _Watch:
    """What is known of one phase while it lasts."""

    def __init__(self, site: Site, honest: Honest, run: Run) -> None:
        self._site = site
        self._honest = honest
        self._run = run
        self.begin = monotonic()
        self.rounds = Rounds()
        self.resident_bytes = 0

    def look(self, seconds: float = 0.0) -> bool:
        """Let some time pass, and take what there is; False if the honest clients cannot go on."""
        sleep(seconds)
        self._add(self._honest.take())
        return not self.rounds.trouble

    def finish(self) -> None:
        """The run is over: what is under way is waited for, or lost."""
        self._add(self._honest.take(is_last=True))
        self._run.windows.finish()

    def _add(self, rounds: Rounds) -> None:
        self._run.windows.add(rounds)
        self.rounds.add(rounds)
        self.resident_bytes = max(self.resident_bytes, self._site.resident_bytes)

    def note(self, what: str, set_up_s: float = 0.0, trouble: tuple[str, ...] = ()) -> None:
        """The phase is over: it gets its line."""
        period = Period(
            what=what,
            begin=self.begin,
            end=monotonic(),
            set_up_s=set_up_s,
            rounds=self.rounds,
            resident_bytes=self.resident_bytes,
            p99_s=self._run.windows.take_p99(),
            trouble=trouble,
        )
        self._run.periods.append(period)
        print(period.line(), flush=True)


def _attack(watch: _Watch, site: Site, phase: Phase) -> None:
    """One phase, from its set-up to the end of the last attacker."""
    squad = Squad(phase.names, site.doors, phase.connections)
    trouble: tuple[str, ...] = ()
    try:
        while squad.unready and monotonic() < watch.begin + SET_UP_S and watch.look(LOOK_S):
            pass
        trouble = tuple(f"{name} was not set up in {SET_UP_S:.0f} s" for name in squad.unready)
        set_up_s = monotonic() - watch.begin
        until = monotonic() + phase.seconds
        squad.end_in(phase.seconds)
        while (left := until - monotonic()) > 0 and watch.look(min(left, LOOK_S)):
            pass
    finally:
        squad.leave()
    watch.look()
    watch.note(phase.what, set_up_s, trouble)


def _serve(phases: list[Phase], *, is_ruled: bool) -> list[str]:
    """Everything that was broken in phases that have the same broker."""
    is_kept = phases[0].is_kept
    print(f"\na broker {'with' if is_kept else 'without'} a data directory\n{HEAD}", flush=True)
    run = Run()
    with tempfile.TemporaryDirectory() as folder, serving(Path(folder), is_ruled=is_ruled, is_kept=is_kept) as site:
        honest = Honest(site.doors.tcp)
        try:
            calm = _Watch(site, honest, run)
            calm.look(min(CALM_S, phases[0].seconds))
            calm.note("nothing")
            for phase in phases:
                _attack(_Watch(site, honest, run), site, phase)
                if site.trouble or run.periods[-1].rounds.trouble:
                    break
            last = _Watch(site, honest, run)
            last.finish()
            last.note("to the end")
        finally:
            honest.close()
        print(run.summary(), flush=True)
        return run.broken() + ([site.trouble] if site.trouble else [])


def main() -> int:
    """Attack, and say whether the limits held."""
    parser = argparse.ArgumentParser(prog="make attack", description=__doc__)
    parser.add_argument("--seconds", type=float, default=600.0, help="how long is attacked, without what is set up")
    parser.add_argument("--kind", action="append", choices=sorted(KINDS), help="only this one, alone; may be repeated")
    parser.add_argument("--connections", type=int, action="append", help="hostile connections; 1, then 8")
    parser.add_argument("--open", action="store_true", help="without rules for topics")
    parser.add_argument("--data", action="store_true", help="such a kind, on a broker with a data directory")
    asked = parser.parse_args()
    if asked.kind:
        phases = chosen(asked.kind, asked.connections or [1, 8], asked.seconds, is_kept=asked.data)
    else:
        phases = whole_run(list(KINDS), asked.seconds)
    found: list[str] = []
    for _, own in groupby(phases, key=lambda phase: phase.is_kept):
        found += _serve(list(own), is_ruled=not asked.open)
    for text in found:
        print(f"broken: {text}")
    print("every limit held" if not found else f"{len(found)} limits were broken")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
