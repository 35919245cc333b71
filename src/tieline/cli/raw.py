"""A command that takes its arguments as they are written."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand


class Raw(TyperCommand):
    """Hands everything after its name over in ``ctx.args``: to a parser of its own, or to a command loaded later."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        ctx.args = list(args)
        return []
