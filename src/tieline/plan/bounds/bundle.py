"""A stronger dual method: every answer of every group is kept, and a small program finds the prices they justify.

Theory of operation
-------------------
The bound as a function of prices is concave, the minimum over answers of linear functions.  The program (the master)
maximises the model that the known answers make of it: one value per group, one row per answer.  A model that knows few
answers jumps far, so prices may move only inside a box around the best ones, which grows while the model keeps its
promises and shrinks when it does not.  The model bounds the best value from above, so the method knows when it is
done.  Seen from the other side this is column generation over trees.  The shares of groups stay as they are given: the
answers must speak of one function.
"""

from __future__ import annotations

from typing import Any  # Any: highspy has no types

import numpy as np

from tieline.extras import needs
from tieline.plan.arrays import Floats, Ints
from tieline.plan.bounds.ascent import Bound, is_over
from tieline.plan.bounds.groups import GroupTree, Relaxation
from tieline.plan.run import Run


def bundle(relaxation: Relaxation, run: Run, *, prices: Floats | None = None, target: float = np.inf) -> Bound:
    """The best bound found, and often the best there is; it cannot exceed ``target``, such as the value of a plan."""
    arrays = relaxation.arrays
    centre = np.zeros(arrays.links) if prices is None else prices.copy()
    evaluation = relaxation.evaluate(centre)
    best, step = evaluation.value, 1
    if not arrays.links or not arrays.topics:
        return Bound(value=best, prices=centre, steps=step, seconds=run.elapsed)
    master = _Master(relaxation)
    master.learn(evaluation.answers)
    # a price that moves a group's answer is about the cost of a link
    radius = np.full(arrays.links, float(np.mean(arrays.cost)) / max(1e-9, float(np.mean(arrays.rate))) + 1e-9)
    while not is_over(run, step, best, target):
        proposal = master.prices(centre, radius, run.left)
        if proposal is None:
            break
        promised, candidate = proposal
        if promised - best <= 1e-7 * max(1.0, abs(best)):
            if not master.is_at_edge(candidate, centre, radius):
                break
            radius *= 4.0
            continue
        evaluation = relaxation.evaluate(candidate)
        step += 1
        master.learn(evaluation.answers)
        if evaluation.value > best:
            kept = (evaluation.value - best) / (promised - best)
            best, centre = evaluation.value, candidate
            if kept > 0.5:
                radius *= 2.0
        else:
            radius *= 0.7
    return Bound(value=float(best), prices=centre, steps=step, seconds=run.elapsed)


class _Master:
    """The program over prices and one value per group."""

    def __init__(self, relaxation: Relaxation) -> None:
        with needs("plan"):
            import highspy

        maker: Any = highspy.Highs  # its types are incomplete
        self.optimal = highspy.HighsModelStatus.kOptimal
        self.highs = maker()
        self.relaxation = relaxation
        arrays = relaxation.arrays
        self.limited: Ints = np.flatnonzero(np.isfinite(arrays.capacity))
        self.column_of = np.full(arrays.links, -1, np.int64)
        self.column_of[self.limited] = np.arange(len(self.limited))
        self.groups = len(relaxation.groups)
        self.known: list[set[tuple[float, bytes]]] = [set() for _ in range(self.groups)]
        self.highs.setOptionValue("output_flag", False)
        count = len(self.limited) + self.groups
        self.count = count
        costs = np.concatenate([arrays.capacity[self.limited], -np.ones(self.groups)])
        upper = [len(group.targets) * float(arrays.price[group.topic]) for group in relaxation.groups]
        self.highs.addVars(
            count,
            np.concatenate([np.zeros(len(self.limited)), np.full(self.groups, -self.highs.inf)]),
            np.concatenate([np.zeros(len(self.limited)), upper]),
        )
        self.highs.changeColsCost(count, np.arange(count, dtype=np.int32), costs)

    def learn(self, answers: list[GroupTree]) -> None:
        """One row per answer that is new: value of its group <= cost + Σ λ a share over its links."""
        lower: list[float] = []
        upper: list[float] = []
        starts: list[int] = []
        columns: list[Floats] = []
        values: list[Floats] = []
        filled = 0
        for number, answer in enumerate(answers):
            key = (round(answer.cost, 9), answer.links.tobytes())
            if key in self.known[number]:
                continue
            self.known[number].add(key)
            links = answer.links[self.column_of[answer.links] >= 0]
            rate = float(self.relaxation.arrays.rate[self.relaxation.groups[number].topic])
            share = self.relaxation.shares[number]
            part = share if isinstance(share, float) else share[links]
            starts.append(filled)
            columns.append(np.append(self.column_of[links], len(self.limited) + number))
            values.append(np.append(np.full(len(links), -rate) * part, 1.0))
            filled += len(links) + 1
            lower.append(-self.highs.inf)
            upper.append(answer.cost)
        if not starts:
            return
        self.highs.addRows(
            len(starts),
            np.array(lower),
            np.array(upper),
            filled,
            np.array(starts, dtype=np.int32),
            np.concatenate(columns).astype(np.int32),
            np.concatenate(values),
        )

    def prices(self, centre: Floats, radius: Floats, seconds: float | None) -> tuple[float, Floats] | None:
        """The best prices in the box, as far as the known answers tell, and what they promise; None without time."""
        low = np.maximum(0.0, centre - radius)[self.limited]
        high = (centre + radius)[self.limited]
        self.highs.changeColsBounds(len(self.limited), np.arange(len(self.limited), dtype=np.int32), low, high)
        if seconds is not None:
            # HiGHS counts the time of all its runs together
            self.highs.setOptionValue("time_limit", self.highs.getRunTime() + max(0.01, seconds))
        self.highs.run()
        if self.highs.getModelStatus() != self.optimal:
            return None
        solution = np.array(self.highs.getSolution().col_value)
        prices = np.zeros(len(centre))
        prices[self.limited] = np.clip(solution[: len(self.limited)], low, high)
        return -float(self.highs.getInfo().objective_function_value), prices

    def is_at_edge(self, candidate: Floats, centre: Floats, radius: Floats) -> bool:
        """Whether the box, and not the answers, keeps some price from rising or falling."""
        reach = np.abs(candidate - centre) >= radius * (1 - 1e-9)
        return bool((reach & (candidate > 0)).any())
