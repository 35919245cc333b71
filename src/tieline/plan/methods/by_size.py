"""The methods that we ship: a search for large instances, exact ones for small ones, and the choice between them.

``auto`` looks at the size.  The smallest instances are solved exactly at once; small ones are searched in rounds, whose
bound often proves the plan, and otherwise solved exactly from there.  Large ones are searched until the time is over.
"""

from __future__ import annotations

import math
import time
from typing import Final

from tieline.extras import is_installed
from tieline.plan.arrays import Arrays
from tieline.plan.certify import certified
from tieline.plan.models.exact import exact
from tieline.plan.models.solve import PRINTED, solve_model
from tieline.plan.plan import Plan
from tieline.plan.routes import Trees, trees
from tieline.plan.run import Run
from tieline.plan.search.neighbourhood import Found, search
from tieline.plan.search.rounds import in_rounds
from tieline.plan.search.warm import warm

#: Seconds that a search takes if nothing is said, and those that whatever follows a search has at least.
SECONDS: Final = 30.0
_LEAST_S: Final = 0.05

#: Models whose plans need not get better on the way.
_OTHERS: Final = frozenset({*PRINTED, "f2", "tb"})
#: Up to so many pairs of a topic and an arc, ``auto`` solves exactly, and up to so many it does not search before.
_EXACT_PAIRS: Final = 15_000
_TINY_PAIRS: Final = 600


def auto(arrays: Arrays, run: Run) -> Plan:
    """Exactly if the instance is small, otherwise by search."""
    pairs = arrays.topics * arrays.arcs
    if pairs > _EXACT_PAIRS or not is_installed("highspy"):
        return lns(arrays, run)
    if pairs <= _TINY_PAIRS:
        return mip(arrays, run)
    found = _rounds(arrays, run) if run.iterations is None else _search(arrays, run, method="auto")
    if found.status == "optimal" or run.must_end:
        return found
    proven = mip(arrays, run, start=trees(arrays, found.routes))
    better = proven if proven.objective <= found.objective else found
    return certified(
        arrays,
        trees(arrays, better.routes),
        method="auto",
        bound=max(proven.bound, found.bound),
        seconds=run.elapsed,
        is_interrupted=proven.status == "interrupted",
        notes={**found.notes, **proven.notes},
    )


def lns(arrays: Arrays, run: Run) -> Plan:
    """Negotiated congestion and neighbourhood search."""
    return _search(arrays, run, method="lns")


def mip(arrays: Arrays, run: Run, *, start: Trees | None = None) -> Plan:
    """The fast exact method, which makes its program small first."""
    return run.told(exact(arrays, _rest(run), start=start))


def formulated(arrays: Arrays, run: Run, *, model: str) -> Plan:
    """A formulation on HiGHS, by its name."""
    rest = _rest(run)
    # a model may have an objective of its own: what it finds on the way says nothing about its answer
    return run.told(solve_model(arrays, rest.heard_by(None) if model in _OTHERS else rest, model=model))


def _search(arrays: Arrays, run: Run, *, method: str) -> Plan:
    _prepare(arrays, run)
    is_endless = run.seconds is None and run.iterations is None
    part = run.part(seconds=SECONDS) if is_endless else _rest(run, run.iterations)
    # what follows in other methods is exact for the whole
    return _searched(arrays, run, search(arrays, part, polishes=method == "lns"), method)


def _rounds(arrays: Arrays, run: Run) -> Plan:
    """Short searches, and the best choice among the trees that they saw."""
    _prepare(arrays, run)
    return _searched(arrays, run, in_rounds(arrays, _rest(run)), "auto")


def _searched(arrays: Arrays, run: Run, found: Found, method: str) -> Plan:
    return certified(
        arrays,
        found.trees,
        method=method,
        bound=found.bound,
        seconds=run.elapsed,
        is_interrupted=run.must_end,
        notes={"iterations": found.iterations, "dual_steps": found.dual_steps},
    )


def _prepare(arrays: Arrays, run: Run) -> None:
    """Have the kernels compiled, which may take a while once and is not counted as time to plan."""
    run.tell("prepare", objective=math.inf, unmet=arrays.requests, bound=-math.inf)
    began = time.perf_counter()
    warm()
    run.uncounted += time.perf_counter() - began


def _rest(run: Run, iterations: int | None = None) -> Run:
    """What is left of a run, and never nothing: a method that begins gives a plan."""
    left = run.left
    return run.part(seconds=None if left is None else max(_LEAST_S, left), iterations=iterations)
