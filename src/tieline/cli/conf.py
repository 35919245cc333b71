"""``tieline conf``: the pages that are generated from the schema."""

from __future__ import annotations

import typer

from tieline.conf import render

app = typer.Typer(
    help="Print the default configuration, its JSON Schema or its reference page.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.command()
def default() -> None:
    """Print a TOML file with every key, its default and its meaning."""
    print(render.default_toml(), end="")


@app.command()
def schema() -> None:
    """Print the JSON Schema, for editors that complete and check TOML."""
    print(render.json_schema(), end="")


@app.command()
def reference() -> None:
    """Print the reference page in Markdown."""
    print(render.reference_markdown(), end="")
