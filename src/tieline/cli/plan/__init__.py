"""``tieline plan``: from an instance to a proven plan, and what one wants to know about either."""

from __future__ import annotations

import typer

from tieline.cli.plan import (
    agreeing,
    applying,
    attaching,
    explain,
    generate,
    importing,
    pictures,
    solve,
    watching,
    what_if,
)

app = typer.Typer(
    help="Decide which topic travels over which link, with a proof.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

app.command()(solve.solve)
app.command()(generate.generate)
app.command("import")(importing.import_)
app.command()(explain.check)
app.command()(pictures.compare)
app.command()(pictures.draw)
app.command()(explain.explain)
app.command("what-if")(what_if.what_if)
app.command()(applying.apply)
app.command()(applying.status)
app.command()(watching.watch)
app.command()(agreeing.agree)
app.command()(attaching.clients)

__all__ = ["app"]
