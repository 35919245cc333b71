"""``make chaos``: joined brokers under faults for ten minutes, and whether everybody got what was promised.

Faults come in rounds.  After each, everything heals and has to come to rest: nothing that was acknowledged is missing,
nothing came twice or out of order, and brokers hold no more memory than before.  A seed says which faults there are and
when; what they meet is up to the machine.
"""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
from pathlib import Path
from random import SystemRandom

from tests.robust.chaos.rounds import run
from tests.robust.chaos.storm import Failed


def main() -> int:
    """Let it storm, and say how it went."""
    parser = argparse.ArgumentParser(prog="make chaos", description=__doc__)
    parser.add_argument("--seconds", type=float, default=600.0, help="how long all of it takes, about")
    parser.add_argument("--seed", type=int, default=None, help="another one each time unless it is said")
    parser.add_argument("--brokers", type=int, default=5, help="how many there are in the beginning")
    parser.add_argument("--folder", type=Path, default=None, help="keeps logs and stores here")
    asked = parser.parse_args()
    seed = asked.seed if asked.seed is not None else SystemRandom().randrange(1_000_000)
    print(f"seed {seed}", flush=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))  # so that no broker is left behind
    with tempfile.TemporaryDirectory() as folder:
        place = asked.folder or Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        try:
            summary = run(
                place, seed, seconds=asked.seconds, brokers=asked.brokers, tell=lambda text: print(text, flush=True)
            )
        except Failed as failed:
            print(failed)
            print(f"once more: make chaos ARGS='--seed {seed} --seconds {asked.seconds:g} --brokers {asked.brokers}'")
            return 1
    print(summary)
    return 0


if __name__ == "__main__":
    sys.exit(main())
