"""``python -m tests.robust.attack``: honest clients play while the broker is attacked, and say what they noticed.

By default every kind of attack has its share of the time, first with one connection and then with eight; in the last
third of the time several kinds run at once.  A window of ten seconds that breaks a limit makes the exit code 1.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import tempfile
from itertools import cycle, islice
from pathlib import Path
from time import monotonic, sleep
from typing import Final

from tests.robust.attack.catalogue import KINDS, attack
from tests.robust.attack.honest import Honest
from tests.robust.attack.report import HEAD, Window
from tests.robust.attack.site import Site, serving

WINDOW_S: Final = 10.0
#: Kinds at once in the mixed part.
MIXED: Final = 3


def _phase(site: Site, honest: Honest, names: list[str], connections: int, seconds: float) -> list[Window]:
    """One or more attacks at once, for so long; what the honest clients noticed."""
    until = monotonic() + seconds
    context = multiprocessing.get_context("spawn")
    hostile = [
        context.Process(target=attack, args=(name, site.doors, connections, until), daemon=True) for name in names
    ]
    for process in hostile:
        process.start()
    what = f"{' + '.join(names)} x{connections}" if names else "nothing"
    windows: list[Window] = []
    honest.take()
    try:
        while (left := until - monotonic()) > 0:
            length = min(WINDOW_S, left)
            sleep(length)
            rounds = honest.take()
            windows.append(
                Window(what=what, rounds=rounds, resident_bytes=site.resident_bytes, is_whole=length > WINDOW_S / 2)
            )
            print(windows[-1].line(), flush=True)
            if rounds.trouble:
                break
    finally:
        for process in hostile:
            process.join(5.0)
            process.kill()
            process.join()
    return windows


def _schedule(names: list[str], sizes: list[int], seconds: float) -> list[tuple[list[str], int, float]]:
    """Which kinds run together, with how many connections, and for how long."""
    alone = [([name], size) for name in names for size in sizes]
    if len(names) == 1:
        return [([name], size, seconds / len(alone)) for [name], size in alone]
    around = list(islice(cycle(names), len(names) + MIXED))
    mixed = [(around[start : start + MIXED], 2) for start in range(0, len(names), MIXED)]
    share = seconds / (len(alone) + len(mixed))
    return [(kinds, size, share) for kinds, size in alone + mixed]


def _run(names: list[str], sizes: list[int], seconds: float, *, is_ruled: bool, is_kept: bool) -> list[str]:
    """Everything that was broken."""
    found: list[str] = []
    with tempfile.TemporaryDirectory() as folder, serving(Path(folder), is_ruled=is_ruled, is_kept=is_kept) as site:
        honest = Honest(site.doors.tcp)
        print(HEAD, flush=True)
        try:
            found += _broken(_phase(site, honest, [], 0, min(WINDOW_S, seconds / 10)))
            for kinds, connections, share in _schedule(names, sizes, seconds):
                found += _broken(_phase(site, honest, kinds, connections, share))
                if site.trouble:
                    return [*found, site.trouble]
            last = Window(what="to the end", rounds=honest.take(is_last=True), resident_bytes=site.resident_bytes)
            found += [f"{last.what}: {text}" for text in last.breaches if "no honest" not in text]
            if site.trouble:
                found.append(site.trouble)
        finally:
            honest.close()
    return found


def _broken(windows: list[Window]) -> list[str]:
    return [f"{window.what}: {text}" for window in windows for text in window.breaches]


def main() -> int:
    """Attack, and say whether the limits held."""
    parser = argparse.ArgumentParser(prog="make attack", description=__doc__)
    parser.add_argument("--seconds", type=float, default=600.0, help="how long all of it takes")
    parser.add_argument("--kind", action="append", choices=sorted(KINDS), help="only this one; may be repeated")
    parser.add_argument("--connections", type=int, action="append", help="hostile connections; 1, then 8")
    parser.add_argument("--open", action="store_true", help="without rules for topics")
    parser.add_argument("--data", action="store_true", help="with a data directory")
    asked = parser.parse_args()
    names = asked.kind or list(KINDS)
    found = _run(names, asked.connections or [1, 8], asked.seconds, is_ruled=not asked.open, is_kept=asked.data)
    for text in found:
        print(f"broken: {text}")
    print("every limit held" if not found else f"{len(found)} limits were broken")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
