"""Answers about causes on a terminal: one line per step, the outcome first and the deciding rule last."""

from __future__ import annotations

from typing import Any, Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from tieline.cli.frame import duration, printable

_STYLES: Final = {"yes": "green", "no": "red", "unknown": "yellow", "note": "dim"}
#: A pipe has no width; whoever reads it has room for a whole row.
_PIPE_WIDTH: Final = 200


def console() -> Console:
    """Where answers go."""
    here = Console()
    return here if here.is_terminal else Console(width=_PIPE_WIDTH)


def steps_table(steps: list[dict[str, Any]]) -> Table:
    """One row per step."""
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for step in steps:
        text = Text(printable(step["text"]))
        if step["rule"]:
            text.append(f"  [{printable(step['rule'])}]", style="cyan")
        outcome = step["outcome"]
        table.add_row(Text("·" if outcome == "note" else outcome, style=_STYLES.get(outcome, "")), step["stage"], text)
    return table


def drops_table(drops: list[dict[str, Any]]) -> Table:
    """One row per record, newest first."""
    table = Table(box=None, header_style="dim", pad_edge=False)
    for heading in ("ago", "why", "class", "client", "topic"):
        table.add_column(heading, no_wrap=True, overflow="ellipsis")
    for heading in ("messages", "queued", "age"):
        table.add_column(heading, justify="right", no_wrap=True)
    for drop in drops:
        table.add_row(
            duration(drop["ago_s"]),
            drop["why"],
            drop["class"] or "–",
            Text(printable(drop["client"])),
            Text(printable(drop["topic"])),
            f"{drop['messages']:,}",
            f"{drop['queued']:,}",
            duration(drop["age_s"]),
        )
    return table


def receivers_table(receivers: list[dict[str, Any]]) -> Table:
    """One row per subscriber of the topic."""
    table = Table(box=None, header_style="dim", pad_edge=False)
    for heading in ("subscriber", "fate", "QoS", "by", "why"):
        table.add_column(heading, overflow="fold")
    for one in receivers:
        fate = Text(one["fate"].replace("_", " "), style=_FATES.get(one["fate"], ""))
        by = one["group"] or ", ".join(one["filters"])
        table.add_row(
            Text(printable(one["client"])),
            fate,
            "" if one["fate"] == "passed_over" else str(one["qos"]),
            Text(printable(by)),
            Text(printable(_reason(one))),
        )
    return table


_FATES: Final = {"sent": "green", "waits": "yellow", "squeezes": "yellow", "dropped": "red", "passed_over": "dim"}


def _reason(one: dict[str, Any]) -> str:
    parts = [f"{one['why']}: {one['text']}" if one["why"] else one["text"]]
    if one["condition"]:
        values = ", ".join(f"{name} = {'missing' if value is None else value}" for name, value in one["values"].items())
        parts.append(f"condition {one['condition']}" + (f" ({values})" if values else ""))
    return "; ".join(parts)
