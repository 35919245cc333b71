"""The verbs of ``tieline plan``, one module each."""

from __future__ import annotations

import typer

from tieline.cli.plan import bring, check, compare, draw, explain, generate, solve, what_if

app = typer.Typer(
    help="Decide which topic travels over which link, with a proof.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

app.command()(solve.solve)
app.command()(generate.generate)
app.command("import")(bring.bring)
app.command()(check.check)
app.command()(compare.compare)
app.command()(draw.draw)
app.command()(explain.explain)
app.command("what-if")(what_if.what_if)
