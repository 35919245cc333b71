"""``make histories``: ten thousand histories of joined brokers, on all cores, and the story of each that is wrong.

Every way to choose links runs every kind of history, and so does changing between them under way.  Beside them stand
histories of whole brokers: sessions that move, groups of all brokers, and what is retained.  Seeds begin where
``--from`` says, so that another ten thousand are others.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
from collections.abc import Iterator
from functools import partial
from itertools import chain
from time import perf_counter
from typing import Final

from tests.kits import check_groups, check_moves, check_retained
from tests.kits.check_overlay import Kind, Verdict, run_history
from tests.kits.overlay_world import Make
from tests.overlay.test_histories import crowded, make
from tieline.overlay.joined import Joined
from tieline.overlay.strategies import STRATEGIES

#: Changes from one strategy to another while messages are under way; and brokers that want more than they may say.
SWITCHING, CROWDED = "switching", "crowded"
#: Whole brokers; the seed says by which of these they choose links, unless the kit has its own choice.
MOVES, GROUPS, RETAINED = "moves", "groups", "retained"
_STRATEGIES: Final = tuple(STRATEGIES)
#: What goes wrong in each.
KINDS: Final = {
    **{way: [kind.value for kind in Kind] for way in (*STRATEGIES, SWITCHING, CROWDED)},
    MOVES: [kind.value for kind in check_moves.Kind],
    GROUPS: [kind.value for kind in check_groups.Kind],
    RETAINED: [kind.value for kind in check_retained.Kind],
}
_TOLD_EVERY_S: Final = 10.0
_Job = tuple[str, str, int]


def _makers(way: str) -> Make:
    if way == CROWDED:
        return crowded
    return make("path" if way == SWITCHING else way)


def run(job: _Job) -> tuple[_Job, int, str]:
    """One history: how much was judged, and its story if it is wrong."""
    way, kind, seed = job
    try:
        judged, story = _judged(way, kind, seed)
    except Exception as error:  # noqa: BLE001  # whatever it is, it belongs to this seed
        judged, story = 0, f"{kind} history {seed}:\n{type(error).__name__}: {error}"
    return job, judged, story


def _judged(way: str, kind: str, seed: int) -> tuple[int, str]:
    strategy = _STRATEGIES[seed % len(_STRATEGIES)]
    if way == MOVES:
        moved = check_moves.run_history(check_moves.Kind(kind), seed, strategy=strategy)
        return moved.deliveries, str(moved) if moved.is_wrong else ""
    if way == GROUPS:
        grouped = check_groups.run_history(check_groups.Kind(kind), seed, strategy if strategy == "ring" else None)
        return grouped.judged, str(grouped) if grouped.wrong else ""
    if way == RETAINED:
        join = partial(Joined, strategy=strategy)
        retained = check_retained.run_history(check_retained.Kind(kind), seed, join)
        return retained.judged, str(retained) if retained.wrong else ""
    others = tuple(STRATEGIES.values()) if way == SWITCHING else ()
    verdict: Verdict = run_history(_makers(way), Kind(kind), seed, switching=others)
    return verdict.deliveries, str(verdict) if verdict.is_wrong else ""


def jobs(count: int, ways: list[str], kinds: list[str], begin: int) -> Iterator[_Job]:
    """So many histories, evenly over ways and kinds."""
    pairs = [(way, kind) for way in ways for kind in KINDS[way] if not kinds or kind in kinds]
    for number in range(count):
        way, kind = pairs[number % len(pairs)]
        yield way, kind, begin + number // len(pairs)


def main() -> int:
    """Run them, and say how many were wrong."""
    parser = argparse.ArgumentParser(prog="make histories", description=__doc__)
    parser.add_argument("--count", type=int, default=10_000, help="histories, all ways and kinds together")
    parser.add_argument("--from", type=int, default=0, dest="begin", help="the first seed of each way and kind")
    parser.add_argument("--way", action="append", choices=KINDS, help="only this one; may be repeated")
    parser.add_argument("--kind", action="append", choices=sorted({*chain(*KINDS.values())}), help="only this one")
    parser.add_argument("--processes", type=int, default=os.cpu_count(), help="all cores, unless it is said")
    asked = parser.parse_args()
    ways, kinds = asked.way or list(KINDS), asked.kind or []
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
                    f"{done:,} of {asked.count:,}, {deliveries:,} judged, {len(wrong)} wrong, {rate:.0f}/s",
                    flush=True,
                )
    for way, kind, seed in wrong:
        print(f"again: python -m tests.overlay.explore --count 1 --way {way} --kind {kind} --from {seed}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
