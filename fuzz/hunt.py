"""The hunt: mutate inputs, keep those that show new behaviour, and shrink the first that breaks the target.

Theory of operation: a target takes bytes and returns a signature of what happened (which packets, which refusals), or
raises anything at all when the invariant is broken.  An input whose signature was never seen joins the corpus, so the
hunt works its way into states that no seed reaches, without instrumenting the code.  Everything random comes from
one seed: the same seed and number of executions give the same hunt.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import random
import sys
import tempfile
import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fuzz.mutate import mutate

Target = Callable[[bytes], Hashable]

#: Inputs above this stay as they are but are not grown further: long inputs find little and cost much.
MAX_BYTES: Final = 2_048
_CLOCK_EVERY: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Catch:
    """What a hunt found."""

    executions: int
    #: How many different signatures were seen.
    behaviours: int
    #: The shortest input found that breaks the target, and what it raised; ``None`` when nothing did.
    reproducer: bytes | None = None
    error: str = ""


def hunt(target: Target, seeds: Sequence[bytes], seconds: float, seed: int) -> Catch:
    """Try inputs until the time is over or one of them breaks the target."""
    chance = random.Random(seed)
    corpus = list(seeds)
    seen: set[Hashable] = set()
    end = time.monotonic() + seconds
    executions = 0
    while executions < len(seeds) or executions % _CLOCK_EVERY or time.monotonic() < end:
        # The seeds themselves come first, then their descendants.
        data = corpus[executions] if executions < len(seeds) else mutate(corpus, chance)[:MAX_BYTES]
        executions += 1
        try:
            signature = target(data)
        except Exception as error:  # noqa: BLE001 - whatever escapes is what the hunt is for
            shortest = shrink(target, data)
            return Catch(
                executions=executions,
                behaviours=len(seen),
                reproducer=shortest,
                error=f"{type(error).__name__}: {error}",
            )
        if signature not in seen:
            seen.add(signature)
            corpus.append(data)
    return Catch(executions=executions, behaviours=len(seen))


def _breaks(target: Target, data: bytes) -> bool:
    try:
        target(data)
    except Exception:  # noqa: BLE001 - as above
        return True
    return False


def shrink(target: Target, data: bytes) -> bytes:
    """Cut pieces out of a breaking input as long as it still breaks the target."""
    size = max(1, len(data) // 2)
    while size:
        pos = 0
        while pos < len(data):
            shorter = data[:pos] + data[pos + size :]
            if _breaks(target, shorter):
                data = shorter
            else:
                pos += size
        size //= 2
    return data


def report(name: str, catch: Catch) -> int:
    """Print what a hunt found; the exit code."""
    print(f"{name}: {catch.executions} executions, {catch.behaviours} behaviours")
    if catch.reproducer is None:
        return 0
    print(f"{name}: broken by {catch.error}\n  bytes.fromhex({catch.reproducer.hex()!r})")
    return 1


def main(name: str, target: Target, seeds: Sequence[bytes]) -> int:
    """The command line that every fuzzer here has."""
    parser = argparse.ArgumentParser(prog=name)
    parser.add_argument("--seconds", type=float, default=60.0, help="how long to hunt")
    parser.add_argument("--seed", type=int, default=0, help="where the random numbers start")
    parser.add_argument("--own", action="store_true", help="use our own mutator even where atheris is installed")
    options = parser.parse_args()
    if not options.own and importlib.util.find_spec("atheris") is not None:
        return _atheris(target, seeds, options.seconds, options.seed)
    return report(name, hunt(target, seeds, options.seconds, options.seed))


def _atheris(target: Target, seeds: Sequence[bytes], seconds: float, seed: int) -> int:
    """The same target under atheris, which guides itself by code coverage and exits on its own."""
    atheris = importlib.import_module("atheris")
    atheris.instrument_all()
    with tempfile.TemporaryDirectory() as folder:
        for number, data in enumerate(seeds):
            (Path(folder) / str(number)).write_bytes(data)
        arguments = [
            sys.argv[0],
            folder,
            f"-max_total_time={int(seconds)}",
            f"-seed={seed or 1}",
            f"-max_len={MAX_BYTES}",
        ]
        atheris.Setup(arguments, lambda data: (target(data), None)[1])
        atheris.Fuzz()
    return 0
