"""The numbers of the planner's benchmark: what each means."""

from __future__ import annotations

from tieline.bench.metrics import Metric, readable

METRICS = {
    "cpu_s": Metric("CPU time of the process until the plan was returned, its proof included", "s"),
    "wall_s": Metric("the same by the clock", "s"),
    "found_s": Metric("CPU time until the best plan was there", "s"),
    "is_found": Metric("instances whose best known plan was found, as a share", "%", more_is_better=True),
    "best_wall_s": Metric("time by the clock until the best known plan was there, or of the run if it never was", "s"),
    "soon": Metric("objective after a second by the clock, above the best known one", "%"),
    "is_proven": Metric("plans proven optimal, as a share", "%", more_is_better=True),
    "gap": Metric("distance of objective and bound, as a share of the objective", "%"),
    "unmet": Metric("requests that stay unmet", ""),
    "objective": Metric("cost of the links and price of the unmet requests", ""),
    "first_s": Metric("CPU time until the first plan that keeps every limit", "s"),
    "first_wall_s": Metric("the same by the clock", "s"),
    "done_s": Metric("CPU time until the gap was at most 1 %", "s"),
    "warm_s": Metric("time by the clock of a planner that stands by to plan again, without the proof", "s"),
    "read_s": Metric("the same with everything read from the instance and the old plan first", "s"),
    "proven_s": Metric("time by the clock of a planner that stands by until its new plan is proven", "s"),
    "cold_s": Metric("time by the clock of a cold start until its gap was at most 1 %, without the proof", "s"),
    "as_good_s": Metric("time by the clock of a cold start until its plan was as good as the re-planned one", "s"),
    "moved": Metric("flows that re-planning moved or ended", ""),
    "moved_cold": Metric("flows that the cold start moved or ended", ""),
    "flows": Metric("flows before the failure", ""),
    "lost": Metric("requests that became unmet", ""),
    "instances": Metric("instances with a known optimum", ""),
    "above": Metric("bounds above the optimum", ""),
    "closeness": Metric("bound : optimum, mean over those that are bounds", "%", more_is_better=True),
    "messages": Metric("messages between brokers until nobody had anything to say", ""),
    "messages_request": Metric("the same for each request", ""),
    "more_unmet": Metric("requests that the central plan serves and this one does not", ""),
    "behind": Metric("cost per served request above the central plan's", "%"),
}


#: Numbers that are 0 or 1 for each instance.
SHARES = ("is_proven", "is_found")


def shown(name: str, value: float | None) -> str:
    """A number with its unit, as tables have it."""
    if value is None:
        return ""
    unit = METRICS[name].unit
    if unit == "%":
        return f"{100 * value:.0f} %" if name in SHARES else f"{100 * value:.2f} %"
    return f"{value:,.0f}" if unit == "" else readable(value, unit)
