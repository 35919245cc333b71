"""``tieline check``, ``tieline conf`` and ``tieline reload``: what a configuration means, may say, and changes."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any  # Any: values of JSON

import typer

from tieline.cli.management import RunningBroker, shown
from tieline.cli.trouble import FAILED, MISUSED
from tieline.cli.verbs import new_app, with_blocks
from tieline.conf import render
from tieline.conf.effective import effective
from tieline.conf.load import inspect

check_app = new_app()


@check_app.command()
def check(file: Annotated[Path, typer.Argument(help="The TOML file.", metavar="FILE")]) -> None:
    """Print the settings of FILE as they will act (* = not the default) and write nothing.

    Everything that is wrong is said at once, and what `serve` would warn of. Exit code 2 means that `tieline serve
    --config FILE` would refuse to start, as far as that can be known without starting: it does not look whether
    another broker uses the addresses or the data directory, and whether the store is whole.
    """
    settings, problems = inspect(file)
    sentences = [str(problem) for problem in problems]
    if settings is not None:
        from tieline.net.preflight import obstacles, warnings

        sentences += [f"{file}: {sentence}" for sentence in obstacles(settings)]
        if not problems:
            print(effective(settings))
            for sentence in warnings(settings):
                print(f"tieline: warning: {sentence}", file=sys.stderr)
    for sentence in sentences:
        print(f"tieline: {sentence}", file=sys.stderr)
    if sentences:
        raise typer.Exit(MISUSED)


conf_app = new_app("Print the default configuration, its JSON Schema or its reference page.")


@conf_app.command()
def default() -> None:
    """Print a TOML file with every key, its default and its meaning."""
    print(render.default_toml(), end="")


@conf_app.command()
def schema() -> None:
    """Print the JSON Schema, for editors that complete and check TOML."""
    print(render.json_schema(), end="")


@conf_app.command()
def reference() -> None:
    """Print the reference page in Markdown."""
    print(render.reference_markdown(), end="")


reload_app = new_app()


@reload_app.command()
@with_blocks
def reload(
    *,
    at: RunningBroker,
    dry: Annotated[bool, typer.Option("--dry", help="Only print what would change.")] = False,
    partial: Annotated[
        bool, typer.Option("--partial", help="Apply what can be applied, although the rest needs a restart.")
    ] = False,
) -> None:
    """Print what differs from the file the broker was started with, then apply it.

    A file that cannot be used changes nothing. Neither does one with changes that need a restart, unless --partial is
    given; exit code 2 says so.
    """
    with at.reach() as broker:
        planned = shown(broker.ask("reload", dry=True))
        _print_changes(planned)
        if dry:
            raise typer.Exit(MISUSED if planned["refused"] else 0)
        if planned["refused"] and not partial:
            names = ", ".join(planned["refused"])
            print(f"tieline: nothing was changed: {names} would need a restart (--partial: the rest).", file=sys.stderr)
            raise typer.Exit(MISUSED)
        done = shown(broker.ask("reload", partial=partial))
    if not done["applied"]:
        print("tieline: the file has changed in the meantime; nothing was applied.", file=sys.stderr)
        raise typer.Exit(FAILED)
    print(f"applied; {done['disconnected']} clients were disconnected")


def _print_changes(answer: dict[str, Any]) -> None:
    for change in answer["changes"]:
        state = "applies now" if change["live"] else "needs a restart"
        print(f"{change['key']}: {change['old']} -> {change['new']}  ({state})")
    for name in answer["read_again"]:
        print(f"{name}: read again")
    if not answer["changes"]:
        print("no setting differs")
