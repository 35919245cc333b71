"""``make histories``: ten thousand histories of joined brokers, on all cores, and the story of each that is wrong.

Every way to choose links runs every kind of history, and so does changing between them under way.  Seeds begin where
``--from`` says, so that another ten thousand are others.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
from collections.abc import Iterator
from itertools import product
from time import perf_counter
from typing import Final

from tests.kits.check_overlay import Kind, Verdict, run_history
from tests.kits.overlay_world import Make
from tests.overlay.test_histories import crowded, make
from tieline.overlay.strategies import STRATEGIES

#: Changes from one strategy to another while messages are under way; and brokers that want more than they may say.
SWITCHING, CROWDED = "switching", "crowded"
WAYS: Final = (*STRATEGIES, SWITCHING, CROWDED)
_TOLD_EVERY_S: Final = 10.0
_Job = tuple[str, Kind, int]


def _makers(way: str) -> Make:
    if way == CROWDED:
        return crowded
    return make("path" if way == SWITCHING else way)


def run(job: _Job) -> tuple[_Job, int, str]:
    """One history: how much was delivered, and its story if it is wrong."""
    way, kind, seed = job
    others = tuple(STRATEGIES.values()) if way == SWITCHING else ()
    try:
        verdict = run_history(_makers(way), kind, seed, switching=others)
    except Exception as error:  # noqa: BLE001  # whatever it is, it belongs to this seed
        verdict = Verdict(seed, kind, other=[f"{type(error).__name__}: {error}"])
    return job, verdict.deliveries, str(verdict) if verdict.is_wrong else ""


def jobs(count: int, ways: list[str], kinds: list[Kind], begin: int) -> Iterator[_Job]:
    """So many histories, evenly over ways and kinds."""
    pairs = list(product(ways, kinds))
    for number in range(count):
        way, kind = pairs[number % len(pairs)]
        yield way, kind, begin + number // len(pairs)


def main() -> int:
    """Run them, and say how many were wrong."""
    parser = argparse.ArgumentParser(prog="make histories", description=__doc__)
    parser.add_argument("--count", type=int, default=10_000, help="histories, all ways and kinds together")
    parser.add_argument("--from", type=int, default=0, dest="begin", help="the first seed of each way and kind")
    parser.add_argument("--way", action="append", choices=WAYS, help="only this one; may be repeated")
    parser.add_argument("--kind", action="append", choices=[kind.value for kind in Kind], help="only this one")
    parser.add_argument("--processes", type=int, default=os.cpu_count(), help="all cores, unless it is said")
    asked = parser.parse_args()
    ways, kinds = asked.way or list(WAYS), [Kind(kind) for kind in asked.kind or Kind]
    began = told = perf_counter()
    done = deliveries = 0
    wrong: list[_Job] = []
    with multiprocessing.get_context("spawn").Pool(asked.processes) as pool:
        for job, delivered, story in pool.imap_unordered(run, jobs(asked.count, ways, kinds, asked.begin), 4):
            done += 1
            deliveries += delivered
            if story:
                wrong.append(job)
                print(f"{job[0]}: {story}\n", flush=True)
            if perf_counter() - told > _TOLD_EVERY_S or done == asked.count:
                told = perf_counter()
                rate = done / (told - began)
                print(
                    f"{done:,} of {asked.count:,}, {deliveries:,} deliveries, {len(wrong)} wrong, {rate:.0f}/s",
                    flush=True,
                )
    for way, kind, seed in wrong:
        print(f"again: python -m tests.overlay.explore --count 1 --way {way} --kind {kind.value} --from {seed}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
