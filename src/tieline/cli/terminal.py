"""Answers on a terminal: where they go, and numbers, times and sizes as people read them."""

from __future__ import annotations

from rich.console import Console


def console(pipe_width: int = 200) -> Console:
    """Where answers go: the terminal, or something wide enough for a whole row where there is none.

    A pipe has no width, and whoever reads it has room.
    """
    here = Console()
    return here if here.is_terminal else Console(width=pipe_width)


def number(value: float) -> str:
    """A number as people write it, not longer than it has to be."""
    return f"{value:,.0f}" if value.is_integer() else f"{value:,.4g}"


def duration(seconds: float) -> str:
    """A time as people say it."""
    for length, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= length:
            return f"{seconds / length:.1f} {unit}"
    return f"{seconds:.1f} s"


def size(count: float) -> str:
    """A number of bytes as people say it."""
    for length, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if count >= length:
            return f"{count / length:.1f} {unit}"
    return f"{count:.0f} B"
