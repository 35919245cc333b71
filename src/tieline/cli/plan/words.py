"""Plans in words and tables."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from rich.table import Table

from tieline.cli.terminal import number
from tieline.net.log import printable

if TYPE_CHECKING:
    from tieline.plan.in_force import InForce
    from tieline.plan.instance import Instance
    from tieline.plan.plan import Plan

#: Rows of a table of links or requests, before it says how many more there are.
_MOST_ROWS = 10
#: Rates that differ by less are the same.
_SMALLEST = 1e-6


def summary(instance: Instance, plan: Plan) -> str:
    """A plan in one line."""
    requests = instance.request_count
    return (
        f"objective {amount(plan.objective)}, cost {amount(plan.cost)}, {requests - plan.unmet:,} of {requests:,} "
        f"requests served, bound {amount(plan.bound)}, gap {share(plan.gap)}, {plan.status}"
    )


def result(instance: Instance, plan: Plan) -> Table:
    """What was found, and how good it is."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim")
    table.add_column(justify="right", style="bold")
    table.add_column()
    requests = instance.request_count
    objective_note = "cost of the links" if plan.unmet == 0 else "cost of the links + price of the unmet requests"
    rows = [
        ("objective", amount(plan.objective), objective_note),
        ("cost", amount(plan.cost), "each link once per subscriber served through it"),
        ("unmet", f"{plan.unmet:,}", f"of {requests:,} requests" + _price_note(instance, plan)),
        ("bound", amount(plan.bound), "no plan has a smaller objective"),
        ("gap", share(plan.gap), "(objective - bound) / objective"),
        ("seconds", f"{plan.seconds:.2f}", f"with {plan.method}"),
        ("status", plan.status, _MEANINGS[plan.status]),
    ]
    for row in rows:
        table.add_row(*row)
    return table


def busiest(instance: Instance, plan: Plan) -> Table | None:
    """The links that are fullest; none if nothing limits them."""
    from tieline.plan.proof import examine

    load = examine(instance, plan.routes).load
    used = [
        (carried / link.capacity, carried, link)
        for carried, link in zip(load, instance.links, strict=True)
        if carried > 0 and math.isfinite(link.capacity)
    ]
    if not used:
        return None
    used.sort(key=lambda one: (-one[0], one[2].a, one[2].b))
    table = Table("busiest links", "load", "capacity", "used", box=None, header_style="dim", pad_edge=False)
    for column in table.columns[1:]:
        column.justify = "right"
    for part, carried, link in used[:_MOST_ROWS]:
        colour = "red" if part > _FULL else "yellow" if part > _BUSY else "green"
        table.add_row(
            printable(f"{link.a} - {link.b}"), amount(carried), amount(link.capacity), f"[{colour}]{share(part)}[/]"
        )
    return table


def unmet(plan: Plan) -> Table | None:
    """Who gets nothing; none if everybody is served."""
    missing = plan.unmet_requests()
    if not missing:
        return None
    table = Table("unmet: topic", "subscriber", box=None, header_style="dim", pad_edge=False)
    for topic, subscriber in missing[:_MOST_ROWS]:
        table.add_row(printable(topic), printable(subscriber))
    if len(missing) > _MOST_ROWS:
        table.add_row(f"and {len(missing) - _MOST_ROWS:,} more", "")
    return table


def movement(before: InForce, after: InForce) -> str:
    """How much takes another way, in words."""
    from tieline.plan.in_force import moves

    count = len(moves(before, after))
    verb = "takes" if count == 1 else "take"
    return f"{count:,} of {len(after.ways):,} flows between brokers {verb} another way"


def moved(before: InForce, after: InForce) -> Table | None:
    """What takes another way, and which one; none if nothing does."""
    from tieline.plan.in_force import moves

    found = moves(before, after)
    if not found:
        return None
    table = Table("moves: topic", "from", "way now", "way then", box=None, header_style="dim", pad_edge=False)
    for move in found[:_MOST_ROWS]:
        ways = (" - ".join(way) if way else "none" for way in (move.before, move.after))
        table.add_row(*(printable(text) for text in (move.flow.topic, move.flow.source, *ways)))
    if len(found) > _MOST_ROWS:
        table.add_row(f"and {len(found) - _MOST_ROWS:,} more", "", "", "")
    return table


def moved_loads(before: InForce, after: InForce) -> Table | None:
    """The links whose load changes, the fullest first; none if no load does."""
    rows = [
        (max(old, new) / link.capacity, link, old, new)
        for link, old, new in zip(after.instance.links, before.loads, after.loads, strict=True)
        if abs(old - new) > _SMALLEST
    ]
    if not rows:
        return None
    rows.sort(key=lambda row: (-row[0], row[1].a, row[1].b))
    table = Table("link", "load now", "load then", "capacity", box=None, header_style="dim", pad_edge=False)
    for column in table.columns[1:]:
        column.justify = "right"
    for _part, link, old, new in rows[:_MOST_ROWS]:
        is_over = old > link.capacity
        now = f"[red]{amount(old)}[/]" if is_over else amount(old)
        table.add_row(printable(f"{link.a} - {link.b}"), now, amount(new), amount(link.capacity))
    return table


def amount(value: float) -> str:
    """A sum of costs, or of rates."""
    if math.isinf(value):
        return "none"
    return number(round(value, 6)) if abs(value) < 1e6 or float(value).is_integer() else f"{value:,.1f}"


def share(part: float) -> str:
    """A part of something, in percent; more digits where it is small."""
    percent = 100 * part
    if percent == 0:
        return "0 %"
    return f"{percent:.0f} %" if percent >= 10 else f"{percent:.2f} %" if percent >= 0.01 else "< 0.01 %"


_MEANINGS = {
    "optimal": "bound and objective meet: no plan is better",
    "feasible": "every limit is kept; a better plan may exist",
    "interrupted": "every limit is kept; the search was ended early",
}
_FULL = 0.95
_BUSY = 0.7


def _price_note(instance: Instance, plan: Plan) -> str:
    if not plan.unmet or instance.unmet_cost is None:
        return ""
    return f", {amount(instance.unmet_cost)} each"
