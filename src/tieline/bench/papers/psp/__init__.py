"""The planner's paper: its model, heuristics and bound beside ours, on instances of its sizes.

``instances.py`` and ``bound.py`` compute Tables 1 and 2, of which ``tables.py`` says what is drawn and which sentences
they decide; ``plans.py`` is about Figures 4 to 9, ``printed.py`` about the equations, ``future.py`` about future work.
"""

from __future__ import annotations

from tieline.bench.papers.frame.declaration import Experiment, Figure, Paper, Parameter, Request
from tieline.bench.papers.frame.table import Table
from tieline.bench.papers.psp import bound, future, instances, plans, printed, tables


def _measure(request: Request) -> list[Table]:
    return [*instances.measure(request), *bound.measure(request)]


PAPER = Paper(
    name="psp",
    title="The planner's paper, beside what we measure",
    citation="P. Manzoni, V. Maniezzo, M. A. Boschetti: *Modeling Distributed MQTT Systems Using Multicommodity Flow "
    "Analysis*, Electronics 11(9), 2022, 1498, doi:10.3390/electronics11091498.",
    package=__name__,
    libraries=("highspy", "numba"),
    parameters=(
        Parameter(
            name="sizes",
            value="7",
            origin="paper",
            note="res4 is not in Table 1: 60 nodes, 140 arcs, 25 topics, 20 subscribers are ours",
        ),
        Parameter(name="instances", value="generated", origin="ours", note="the paper's files are not to be had"),
        Parameter(
            name="tightness",
            value="2, 1, 0.6",
            origin="ours",
            note="capacity of the links over the load of shortest paths",
        ),
        Parameter(name="requests", value="2 for each topic", origin="ours"),
        Parameter(name="M of the naive program", value=1000, origin="ours", note="the paper says a large M"),
        Parameter(name="annealing", value="120 rounds, cooling 0.95, 20 moves for each request", origin="ours"),
        Parameter(name="runs of annealing", value=instances.ANNEALING_RUNS, origin="paper"),
    ),
    experiments=(
        Experiment(
            name="instances",
            title="seven sizes, everybody's plans",
            measure=_measure,
            repeatable=False,
            figures=(
                Figure(
                    name="table-1",
                    title="Table 1: dimensions",
                    tables=("instances",),
                    caption="The paper's instances and ours, which have the same dimensions and come from seeds.",
                    sheet=tables.sizes_sheet,
                    claims=tables.sizes_claims,
                ),
                Figure(
                    name="table-2",
                    title="Table 2: seconds and distances",
                    tables=("instances", "methods", "small", "counterexample"),
                    caption="The columns marked *paper* are the paper's, on its machine and its instances. All others "
                    "are CPU seconds of this run, the median over the seeds; ≥ marks one that a limit has cut off. "
                    "Values shorter than a millisecond are drawn as one.",
                    sheet=tables.times_sheet,
                    panels=tables.times_panels,
                    claims=tables.times_claims,
                    width=6.6,
                    height=4.4,
                ),
                Figure(
                    name="table-2-annealing",
                    title="Table 2: annealing",
                    tables=("annealing",),
                    caption="Distances are from the best plan that anybody found; each dot is a run, each mark the "
                    "middle of them. A cross above all: no run found a plan that serves as much as the best one "
                    "without overload; the hollow mark is the paper's n.a.",
                    sheet=tables.annealing_sheet,
                    panels=tables.annealing_panels,
                    claims=tables.annealing_claims,
                ),
                Figure(
                    name="f1-printed",
                    title="Equations (1) to (7), as printed",
                    tables=("instances",),
                    caption="The program exactly as the paper prints it, on the same instances.",
                    claims=tables.printed_claims,
                ),
            ),
        ),
        Experiment(
            name="plans",
            title="what is to be seen in plans",
            measure=plans.measure,
            figures=(
                Figure(
                    name="fig-4-9",
                    title="Figures 4 to 9: plans",
                    tables=("plans",),
                    caption="Plans of the first seed: links as wide as their load, coloured from light to dark by the "
                    "capacity in use, grey where they carry nothing or have no limit. The features that the paper "
                    "points out are counted over all seeds.",
                    sheet=plans.sheet,
                    panels=plans.panels,
                    claims=plans.claims,
                    width=6.2,
                    height=5.9,
                ),
            ),
        ),
        Experiment(
            name="printed",
            title="the formulations as printed",
            measure=printed.measure,
            figures=(
                Figure(
                    name="printed",
                    title="Equations (1) to (31), as printed",
                    tables=("printed",),
                    caption="Small instances on which capacity is scarce, each formulation solved to its optimum; what "
                    "every plan is worth is the optimum of the corrected one.",
                    sheet=printed.sheet,
                    claims=printed.claims,
                ),
            ),
        ),
        Experiment(
            name="future",
            title="what the paper leaves for later",
            measure=future.measure,
            figures=(
                Figure(
                    name="future",
                    title="Future work: rates that rise, several sources, attached clients",
                    tables=("robust", "sources", "attachment"),
                    caption=f"Instances of the size of case3 at capacity factors of {future.TIGHTNESS:g} (rates) and "
                    f"{future.SCARCE:g}, solved "
                    f"exactly; rates may rise by {future.RISE:.0%}.",
                    panels=future.panels,
                    claims=future.claims,
                    width=5.0,
                    height=3.6,
                ),
            ),
        ),
    ),
)
