"""One door to all methods: an instance in, a proven plan out.

A method is a function from arrays and a :class:`~tieline.plan.run.Run` to a plan, and a row of the table below.  Before
the methods that people use, reductions take away what has no choice (:mod:`tieline.plan.reduce`); those that are kept
for comparison take the instance as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

from tieline.plan.arrays import Arrays, arrays
from tieline.plan.distributed import distributed
from tieline.plan.flaws import checked
from tieline.plan.instance import Instance
from tieline.plan.methods.annealing import annealing
from tieline.plan.methods.by_size import SECONDS, auto, formulated, lns, mip
from tieline.plan.methods.lagrangian import lagrangian
from tieline.plan.plan import Plan
from tieline.plan.reduce.solving import solve_reduced
from tieline.plan.run import Improving, Listener, Run, Stop


@dataclass(frozen=True, slots=True)
class Method:
    """A way to look for a plan."""

    plan: Callable[[Arrays, Run], Plan]
    #: Whether it plans what reductions leave, block by block where there are several.
    is_reduced: bool = False
    #: The seconds of all blocks together if nobody says how long; None: each takes as long as it takes.
    block_seconds: float | None = None


METHODS: Final[Mapping[str, Method]] = {
    "auto": Method(auto, is_reduced=True, block_seconds=SECONDS),
    "mip": Method(mip, is_reduced=True),
    "lagrangian": Method(lagrangian),
    "annealing": Method(annealing),
    "lns": Method(lns, is_reduced=True, block_seconds=SECONDS),
    "distributed": Method(distributed),
}
#: Those that may be told which formulation to solve.
_WITH_MODEL: Final = ("auto", "mip")


def solve(  # called by hand: one by one what others get as a run
    instance: Instance,
    *,
    method: str = "auto",
    model: str | None = None,
    seconds: float | None = None,
    iterations: int | None = None,
    seed: int = 0,
    watch: Listener | None = None,
    stop: Stop | None = None,
) -> Plan:
    """The best plan that a method finds; ``model`` is for the exact ones, ``iterations`` for the search.

    ``watch`` hears how far the method is, and ``stop`` is asked whether to return the best plan so far.  People call
    this function by hand, so it takes one by one what everybody else gets as a run.
    """
    if method not in METHODS:
        raise ValueError(f'"{method}" is no method; known: {", ".join(METHODS)}')
    if model is not None and method not in _WITH_MODEL:
        raise ValueError(f'the method "{method}" has no model; models are for "mip"')
    checked(instance)
    if instance.is_extended and model is None:
        model = _extended(method)
    chosen = METHODS[method] if model is None else Method(partial(formulated, model=model))

    def planned(part: Instance, run: Run) -> Plan:
        listener = None if run.listener is None else Improving(run.listener)
        return chosen.plan(arrays(part), run.part(iterations=iterations).heard_by(listener))

    run = Run(seconds=seconds, iterations=iterations, seed=seed, listener=watch, stop=stop)
    if not chosen.is_reduced:
        return planned(instance, run)
    block_seconds = chosen.block_seconds if iterations is None else None
    return solve_reduced(instance, planned, run, method=method, block_seconds=block_seconds)


def _extended(method: str) -> str:
    """The model for an instance with several sources or rates in intervals: searches and heuristics do not know
    those.
    """
    if method not in _WITH_MODEL:
        raise ValueError(
            f'the method "{method}" knows one source for each topic and fixed rates; '
            f"for others there are {' and '.join(_WITH_MODEL)}"
        )
    return "f1d"
